# SPDX-License-Identifier: Apache-2.0
"""The agent loads modules behind those they depend on; the system call is replaced."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from howdah.agent import module, settings
from howdah.agent.error import AgentError
from howdah.agent.kernellog import KernelLog
from howdah.agent.module import describe_modules, load_modules, names_in_kernel, parameters_of
from howdah.agent.settings import Settings
from howdah.linux import syscall
from howdah.record.agent import ModuleRecord


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Name and parameters of every module the kernel was given, in order."""
    calls: list[tuple[str, str]] = []

    def finit_module(descriptor: int, parameters: str) -> None:
        calls.append((Path(f"/proc/self/fd/{descriptor}").readlink().stem, parameters))

    monkeypatch.setattr(syscall, "finit_module", finit_module)
    return calls


def _write(directory: Path, **depends: str) -> None:
    for name, names in depends.items():
        content = f"\x7fELF\0license=GPL\0depends={names}\0name={name}\0parm=size:of it\0parmtype=on:bool\0"
        (directory / f"{name}.ko").write_bytes(content.encode())


def test_dependencies_come_first(tmp_path: Path, loaded: list[tuple[str, str]]) -> None:
    _write(tmp_path, a_plug_in="z_core,built_in", traffic="", z_core="y_base", y_base="")
    names = load_modules(tmp_path, {"z_core": {"size": "3", "on": "1"}})
    assert names == [name for name, _ in loaded]
    assert names.index("y_base") < names.index("z_core") < names.index("a_plug_in")
    assert "traffic" in names
    assert dict(loaded)["z_core"] == "size=3 on=1"


def test_a_parameter_the_module_does_not_have_is_refused_before_the_kernel_ignores_it(
    tmp_path: Path, loaded: list[tuple[str, str]]
) -> None:
    _write(tmp_path, a="")
    with pytest.raises(AgentError, match=r"a\.ko: it has no parameter sise; its parameters are on, size"):
        load_modules(tmp_path, {"a": {"sise": "3"}})
    assert loaded == []


def test_parameters_are_found_by_description_type_and_symbol(tmp_path: Path) -> None:
    said = b"\x05parm=first:said\0parmtype=second:uint\0parm=first:again\0"
    symbols = b"__param_str_third\0__param_third\0x.parm=other:no\0"
    (tmp_path / "a.ko").write_bytes(said + symbols)
    assert parameters_of(tmp_path / "a.ko") == ["first", "second", "third"]


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize(
    ("asked", "found", "same"),
    [
        ("20", "20", True),
        ("0x14", "20", True),
        ("on", "Y", True),
        ("0", "N", True),
        ("20", "21", False),
        ("1,2", "1,2", True),
        ("1,2", "1", False),
        ("fast", "fast", True),
        ("fast", "slow", False),
    ],
)
def test_the_value_the_kernel_shows_is_compared_with_the_one_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, found: str, same: bool
) -> None:
    _write(tmp_path, a="")
    shown = tmp_path / "sys/a/parameters/size"
    shown.parent.mkdir(parents=True)
    (tmp_path / "sys/a/initstate").write_text("live\n")
    shown.write_text(found + "\n")
    monkeypatch.setattr(module, "SYS_MODULE", tmp_path / "sys")
    if same:
        assert load_modules(tmp_path, {"a": {"size": asked}}) == ["a"]
    else:
        with pytest.raises(AgentError, match=f"size={asked} was asked for, and the module has size={found}"):
            load_modules(tmp_path, {"a": {"size": asked}})


