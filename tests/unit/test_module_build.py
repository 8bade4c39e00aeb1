# SPDX-License-Identifier: Apache-2.0
"""Modules: which are chosen, and what is said of those that cannot be used; no compiler is run here."""

from __future__ import annotations

import json
import platform
import struct
from pathlib import Path

import pytest

from howdah.build import modules
from howdah.build.cache import Cache
from howdah.build.module_build import ModuleFailure, blame
from howdah.build.modules import ModuleSet
from howdah.build.uml_kernel import Kernel, load_kernel
from howdah.errors import HowdahError
from howdah.linux.modinfo import module_information
from tests.built_modules import build_modules

_MAGIC = b"\0vermagic=6.12.1 mod_unload \0name=tcp_mine\0srcversion=ABC\0"
_MACHINE = {"x86_64": 62, "aarch64": 183, "riscv64": 243}[platform.machine()]


def _ko(information: bytes = _MAGIC, *, machine: int = _MACHINE, kind: int = 1, bits: int = 64) -> bytes:
    """An object file of one section, the information, with its table at the end as in every .ko."""
    start = b"\x7fELF" + bytes([bits // 32, 1, 1]) + bytes(9) + struct.pack("<HHI", kind, machine, 1)
    header = start + struct.pack("<QQQIHHHHHH", 0, 0, 64 + len(information), 0, 64, 0, 0, 64, 1, 0)
    return header + information + struct.pack("<IIQQQQIIQQ", 0, 1, 0, 0, 64, len(information), 0, 0, 1, 0)


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(
        name="debian-6.12",
        directory=tmp_path / "kernel",
        image=tmp_path / "kernel/linux",
        build_dir=tmp_path / "kernel/build",
        source_dir=tmp_path / "kernel/source",
        release="6.12.1",
        config_sha256="",
        image_sha256="",
        source="",
        compiler="",
        vermagic="6.12.1 mod_unload ",
        options_not_taken=(),
    )


@pytest.fixture(autouse=True)
def _no_project_modules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(modules, "PROJECT_MODULES", tmp_path / "none")


def _build(kernel: Kernel, path: Path) -> list[modules.Module]:
    return build_modules(kernel, [str(path)], lambda _what, _done, _total: None, Cache(path.parent / "cache"))


def test_a_ready_module_of_this_kernel_is_taken_as_it_is(kernel: Kernel, tmp_path: Path) -> None:
    file = tmp_path / "mine.ko"
    file.write_bytes(_ko())
    (module,) = _build(kernel, file)
    assert (module.name, module.file, module.srcversion) == ("mine", file, "ABC")
    assert module.loaded_as == "tcp_mine"


def test_a_module_of_another_kernel_is_refused_with_both_versions(kernel: Kernel, tmp_path: Path) -> None:
    file = tmp_path / "mine.ko"
    file.write_bytes(_ko(_MAGIC.replace(b"6.12.1 mod", b"6.1.0-9-amd64 SMP mod")))
    with pytest.raises(HowdahError, match=r"6\.1\.0-9-amd64 SMP mod_unload.*6\.12\.1 mod_unload") as caught:
        _build(kernel, file)
    assert str(caught.value).startswith(str(file))


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("mine.ko", b"not elf", "not a kernel module"),
        ("mine.txt", b"", "a .c file, a directory"),
        ("my module.c", b"", "letters, digits"),
    ],
)
def test_what_is_no_module(kernel: Kernel, tmp_path: Path, name: str, content: bytes, expected: str) -> None:
    file = tmp_path / name
    file.write_bytes(content)
    with pytest.raises(HowdahError, match=expected):
        _build(kernel, file)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (_ko()[:-1], f"cut off: it has {len(_ko()) - 1} bytes of at least {len(_ko())}"),
        (_ko()[:100], f"cut off: it has 100 bytes of at least {len(_ko())}"),
        (_ko()[:20], "cut off: it has 20 bytes"),
        (b"", "not an ELF file"),
        (b"<html>\0vermagic=6.12.1 mod_unload \0", "not an ELF file"),
        (_ko(machine=20), "another processor: machine 20 of ELF, 64 bits; this machine is "),
        (_ko(machine=3, bits=32), "another processor: i386, 32 bits; this machine is "),
        (_ko(kind=2), "linked as a program"),
        (_ko(b"nothing"), "carries no version magic"),
    ],
)
def test_a_ready_module_that_no_kernel_here_can_load(
    kernel: Kernel, tmp_path: Path, content: bytes, expected: str
) -> None:
    """Its version magic may be right: the guest's kernel would refuse it after the compilation of all others."""
    file = tmp_path / "tcp_mine.ko"
    file.write_bytes(content)
    with pytest.raises(HowdahError, match=expected) as refused:
        _build(kernel, file)
    assert refused.value.where == str(file)


