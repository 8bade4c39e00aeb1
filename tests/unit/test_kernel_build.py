# SPDX-License-Identifier: Apache-2.0
"""What a kernel build says when the tree lacks something or does not compile; no compiler is run here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from howdah.build import kernel_make
from howdah.build import uml_kernel as kernel_module
from howdah.build.cache import Cache, Progress
from howdah.build.kernel_build import KernelBuild, failure, is_kept_output, is_kept_source
from howdah.build.kernel_make import enabled_options, read_wanted
from howdah.build.kernel_source import KernelSource
from howdah.build.supervise import CommandFailedError
from howdah.build.tools import Tools
from howdah.command.listing import built_kernels
from howdah.errors import HowdahError


def _build(directory: Path, progress: Progress) -> KernelBuild:
    source = KernelSource("/home/me/linux", "/home/me/linux 5.4", "key", tree=directory / "tree")
    tools = Tools(directory, directory / "launch", directory / "shim.so", "key")
    return KernelBuild(source, tools, Cache(directory), directory, directory / "log", progress)


def _configured(directory: Path, options: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Configure a tree that takes these options."""
    build = _build(directory, lambda *_: None)
    build.build_dir.mkdir()
    taken = "".join(f"CONFIG_{option}=y\n" for option in options)
    monkeypatch.setattr(build, "_make", lambda *_: (build.build_dir / ".config").write_text(taken))
    return build._configure()


def test_required_options_a_tree_did_not_take_are_all_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = read_wanted()
    absent = {"UML_TIME_TRAVEL_SUPPORT", "NET_SCH_NETEM"}
    options = [option for option in wanted.required + wanted.optional if option not in absent]
    with pytest.raises(HowdahError, match="CONFIG_UML_TIME_TRAVEL_SUPPORT, CONFIG_NET_SCH_NETEM") as caught:
        _configured(tmp_path, options, monkeypatch)
    assert str(caught.value).startswith("/home/me/linux")


def test_a_control_that_is_a_module_is_asked_for_as_one_and_is_part_of_the_key() -> None:
    wanted = read_wanted()
    assert "TCP_CONG_BIC" in wanted.modules
    assert "CONFIG_TCP_CONG_BIC=m\n" in wanted.fragment()
    assert "CONFIG_TCP_CONG_CUBIC=y\n" in wanted.fragment()
    assert {*wanted.modules} <= {*wanted.ingredients()}


def test_optional_options_a_tree_did_not_take_are_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = read_wanted()
    missing = _configured(tmp_path, [*wanted.required, *wanted.optional[2:]], monkeypatch)
    assert missing == [*wanted.optional[:2], *wanted.modules]


def test_beyond_the_expected_objects_nobody_knows_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """'683/684  about 0:01 left' stood there for half a minute."""
    told: list[tuple[str, int, int]] = []
    build = _build(tmp_path, lambda *step: told.append(step))

    def make(*_: str, on_line: Callable[[str], None]) -> None:
        for line in ("  CC      net/ipv4/tcp.o", "  AR      net/ipv4/built-in.a", "  AS      a.o", "  CC      b.o"):
            on_line(line)

    monkeypatch.setattr(build, "_make", make)
    build._compile(2)
    assert [step[1:] for step in told] == [(0, 2), (1, 2), (2, 0), (3, 0), (3, 3)]


def test_what_modules_need_is_kept() -> None:
    kept = ["include/linux/version.h", "include/config/auto.conf", "scripts/mod/modpost.o", "scripts/mod/modpost"]
    left = ["linux", "vmlinux", "vmlinux.o", "System.map", "net/ipv4/tcp.o", "net/built-in.a", ".tmp_vmlinux1"]
    assert [name for name in [*kept, ".config", *left] if is_kept_output(name)] == [*kept, ".config"]
    kept = ["Makefile", "scripts/mod/modpost.c", "include/net/tcp.h", "arch/x86/um/asm/elf.h", "net/ipv4/fib.h"]
    left = ["net/ipv4/tcp.c", "net/ipv4/Makefile", "arch/x86/um/bugs_64.c", "drivers/base/base.h", "init/main.c"]
    assert [name for name in [*kept, *left] if is_kept_source(name)] == kept


def test_the_first_error_of_the_compiler_is_told_with_its_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        "  CC      net/ipv4/tcp.o\n../net/ipv4/tcp.c:10:5: error: expected ';'\n../net/a.c:1: error: second\n"
    )
    error = failure(CommandFailedError(["make"], 2, ["make: *** Error 2"]), "the kernel does not compile", log, "linux")
    assert error.where == "../net/ipv4/tcp.c:10"
    assert error.what == "the kernel does not compile: expected ';'"
    assert str(log) in str(error.hint)