def test_where_the_kernel_lives_on_parameters_are_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that is loaded already would keep those of the run before, and this one would leave it its own."""
    given: list[str] = []
    monkeypatch.setattr(syscall, "finit_module", lambda _descriptor, parameters: given.append(parameters))
    _write(tmp_path, a="")
    shown = tmp_path / "sys/a/parameters/size"
    shown.parent.mkdir(parents=True)
    (tmp_path / "sys/a/initstate").write_text("live\n")
    shown.write_text("3\n")
    monkeypatch.setattr(module, "SYS_MODULE", tmp_path / "sys")
    monkeypatch.setattr(settings, "SYS_MODULE", tmp_path / "sys")
    lasting = Settings(tmp_path / "journal")
    load_modules(tmp_path, {"a": {"size": "20"}}, lasting)
    assert (given, shown.read_text()) == ([""], "20")
    assert lasting.restore() == []
    assert shown.read_text().strip() == "3"
    with pytest.raises(AgentError, match=r"load module a\.ko: parameter on=1: No such file"):
        load_modules(tmp_path, {"a": {"size": "20", "on": "1"}}, lasting)


def test_no_directory_and_no_modules(tmp_path: Path) -> None:
    assert load_modules(tmp_path / "none", {}) == load_modules(tmp_path, {}) == []


@pytest.mark.usefixtures("loaded")
def test_modules_in_a_circle_are_named(tmp_path: Path) -> None:
    _write(tmp_path, a="b", b="a", c="")
    with pytest.raises(AgentError, match="a, b"):
        load_modules(tmp_path, {})


def test_what_the_kernel_refuses_is_named_with_parameters_and_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_descriptor: int, _parameters: str) -> None:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(syscall, "finit_module", refuse)
    monkeypatch.setattr(KernelLog, "texts", lambda _self: ["a: `x' invalid for parameter `size'"])
    _write(tmp_path, a="")
    with pytest.raises(AgentError) as caught:
        load_modules(tmp_path, {"a": {"size": "x", "on": "1"}})
    for part in ("a.ko", "size=x on=1", "Invalid argument", "`x' invalid for parameter `size'"):
        assert part in str(caught.value)


def _write_one(file: Path, **information: str) -> None:
    said = "".join(f"\0{name}={value}" for name, value in information.items())
    file.write_bytes(f"\x7fELF{said}\0".encode())


def test_a_file_may_be_called_otherwise_than_its_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded: list[tuple[str, str]]
) -> None:
    """Plans know the file's name; parameters under it reach the module, and so do dependencies of the kernel's name."""
    _write_one(tmp_path / "tcp_mine.ko", name="howdah_own_tcp_mine", depends="own_core", parmtype="gain:int")
    _write_one(tmp_path / "z_core.ko", name="own_core", depends="")
    shown = tmp_path / "sys/howdah_own_tcp_mine/parameters/gain"
    shown.parent.mkdir(parents=True)
    (shown.parents[1] / "initstate").write_text("live\n")
    (shown.parents[1] / "srcversion").write_text("ABC\n")
    shown.write_text("3\n")
    monkeypatch.setattr(module, "SYS_MODULE", tmp_path / "sys")
    assert load_modules(tmp_path, {"tcp_mine": {"gain": "3"}}) == ["z_core", "tcp_mine"]
    assert loaded == [("z_core", ""), ("tcp_mine", "gain=3")]
    names = names_in_kernel(tmp_path)
    assert names == {"tcp_mine": "howdah_own_tcp_mine", "z_core": "own_core"}
    assert describe_modules(["tcp_mine"], names) == {"tcp_mine": ModuleRecord("ABC", {"gain": "3"})}
    shown.write_text("4\n")
    with pytest.raises(AgentError, match="gain=3 was asked for, and the module has gain=4"):
        load_modules(tmp_path, {"tcp_mine": {"gain": "3"}})


def test_a_module_whose_name_is_built_in_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loaded: list[tuple[str, str]]
) -> None:
    _write_one(tmp_path / "tcp_cubic.ko", name="tcp_cubic")
    (tmp_path / "sys/tcp_cubic/parameters").mkdir(parents=True)
    monkeypatch.setattr(module, "SYS_MODULE", tmp_path / "sys")
    with pytest.raises(AgentError, match="has a module tcp_cubic built in and loads no second one"):
        load_modules(tmp_path, {})
    assert loaded == []


@pytest.mark.parametrize(("there", "same"), [("ABC", True), ("XYZ", False), (None, False)])
def test_only_the_very_same_module_may_be_loaded_already(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: str | None, same: bool
) -> None:
    """A module that finds the name of its algorithm taken is refused by the same errno."""

    def refuse(_descriptor: int, _parameters: str) -> None:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))

    monkeypatch.setattr(syscall, "finit_module", refuse)
    monkeypatch.setattr(KernelLog, "texts", lambda _self: ["TCP: reno already registered"])
    monkeypatch.setattr(module, "SYS_MODULE", tmp_path / "sys")
    _write_one(tmp_path / "tcp_mine.ko", name="tcp_mine", srcversion="ABC")
    if there is not None:
        (tmp_path / "sys/tcp_mine").mkdir(parents=True)
        (tmp_path / "sys/tcp_mine/initstate").write_text("live\n")
        (tmp_path / "sys/tcp_mine/srcversion").write_text(f"{there}\n")
    if same:
        assert load_modules(tmp_path, {}) == ["tcp_mine"]
    else:
        with pytest.raises(
            AgentError, match=r"tcp_mine\.ko: the kernel refused it: File exists.*reno already registered"
        ):
            load_modules(tmp_path, {})