def test_a_missing_file_and_a_directory_without_kbuild(kernel: Kernel, tmp_path: Path) -> None:
    with pytest.raises(HowdahError, match="no such module"):
        _build(kernel, tmp_path / "gone.c")
    (tmp_path / "sources").mkdir()
    with pytest.raises(HowdahError, match="Kbuild"):
        _build(kernel, tmp_path / "sources")


_LISTED = [
    "howdah-module ss_a.o =",
    "howdah-module core.o = core/one.o core/two.o",
    "howdah-module plug/ss_b.o =",
]


def _blame(lines: list[str], directory: Path, earlier: dict[str, ModuleFailure] | None = None) -> list[ModuleFailure]:
    return [failure for _, failure in blame([*_LISTED, *lines], "6.12.1", directory, earlier or {})]


def test_the_compilers_first_error_is_told_with_the_users_own_file(tmp_path: Path) -> None:
    (tmp_path / "ss_a.c").write_text("")
    (failure,) = _blame(
        [
            "  CC [M]  ss_a.o",
            "ss_a.c:7:1: warning: unused",
            "ss_a.c:12:5: error: 'struct tcp_sock' has no member named 'cwnd'",
            "   12 |     tp->cwnd = 1;",
            "make[3]: *** [/k/scripts/Makefile.build:291: ss_a.o] Error 1",
            "make[2]: *** [/k/Makefile:1877: .] Error 2",
        ],
        tmp_path,
    )
    error = failure.error(tmp_path / "ss_a.c")
    assert error.where == f"{tmp_path / 'ss_a.c'}:12"
    assert "kernel 6.12.1" in error.what
    assert "no member named 'cwnd'" in error.what
    assert "tp->cwnd = 1;" in str(error.hint)


def test_an_error_in_a_header_of_the_kernel_is_told_where_it_was_included(tmp_path: Path) -> None:
    (failure,) = _blame(
        [
            "In file included from /k/include/linux/rculist.h:11,",
            "                 from /k/include/net/generic.h:4,",
            "                 from plug/ss_b.c:27:",
            "/k/include/net/generic.h: In function 'net_generic':",
            "/k/include/net/generic.h:45:33: error: invalid use of undefined type 'const struct net'",
            "make[3]: *** [/k/scripts/Makefile.build:291: plug/ss_b.o] Error 1",
        ],
        tmp_path,
    )
    assert (failure.file, failure.line) == ("plug/ss_b.c", 27)
    assert "/k/include/net/generic.h:45" in failure.said


def test_each_failed_module_is_told_by_its_own_error(tmp_path: Path) -> None:
    found = _blame(
        [
            "core/two.c:3:1: error: first",
            "make[3]: *** [/k/scripts/Makefile.build:291: core/two.o] Error 1",
            "core/one.c:9:1: error: second of the same module",
            "make[3]: *** [/k/scripts/Makefile.build:291: core/one.o] Error 1",
            "include/shared.h:4:2: error: in a header",
            "make[3]: *** [plug/ss_b.o] Error 1",
        ],
        tmp_path,
    )
    told = [(one.module, one.file, one.line) for one in found]
    assert told == [("core", "core/two.c", 3), ("ss_b", "include/shared.h", 4)]


