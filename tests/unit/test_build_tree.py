# SPDX-License-Identifier: Apache-2.0
"""Kernels of a tree that is edited: only what changed is compiled, and what comes out is what compiling all would give.

The tree is an outline that make puts together in no time (kernel_tree.py). ``make bench-tree`` has a real one.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from howdah.build import build_tree as build_tree_module
from howdah.build import kernel_build
from howdah.build import uml_kernel as kernel_module
from howdah.build.build_tree import included_names
from howdah.build.cache import Cache
from howdah.build.kernel_source import TreeContent, read_tree
from howdah.build.supervise import CommandFailedError, run_logged
from howdah.build.tools import Tools, build_tools
from howdah.build.uml_kernel import build_kernel
from howdah.command.main import main
from howdah.errors import HowdahError
from tests.unit.build_tree_bench import Bench, until
from tests.unit.kernel_tree import image_of, write_tree


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return build_tools(Cache(tmp_path_factory.mktemp("tools")))


@pytest.fixture
def bench(tmp_path: Path, tools: Tools, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(kernel_module, "build_tools", lambda _cache: tools)
    monkeypatch.setattr(kernel_module, "_SPACE_BYTES", 0)
    return Bench(tmp_path)


def test_an_edit_compiles_one_file_and_a_key_is_the_contents(bench: Bench) -> None:
    first = bench.build()
    assert first.image.read_text() == image_of()
    assert bench.compiled(first) == ["cubic.o", "tcp.o"]
    bench.edit("net/ipv4/tcp.c", "tcp two")
    second = bench.build()
    assert second.key != first.key
    assert second.image.read_text() == image_of(tcp="tcp two")
    assert bench.compiled(second) == ["tcp.o"]
    bench.edit("net/ipv4/tcp.c", "tcp one")
    assert bench.build() == first


def test_nothing_is_written_into_the_tree(bench: Bench) -> None:
    def state() -> list[tuple[str, int]]:
        return [(str(path), path.stat().st_mtime_ns) for path in sorted(bench.tree.rglob("*"))]

    before = state()
    bench.build()
    assert state() == before


@pytest.mark.parametrize("time_ns", [0, None], ids=["an older time", "the same time"])
def test_no_time_of_change_hides_an_edit(bench: Bench, time_ns: int | None) -> None:
    bench.build()
    file = bench.tree / "net/ipv4/tcp.c"
    kept_ns = file.stat().st_mtime_ns if time_ns is None else time_ns
    bench.edit("net/ipv4/tcp.c", "tcp two")  # of the same size
    os.utime(file, ns=(kept_ns, kept_ns))
    kernel = bench.build()
    assert kernel.image.read_text() == image_of(tcp="tcp two")


def test_a_time_of_change_is_no_edit(bench: Bench) -> None:
    first = bench.build()
    (bench.tree / "net/ipv4/tcp.c").touch()
    assert bench.build().key == first.key


def test_a_header_is_compiled_in_everywhere_and_older_kernels_keep_theirs(bench: Bench) -> None:
    first = bench.build()
    bench.edit("include/net/tcp.h", "header two")
    second = bench.build()
    assert second.image.read_text() == image_of(header="header two")
    assert bench.compiled(second) == ["cubic.o", "tcp.o"]
    assert (first.source_dir / "include/net/tcp.h").read_text() == "header one\n"
    assert (second.source_dir / "include/net/tcp.h").read_text() == "header two\n"


def test_a_file_system_without_links_will_do(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def link(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", link)
    assert (bench.build().source_dir / "include/net/tcp.h").read_text() == "header one\n"


def test_modules_serve_all_kernels_of_one_interface(bench: Bench) -> None:
    first = bench.build()
    bench.edit("net/ipv4/tcp.c", "tcp two")
    assert bench.build().interface == first.interface
    bench.edit("include/net/tcp.h", "header two")
    assert bench.build().interface != first.interface
    assert len(bench.cache.entries("interface")) == 2
    assert first.vermagic == "6.99.1-rc2 mod_unload "


def test_what_does_not_compile_is_told_at_the_persons_line_and_costs_no_object(bench: Bench) -> None:
    bench.build()
    bench.edit("include/net/tcp.h", "header two")
    bench.edit("net/ipv4/tcp.c", "BROKEN")
    with pytest.raises(HowdahError, match="it is broken") as caught:
        bench.build()
    assert caught.value.where == f"{bench.tree}/net/ipv4/tcp.c:3"
    bench.edit("net/ipv4/tcp.c", "tcp three")
    kernel = bench.build()
    assert kernel.image.read_text() == image_of(tcp="tcp three", header="header two")
    assert bench.compiled(kernel) == ["tcp.o"], "the other was compiled beside the one that is broken"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_build_leaves_no_wrong_object(bench: Bench, number: int) -> None:
    bench.build()
    bench.edit("net/ipv4/tcp.c", "tcp two")
    bench.hold.touch()
    code = "import sys; from howdah.build.uml_kernel import build_kernel; build_kernel(sys.argv[1], lambda *_: None)"
    environment = {**os.environ, "HOWDAH_CACHE": str(bench.cache.root)}
    command = subprocess.Popen([sys.executable, "-c", code, str(bench.tree)], env=environment)
    half = bench.build_tree.build / "net/ipv4/tcp.o"
    until(lambda: half.read_text() == "half\n")
    command.send_signal(number)
    command.wait()
    bench.hold.unlink()
    # The half object is newer than its source: make alone would take it.
    kernel = bench.build()
    assert kernel.image.read_text() == image_of(tcp="tcp two")
    assert bench.compiled(kernel) == ["tcp.o"], "what was whole stays"


def test_a_command_waits_until_the_children_of_a_killed_one_are_gone(bench: Bench) -> None:
    bench.build()
    with bench.build_tree.held(lambda: None) as lock:
        heir = subprocess.Popen(["sleep", "60"], pass_fds=(lock,))
    waited: list[bool] = []

    def waiting() -> None:
        waited.append(True)
        heir.kill()

    with bench.build_tree.held(waiting):
        assert waited
    heir.wait()


def test_everything_that_make_starts_holds_the_build_tree(bench: Bench, tools: Tools, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with bench.build_tree.held(lambda: None) as lock:
        command = ["sh", "-c", "sh -c 'readlink /proc/self/fd/*; true'"]
        run_logged(command, log, launcher=tools.launch, keep_open=(lock,))
    assert str(bench.build_tree.directory / ".lock") in log.read_text()
    held: list[object] = []

    def run(_command: list[str], log: Path, **options: object) -> None:
        log.touch()
        held.append(options["keep_open"])
        raise CommandFailedError(["make"], 2, ["it is only a test"])

    with pytest.MonkeyPatch.context() as patch, pytest.raises(HowdahError, match="only a test"):
        patch.setattr(kernel_build, "run_logged", run)
        bench.build()
    assert len(held) == 1
    assert held[0] != ()


def test_a_copy_that_was_cut_off_is_mended(bench: Bench) -> None:
    first = bench.build()
    copy = bench.build_tree.source / "net/ipv4/tcp.c"
    copy.unlink()
    copy.write_text("tcp bad\n")
    (bench.build_tree.source / "net/ipv4/more.c").touch()
    bench.edit("net/ipv4/cubic.c", "cubic two")
    kernel = bench.build()
    assert kernel.image.read_text() == image_of(cubic="cubic two")
    assert not (bench.build_tree.source / "net/ipv4/more.c").exists()
    assert first.image.read_text() == image_of()


@pytest.mark.parametrize("damage", ["truncated", "gone", "state"])
def test_objects_that_are_not_as_they_were_left_are_compiled_again(bench: Bench, damage: str) -> None:
    bench.build()
    victim = bench.build_tree.build / "net/ipv4/tcp.o"
    if damage == "truncated":
        os.truncate(victim, 0)
    elif damage == "gone":
        victim.unlink()
    else:
        (bench.build_tree.directory / "state.json").write_text("{")
    bench.edit("net/ipv4/cubic.c", "cubic two")
    assert bench.build().image.read_text() == image_of(cubic="cubic two")


def test_a_copy_of_the_cache_with_links_costs_nothing(bench: Bench, tmp_path: Path) -> None:
    bench.build()
    shutil.copytree(bench.cache.root, tmp_path / "copy", copy_function=os.link)
    bench.edit("net/ipv4/cubic.c", "cubic two")
    assert bench.compiled(bench.build()) == ["cubic.o"]


def test_with_another_configuration_left_half_done_all_is_compiled(bench: Bench) -> None:
    bench.build()
    (bench.build_tree.build / ".config").write_text("CONFIG_OTHER=y\n")
    bench.edit("net/ipv4/cubic.c", "cubic two")
    assert bench.compiled(bench.build()) == ["cubic.o", "tcp.o"]


@pytest.mark.parametrize(
    ("name", "again"),
    [("net/ipv4/cubic.c", False), ("net/Kconfig", True), ("net/Makefile", True), ("scripts/conf.c", True)],
)
def test_the_configuration_is_made_again_where_it_may_differ(bench: Bench, name: str, again: bool) -> None:
    def configured() -> bool:
        return "  configured" in bench.cache.log("kernel", bench.build().key).read_text()

    assert configured()
    bench.edit(name, "new")
    assert configured() is again


def test_a_configuration_that_was_cut_off_is_made_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.build()
    bench.edit("Kconfig", "new")
    with monkeypatch.context() as patch, pytest.raises(HowdahError, match="not configured"):

        def refuse(*_: object) -> None:
            raise kernel_build.KbuildError("not configured")

        patch.setattr(kernel_build.KernelBuild, "_check_options", refuse)
        bench.build()
    kernel = bench.build()
    assert "  configured" in bench.cache.log("kernel", kernel.key).read_text()


def test_with_another_compiler_all_is_compiled(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.build()
    monkeypatch.setattr(kernel_build, "toolchain", lambda: "gcc of tomorrow")
    bench.edit("net/ipv4/cubic.c", "cubic two")
    assert bench.compiled(bench.build()) == ["cubic.o", "tcp.o"]


def test_where_the_clock_was_set_back_all_is_compiled(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.build()
    tomorrow = time.time() + 86400
    for path in bench.build_tree.build.rglob("*.o"):
        os.utime(path, (tomorrow, tomorrow))
    state = bench.build_tree.directory / "state.json"
    bench.build_tree.record_state(json.loads(state.read_text())["fingerprint"])
    monkeypatch.setattr("howdah.build.build_tree._LONGEST_WAIT_S", 0.1)
    bench.edit("net/ipv4/cubic.c", "cubic two")
    kernel = bench.build()
    assert kernel.image.read_text() == image_of(cubic="cubic two")
    assert bench.compiled(kernel) == ["cubic.o", "tcp.o"]


@pytest.mark.parametrize(
    ("name", "compiled"),
    [
        ("net/ipv4/tcp.h", ["cubic.o", "tcp.o"]),  # as include/net/tcp.h, which both objects were made of
        ("arch/um/include/shared/new.h", ["cubic.o", "tcp.o"]),  # nobody knows which system headers were used
        ("net/ipv4/new.h", ["cubic.o"]),
        ("net/ipv4/tcp_new.c", ["cubic.o"]),
        ("include/asked.h", ["cubic.o", "tcp.o"]),
    ],
)
def test_a_new_file_that_could_take_the_place_of_another(bench: Bench, name: str, compiled: list[str]) -> None:
    bench.edit("net/ipv4/tcp.c", '__has_include("asked.h")')
    bench.build()
    bench.edit(name, "new")
    bench.edit("net/ipv4/cubic.c", "cubic two")
    assert bench.compiled(bench.build()) == compiled


def test_a_link_that_leads_elsewhere(bench: Bench) -> None:
    """Its time, to make, is that of the file it leads to, which may be older than every object."""
    bench.edit("net/ipv4/one.c", "cubic one")
    bench.edit("net/ipv4/two.c", "cubic two")
    link = bench.tree / "net/ipv4/cubic.c"
    link.unlink()
    link.symlink_to("one.c")
    assert bench.build().image.read_text() == image_of()
    link.unlink()
    link.symlink_to("two.c")
    assert bench.build().image.read_text() == image_of(cubic="cubic two")


def test_a_header_that_code_only_asks_for_and_that_goes(bench: Bench) -> None:
    bench.edit("include/asked.h", "here")
    bench.edit("net/ipv4/tcp.c", '__has_include("asked.h")')
    bench.build()
    (bench.tree / "include/asked.h").unlink()
    assert bench.compiled(bench.build()) == ["cubic.o", "tcp.o"]


@pytest.mark.parametrize("after", ["copy_file", "_remove_empty_directories"])
def test_a_copy_that_is_cut_off_does_not_hide_a_new_header(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    bench.build()
    bench.edit("net/ipv4/tcp.h", "new")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        whole = getattr(build_tree_module, after)

        def cut_off(*arguments: object) -> None:
            whole(*arguments)
            raise KeyboardInterrupt

        patch.setattr(build_tree_module, after, cut_off)
        bench.build()
    assert bench.compiled(bench.build()) == ["cubic.o", "tcp.o"]


def test_a_tree_edited_while_it_is_copied_is_read_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[TreeContent] = []

    def read_and_edit(root: Path) -> TreeContent:
        content = read_tree(root)
        if root == bench.tree:
            reads.append(content)
            if len(reads) == 1:
                bench.edit("net/ipv4/tcp.c", "tcp two")
        return content

    monkeypatch.setattr("howdah.build.kernel_source.read_tree", read_and_edit)
    kernel = bench.build()
    assert kernel.image.read_text() == image_of(tcp="tcp two")
    assert len(reads) == 2


def test_a_tree_that_never_stays_the_same_is_refused(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_and_edit(root: Path) -> TreeContent:
        content = read_tree(root)
        if root == bench.tree:
            bench.edit("net/ipv4/tcp.c", f"tcp {time.time_ns()}")
        return content

    monkeypatch.setattr("howdah.build.kernel_source.read_tree", read_and_edit)
    with pytest.raises(HowdahError, match="keep changing"):
        bench.build()


def test_the_environment_has_no_say(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALVERSION", "-mine")
    monkeypatch.setenv("KCFLAGS", "-O0")
    assert bench.build().image.read_text() == image_of()


def test_one_content_in_two_places_is_one_kernel_with_two_names(bench: Bench, tmp_path: Path) -> None:
    here = bench.build()
    there = build_kernel(str(write_tree(tmp_path / "other").rename(tmp_path / "clone")), lambda *_: None, bench.cache)
    text = (tmp_path / "clone/Makefile").read_text()
    assert text == (bench.tree / "Makefile").read_text()
    assert there.key == here.key
    assert there.name == str(tmp_path / "clone")
    assert str(tmp_path / "clone") in there.source
    assert str(bench.tree) in here.source


def test_clean_removes_build_trees_of_trees_that_are_gone(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOWDAH_CACHE", str(bench.cache.root))
    kernel = bench.build()
    assert main(["clean", "--runs", str(tmp_path / "runs")]) == 0
    assert bench.build_tree.source.exists()
    bench.tree.rename(tmp_path / "elsewhere")
    assert main(["clean", "--runs", str(tmp_path / "runs")]) == 0
    assert not bench.build_tree.source.exists()
    assert [path.name for path in bench.build_tree.directory.iterdir()] == [".lock"]
    assert kernel.image.exists()
    assert main(["clean", "--cache", "--runs", str(tmp_path / "runs")]) == 0
    assert not bench.cache.root.exists()


def test_names_that_kbuild_says_an_object_was_made_of() -> None:
    record = (
        b"savedcmd_net/ipv4/tcp.o := gcc -I/x/include -c -o net/ipv4/tcp.o /x/net/ipv4/tcp.c\n\n"
        b"source_net/ipv4/tcp.o := /x/net/ipv4/tcp.c\n\n"
        b"deps_net/ipv4/tcp.o := \\\n"
        b"    $(wildcard include/config/INET) \\\n"
        b"  /x/include/linux/kconfig.h \\\n"
        b"  include/generated/autoconf.h \\\n"
        b"  plain.h \\\n\n"
        b"net/ipv4/tcp.o: $(deps_net/ipv4/tcp.o)\n"
    )
    assert included_names(record) >= {b"kconfig.h", b"autoconf.h", b"plain.h"}
