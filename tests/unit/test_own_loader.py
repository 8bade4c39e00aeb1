# SPDX-License-Identifier: Apache-2.0
"""A kernel is started by the guest tree's C library where that is as new as the kernel needs."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from howdah.build.cache import Cache, file_sha256
from howdah.build.guest_tree import GuestTree, image_of_tree, needed_glibc, with_loader
from howdah.build.modules import ModuleSet
from howdah.build.tools import Tools, build_tools
from howdah.engine.engine_bundle import EngineBundle
from howdah.engine.uml.build import Built
from howdah.engine.uml.sent import add_part


def _tree(version: str) -> GuestTree:
    return GuestTree(Path("/tree"), "key", "sha", {"libc6": version} if version else {}, {})


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Tools:
    return build_tools(Cache(tmp_path_factory.mktemp("cache")))


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("program")
    (place / "hello.c").write_text('#include <stdio.h>\nint main(void) { return puts("hello") < 0; }\n')
    subprocess.run(["gcc", "-no-pie", "-o", str(place / "hello"), str(place / "hello.c")], check=True)
    return place / "hello"


def test_the_program_is_the_same_but_for_its_loader(program: Path, tmp_path: Path) -> None:
    content = program.read_bytes()
    changed = with_loader(content, "./ld.so")
    assert changed is not None
    assert len(changed) == len(content)
    assert sum(one != other for one, other in zip(content, changed, strict=True)) <= 27
    (tmp_path / "hello").write_bytes(changed)
    (tmp_path / "hello").chmod(0o755)
    with pytest.raises(FileNotFoundError):
        subprocess.run([str(tmp_path / "hello")], check=True, cwd=tmp_path)
    loader = next(word for word in _said("ldd", str(program)).split() if word.startswith("/lib") and "ld-linux" in word)
    (tmp_path / "ld.so").symlink_to(loader)
    assert subprocess.run([str(tmp_path / "hello")], check=True, cwd=tmp_path, capture_output=True).stdout == b"hello\n"


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_static_program_and_a_name_that_does_not_fit_are_left(tools: Tools, program: Path) -> None:
    assert with_loader(tools.launch.read_bytes(), "./ld.so") is None
    assert with_loader(program.read_bytes(), "/a/name/that/is/longer/than/the/one/in/the/file") is None


def test_the_launcher_needs_no_library(tools: Tools) -> None:
    assert needed_glibc(tools.shim.read_bytes()) > ()
    assert "INTERP" not in _said("readelf", "--program-headers", str(tools.launch))


def test_an_older_tree_does_not_start_a_newer_kernel(program: Path, tools: Tools, tmp_path: Path) -> None:
    cache, sha256 = Cache(tmp_path), file_sha256(program)
    assert image_of_tree(program, sha256, tools, _tree("2.5-1"), cache) is None
    assert image_of_tree(program, sha256, tools, _tree(""), cache) is None
    found = image_of_tree(program, sha256, tools, _tree("2.99-1+deb13u1"), cache)
    assert found is not None
    assert b"./ld.so\0" in found.read_bytes()
    assert image_of_tree(program, sha256, tools, _tree("2.99-2"), cache) == found


@pytest.mark.parametrize(("started", "asked"), [(None, {"linux", "shim.so"}), (Path("/started/linux"), set())])
def test_a_worker_is_asked_for_its_c_library_where_it_is_used(
    started: Path | None, asked: set[str], tmp_path: Path
) -> None:
    for kind in ("tool", "kernel", "tree", "agent"):
        (tmp_path / kind / "abc").mkdir(parents=True)
    built = SimpleNamespace(
        tools=SimpleNamespace(directory=tmp_path / "tool/abc"),
        kernel=SimpleNamespace(directory=tmp_path / "kernel/abc", name="debian-6.12", source=""),
        tree=SimpleNamespace(root=tmp_path / "tree/abc/root"),
        agent=tmp_path / "agent/abc",
        module_set=ModuleSet({}, {}),
        started=started,
    )
    bundle = EngineBundle("uml")
    add_part(bundle, "part", cast("Built", built), Cache(tmp_path / "cache"))
    assert {name for piece in bundle.pieces.values() for name in piece.programs} == asked