def test_symbols_the_kernel_does_not_export_are_named(tmp_path: Path) -> None:
    lines = [
        'ERROR: modpost: "tcp_secret" [ss_a.ko] undefined!',
        'ERROR: modpost: "tcp_hidden" [ss_a.ko] undefined!',
        "ERROR: modpost: missing MODULE_LICENSE() in plug/ss_b.o",
        "make[2]: *** [/k/scripts/Makefile.modpost:145: Module.symvers] Error 1",
    ]
    first, second = sorted(_blame(lines, tmp_path), key=lambda failure: failure.module)
    assert (first.module, second.module) == ("ss_a", "ss_b")
    assert "kernel 6.12.1 does not export: tcp_secret, tcp_hidden" in first.what
    assert "missing MODULE_LICENSE()" in second.what
    assert first.error(tmp_path / "m.c").where == str(tmp_path / "m.c")


@pytest.mark.parametrize(
    ("said", "source", "line"),
    [
        ("missing MODULE_LICENSE() in ss_a.o", "int a;\n", None),
        ("GPL-incompatible module ss_a.ko uses GPL-only symbol 'x'", '\nMODULE_LICENSE("Proprietary");\n', 2),
    ],
)
def test_a_licence_that_the_kernel_does_not_take_is_told_with_the_remedy(
    tmp_path: Path, said: str, source: str, line: int | None
) -> None:
    (tmp_path / "ss_a.c").write_text(source)
    (failure,) = _blame([f"ERROR: modpost: {said}"], tmp_path, {})
    assert said in failure.what
    assert failure.line == line
    assert 'MODULE_LICENSE("GPL")' in failure.said


def test_what_needs_a_module_that_failed_is_told_why_that_one_did(tmp_path: Path) -> None:
    (tmp_path / "core").mkdir()
    (tmp_path / "core/two.c").write_text("void core_call(void) {}\nEXPORT_SYMBOL_GPL(core_call);\n")
    core = ModuleFailure("core", "the module core does not compile: ';' expected", "core/one.c", 9, "said")
    (failure,) = _blame(['ERROR: modpost: "core_call" [plug/ss_b.ko] undefined!'], tmp_path, {"core.o": core})
    assert (
        failure.what
        == "the module ss_b needs core, which does not build: the module core does not compile: ';' expected"
    )
    assert (failure.file, failure.line) == ("core/one.c", 9)


def test_an_output_that_blames_no_module_blames_none(tmp_path: Path) -> None:
    assert _blame(["make: *** No rule to make target 'modules'.  Stop."], tmp_path) == []


def _set(*names: str, failed: dict[str, HowdahError] | None = None, **depends: tuple[str, ...]) -> ModuleSet:
    built = {name: modules.Module(name, Path(f"{name}.ko"), None, "", depends.get(name, ())) for name in names}
    return ModuleSet(built, failed or {})


def test_only_what_is_needed_is_chosen_each_behind_its_dependencies() -> None:
    found = _set("a", "b", "core", "traffic", a=("core",), b=("core", "x_tables"), core=("base",))
    assert [module.name for module in found.choose(["b", "traffic"])] == ["core", "b", "traffic"]
    assert [module.name for module in found.choose(None)] == ["core", "a", "b", "traffic"]
    assert found.choose([]) == []


def test_choosing_what_failed_or_is_not_there_says_why() -> None:
    found = _set("a", "b", failed={"core": HowdahError("core does not compile", where="core.c:3")}, a=("core",))
    assert [module.name for module in found.choose(["b"])] == ["b"]
    with pytest.raises(HowdahError, match="core does not compile") as caught:
        found.choose(["a"])
    assert caught.value.where == "core.c:3"
    with pytest.raises(HowdahError, match="there is no module tcp_gone") as caught:
        found.choose(["tcp-gone"])
    assert "a, b" in str(caught.value)


def test_module_information_takes_the_first_of_each_name() -> None:
    content = b"junk\0license=GPL\0alias=a\0alias=b\0vermagic=6.12\0"
    assert module_information(content) == {"license": "GPL", "alias": "a", "vermagic": "6.12"}


def test_a_damaged_kernel_is_named(tmp_path: Path) -> None:
    (tmp_path / "kernel.json").write_text('{"name": "x"}')
    with pytest.raises(HowdahError, match="damaged"):
        load_kernel(tmp_path)


