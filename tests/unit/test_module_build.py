# SPDX-License-Identifier: Apache-2.0
"""Modules that cannot be used are refused with their place and the reason; no compiler is run here."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.engine.cache import Cache
from howdah.engine.supervise import CommandFailedError
from howdah.engine.uml import modules
from howdah.engine.uml.kernel import Kernel, load_kernel, module_information
from howdah.engine.uml.modules import build_modules
from howdah.errors import HowdahError

_MAGIC = b"\0vermagic=6.12.1 mod_unload \0name=tcp_mine\0srcversion=ABC\0"


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
    file.write_bytes(b"\x7fELF" + _MAGIC)
    (module,) = _build(kernel, file)
    assert (module.name, module.file, module.srcversion) == ("tcp_mine", file, "ABC")


def test_a_module_of_another_kernel_is_refused_with_both_versions(kernel: Kernel, tmp_path: Path) -> None:
    file = tmp_path / "mine.ko"
    file.write_bytes(_MAGIC.replace(b"6.12.1 mod", b"6.1.0-9-amd64 SMP mod"))
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


def test_a_missing_file_and_a_directory_without_kbuild(kernel: Kernel, tmp_path: Path) -> None:
    with pytest.raises(HowdahError, match="no such module"):
        _build(kernel, tmp_path / "gone.c")
    (tmp_path / "sources").mkdir()
    with pytest.raises(HowdahError, match="Kbuild"):
        _build(kernel, tmp_path / "sources")


def test_the_compilers_first_error_is_told_with_the_users_own_file(kernel: Kernel, tmp_path: Path) -> None:
    build, log = tmp_path / "build", tmp_path / "log"
    source = tmp_path / "tcp_mine.c"
    source.write_text("")
    log.write_text(
        f"  CC [M]  {build}/tcp_mine.o\n"
        f"{build}/tcp_mine.c:7:1: warning: unused\n"
        f"{build}/tcp_mine.c:12:5: error: 'struct tcp_sock' has no member named 'cwnd'\n"
        "   12 |     tp->cwnd = 1;\n"
        "make[1]: *** [tcp_mine.o] Error 1\n"
    )
    error = modules._failure(CommandFailedError(["make"], 2, []), kernel, source, build, log)
    assert error.where == f"{source}:12"
    assert "kernel 6.12.1" in error.what
    assert "no member named 'cwnd'" in error.what
    assert "tp->cwnd = 1;" in str(error.hint)
    assert str(log) in str(error.hint)


def test_symbols_the_kernel_does_not_export_are_named(kernel: Kernel, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text('ERROR: modpost: "tcp_secret" [/x/tcp_mine.ko] undefined!\n')
    error = modules._failure(CommandFailedError(["make"], 2, []), kernel, tmp_path / "m.c", tmp_path / "b", log)
    assert "does not export: tcp_secret" in error.what


def test_module_information_takes_the_first_of_each_name(tmp_path: Path) -> None:
    file = tmp_path / "m.ko"
    file.write_bytes(b"junk\0license=GPL\0alias=a\0alias=b\0vermagic=6.12\0")
    assert module_information(file) == {"license": "GPL", "alias": "a", "vermagic": "6.12"}


def test_a_damaged_kernel_is_named(tmp_path: Path) -> None:
    (tmp_path / "kernel.json").write_text('{"name": "x"}')
    with pytest.raises(HowdahError, match="damaged"):
        load_kernel(tmp_path)