def test_an_error_that_is_not_the_compilers_quotes_the_last_lines(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("")
    tail = ["/bin/sh: bc: not found", "make[2]: *** [timeconst.h] Error 127", "make: *** Error 2"]
    error = failure(CommandFailedError(["make"], 2, tail), "the kernel does not compile", log, "linux")
    assert error.where == "linux"
    assert error.what.endswith("/bin/sh: bc: not found")


def test_an_error_names_the_tree_and_not_the_copy_that_was_compiled(tmp_path: Path) -> None:
    """Also where the linker tells it, or where the message itself names a second file."""
    source = KernelSource("/home/me/linux", "/home/me/linux 6.12", "key", tree=Path("/home/me/linux"))
    tools = Tools(tmp_path, tmp_path / "launch", tmp_path / "shim.so", "key")
    build = KernelBuild(source, tools, Cache(tmp_path), tmp_path, tmp_path / "log", lambda *_: None)
    copy = build.source_dir
    build.log.write_text(f"{copy}/net/a.c:3:1: error: 'x' of {copy}/net/a.h differs\n")
    error = build._failure(CommandFailedError(["make"], 2, []), "the kernel does not compile")
    assert (error.where, error.what.partition(": ")[2]) == (
        "/home/me/linux/net/a.c:3",
        "'x' of /home/me/linux/net/a.h differs",
    )
    build.log.write_text("")
    said = [f"ld: net/a.o: in function f: {copy}/net/a.c:9: undefined reference to g"]
    error = build._failure(CommandFailedError(["make"], 2, said), "the kernel does not compile")
    assert error.what.endswith("in function f: /home/me/linux/net/a.c:9: undefined reference to g")


def test_the_key_follows_source_options_and_compiler(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    source = KernelSource("a", "", "one")
    monkeypatch.setattr(kernel_module, "compiler_version", lambda: "gcc 12")
    first = kernel_module.kernel_key(source)
    assert kernel_module.kernel_key(KernelSource("a", "", "two")) != first
    monkeypatch.setattr(kernel_module, "compiler_version", lambda: "gcc 14")
    assert kernel_module.kernel_key(source) != first
    monkeypatch.setattr(kernel_module, "compiler_version", lambda: "gcc 12")
    fragment = tmp_path / "kernel.config"
    fragment.write_text(kernel_make.FRAGMENT.read_text() + "# [required before 6.3]\nCONFIG_A=y\n")
    monkeypatch.setattr(kernel_make, "FRAGMENT", fragment)
    assert kernel_module.kernel_key(source) == first, "an option of other releases changes nothing"
    old = KernelSource("a", "", "one", release=(5, 10))
    old_key = kernel_module.kernel_key(old)
    fragment.write_text(fragment.read_text() + "CONFIG_C=y\n")
    assert kernel_module.kernel_key(old) != old_key


def test_no_kernels_are_listed_where_none_is_built(tmp_path: Path) -> None:
    assert list(built_kernels(Cache(tmp_path))) == []


# The kernel's wanted options, and what a tree is told when it does not take them


def test_the_shipped_list_is_readable_and_each_option_stands_once() -> None:
    wanted = read_wanted()
    everything = wanted.required + wanted.optional
    assert len(everything) == len(set(everything))
    assert {"UML_TIME_TRAVEL_SUPPORT", "HOSTFS", "NET_SCH_NETEM", "MODULES"} <= set(wanted.required)
    assert "IPV6" not in everything


def test_sections_decide_what_is_required(tmp_path: Path) -> None:
    fragment = tmp_path / "kernel.config"
    fragment.write_text("CONFIG_A=y\n# [optional]\n# why\nCONFIG_B=y\n\n# [required]\nCONFIG_C=y\n")
    wanted = read_wanted(fragment=fragment)
    assert wanted.required == ("A", "C")
    assert wanted.optional == ("B",)


@pytest.mark.parametrize(
    ("release", "required"),
    [((5, 10), ("A", "OLD", "OLDER")), ((5, 15), ("A", "OLD")), ((6, 3), ("A",)), ((6, 12), ("A",)), ((), ("A",))],
)
def test_sections_for_older_releases(tmp_path: Path, release: tuple[int, ...], required: tuple[str, ...]) -> None:
    fragment = tmp_path / "kernel.config"
    fragment.write_text(
        "CONFIG_A=y\n# [required before 6.3]\nCONFIG_OLD=y\n# [required before 5.15]\nCONFIG_OLDER=y\n"
        "# [optional]\nCONFIG_B=y\n"
    )
    wanted = read_wanted(release, fragment)
    assert (wanted.required, wanted.optional) == (required, ("B",))
    assert wanted.fragment().splitlines() == [f"CONFIG_{name}=y" for name in (*required, "B")]


def test_a_part_for_newer_releases_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    """So that their keys stay, and nobody builds them again."""
    fragment = tmp_path / "kernel.config"
    fragment.write_text("CONFIG_A=y\n# [optional]\nCONFIG_B=y\n")
    plain = {release: read_wanted(release, fragment).ingredients() for release in ((6, 12), (6, 17), (7, 3))}
    fragment.write_text("CONFIG_A=y\n# [optional]\nCONFIG_B=y\n# [optional from 6.17]\nCONFIG_NEW=y\n")
    assert read_wanted((6, 12), fragment).ingredients() == plain[6, 12]
    assert read_wanted((6, 17), fragment).optional == read_wanted((7, 3), fragment).optional == ("B", "NEW")
    assert read_wanted((), fragment).optional == ("B", "NEW")


@pytest.mark.parametrize(
    ("line", "expected"),
    [("CONFIG_A=n", "neither"), ("# [wished]", "no section"), ("# [required after 6.1]", "no section")],
)
def test_a_wrong_line_is_named_with_its_number(tmp_path: Path, line: str, expected: str) -> None:
    fragment = tmp_path / "kernel.config"
    fragment.write_text(f"CONFIG_B=y\n{line}\n")
    with pytest.raises(ValueError, match=rf":2: {expected}"):
        read_wanted(fragment=fragment)


def test_taken_counts_built_in_and_modules_only(tmp_path: Path) -> None:
    configuration = tmp_path / ".config"
    configuration.write_text('CONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\nCONFIG_D="y"\nCONFIG_HZ=100\n')
    assert enabled_options(configuration) == {"A", "B"}
