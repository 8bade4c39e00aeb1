# SPDX-License-Identifier: Apache-2.0
"""The agent loads modules behind those they depend on; the system call is replaced."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from howdah.agent import syscall
from howdah.agent.error import AgentError
from howdah.agent.module import load_modules


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
        content = f"\x7fELF\0license=GPL\0depends={names}\0name={name}\0"
        (directory / f"{name}.ko").write_bytes(content.encode())


def test_dependencies_come_first(tmp_path: Path, loaded: list[tuple[str, str]]) -> None:
    _write(tmp_path, a_plug_in="z_core,built_in", traffic="", z_core="y_base", y_base="")
    names = load_modules(tmp_path, {"z_core": {"size": "3", "on": "1"}})
    assert names == [name for name, _ in loaded]
    assert names.index("y_base") < names.index("z_core") < names.index("a_plug_in")
    assert "traffic" in names
    assert dict(loaded)["z_core"] == "size=3 on=1"


def test_no_directory_and_no_modules(tmp_path: Path) -> None:
    assert load_modules(tmp_path / "none", {}) == load_modules(tmp_path, {}) == []


@pytest.mark.usefixtures("loaded")
def test_modules_in_a_circle_are_named(tmp_path: Path) -> None:
    _write(tmp_path, a="b", b="a", c="")
    with pytest.raises(AgentError, match="a, b"):
        load_modules(tmp_path, {})


def test_what_the_kernel_refuses_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int, _parameters: str) -> None:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT))

    monkeypatch.setattr(syscall, "finit_module", refuse)
    _write(tmp_path, a="")
    with pytest.raises(AgentError, match=r"a\.ko"):
        load_modules(tmp_path, {})