def test_a_ready_module_whose_name_is_built_in_is_refused(kernel: Kernel, tmp_path: Path) -> None:
    kernel.build_dir.mkdir(parents=True)
    (kernel.build_dir / "modules.builtin").write_text("kernel/net/ipv4/tcp-mine.ko\nkernel/fs/a.ko\n")
    file = tmp_path / "other.ko"
    file.write_bytes(_ko())
    with pytest.raises(HowdahError, match=r"kernel 6\.12\.1 has a module tcp_mine built in") as caught:
        _build(kernel, file)
    assert "--kernel TREE" in str(caught.value.hint)


def test_two_files_with_one_module_are_refused(kernel: Kernel, tmp_path: Path) -> None:
    for name in ("a.ko", "b.ko"):
        (tmp_path / name).write_bytes(_ko())
    wanted = [str(tmp_path / name) for name in ("a.ko", "b.ko")]
    with pytest.raises(HowdahError, match="two modules are called b"):
        build_modules(kernel, wanted, lambda _what, _done, _total: None, Cache(tmp_path / "cache"))


def test_a_module_is_known_by_its_content(kernel: Kernel, tmp_path: Path) -> None:
    """Two builds of one source have one srcversion, whatever their flags: the run of one is not that of the other."""
    file = tmp_path / "mine.ko"
    file.write_bytes(_ko())
    (first,) = _build(kernel, file)
    before = first.identity
    file.write_bytes(_ko(b"other code" + _MAGIC))
    (second,) = _build(kernel, file)
    assert first.srcversion == second.srcversion
    assert before != second.identity
    assert modules.Module("ss_a", file, "ABC", "ss_a.c").identity == second.identity
    assert [each.described(None).sha256 for each in (first, second)] == [before, second.identity], "of every engine"


def test_a_module_that_no_run_needs_is_told_where_it_does_not_build() -> None:
    error = HowdahError("does not compile", where="tcp_mine.c:3")
    found = _set("a", failed={"tcp_mine": error})
    assert found.unused(["/x/tcp-mine.c", "/x/a.c"], {"tcp_mine"}) == []
    assert found.unused(["/x/a.c", "/x/tcp-mine.c"], {"a"}) == [error]


def test_what_is_needed_is_found_by_what_the_kernel_calls_it() -> None:
    core = modules.Module("core", Path("core.ko"), None, "", loaded_as="howdah_own_core")
    user = modules.Module("a", Path("a.ko"), None, "", ("howdah_own_core",))
    assert [one.name for one in ModuleSet({"a": user, "core": core}, {}).choose(["a"])] == ["core", "a"]


def test_ones_own_module_takes_the_place_of_the_projects(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it does not build: the project's is not run instead."""
    project, entry = tmp_path / "project", tmp_path / "entry"
    project.mkdir()
    entry.mkdir()
    (project / "Kbuild").write_text("")
    (entry / "ss_search.ko").write_bytes(_MAGIC.replace(b"tcp_mine", b"ss_search"))
    (entry / "failures.json").write_text("[]")
    broken = tmp_path / "broken"
    broken.mkdir()
    failure = {"module": "ss_search", "what": "does not compile", "file": None, "line": None, "said": ""}
    (broken / "failures.json").write_text(json.dumps([failure]))
    monkeypatch.setattr(modules, "PROJECT_MODULES", project)
    monkeypatch.setattr(modules, "_build", lambda _kernel, source, *_: entry if source == project else broken)
    own = tmp_path / "ss_search.ko"
    own.write_bytes(_ko(_MAGIC.replace(b"tcp_mine", b"ss_search").replace(b"ABC", b"XYZ")))

    def provide(*wanted: str) -> ModuleSet:
        return modules.provide_modules(kernel, wanted, lambda _what, _done, _total: None, Cache(tmp_path / "cache"))

    assert provide().choose(["ss_search"])[0].srcversion == "ABC"
    assert provide(str(own)).choose(["ss_search"])[0].srcversion == "XYZ"
    source = tmp_path / "ss_search.c"
    source.write_text("")
    with pytest.raises(HowdahError, match="does not compile"):
        provide(str(source)).choose(["ss_search"])
