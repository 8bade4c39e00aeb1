# SPDX-License-Identifier: Apache-2.0
"""Kernel sources: what is taken for one, and what is said of what is not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from howdah.engine.cache import Cache
from howdah.engine.uml import package
from howdah.engine.uml.source import find_source
from howdah.errors import HowdahError

_MAKEFILE = "VERSION = 6\nPATCHLEVEL = 99\nSUBLEVEL = 1\nEXTRAVERSION = -rc2\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """The outline of a kernel tree."""
    root = tmp_path / "linux"
    for name in ("Makefile", "Kconfig", "arch/um/Makefile", "net/ipv4/tcp.c"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(_MAKEFILE if name == "Makefile" else "")
    return root


def _git(tree: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", "-C", str(tree), *identity, *arguments], check=True, capture_output=True)


@pytest.mark.parametrize("name", ["debian-6.12", "6.12", "linux-source-6.12"])
def test_the_names_of_a_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str) -> None:
    monkeypatch.setattr(package, "PACKAGE_DIRECTORY", tmp_path)
    (tmp_path / "linux-source-6.12.tar.xz").write_bytes(b"archive")
    found = find_source(name, Cache(tmp_path / "cache"))
    assert (found.name, found.release) == ("debian-6.12", (6, 12))
    assert found.archive == tmp_path / "linux-source-6.12.tar.xz"


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(HowdahError, match="not there") as caught:
        find_source(str(tmp_path / "linux"))
    assert str(caught.value).startswith(str(tmp_path / "linux"))


def test_a_directory_that_is_no_kernel(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text("all:\n")
    with pytest.raises(HowdahError, match="not a Linux source tree: it has no Kconfig"):
        find_source(str(tmp_path))


@pytest.mark.parametrize("trace", [".config", "include/config", "arch/x86/include/generated"])
def test_a_tree_built_in_place_is_refused_and_left_alone(tree: Path, trace: str) -> None:
    (tree / trace).mkdir(parents=True)
    before = sorted(tree.rglob("*"))
    with pytest.raises(HowdahError, match="inside this tree") as caught:
        find_source(str(tree))
    assert trace in caught.value.what
    assert "mrproper" in str(caught.value)
    assert sorted(tree.rglob("*")) == before


def test_a_tree_with_a_space_in_its_name_is_refused(tree: Path) -> None:
    spaced = tree.rename(tree.with_name("my linux"))
    with pytest.raises(HowdahError, match="spaces"):
        find_source(str(spaced))


def test_a_tree_without_git_is_known_by_its_files(tree: Path) -> None:
    first = find_source(str(tree))
    assert "6.99.1-rc2" in first.description
    assert first.release == (6, 99)
    assert find_source(str(tree)).key == first.key
    changed = tree / "net/ipv4/tcp.c"
    changed.write_text("int x;\n")
    second = find_source(str(tree))
    assert second.key != first.key
    os.utime(changed, ns=(0, 0))
    assert find_source(str(tree)).key != second.key


def test_a_git_tree_is_known_by_revision_and_changes(tree: Path) -> None:
    _git(tree, "init", "-q")
    _git(tree, "add", "-A")
    _git(tree, "commit", "-qm", "tree")
    clean = find_source(str(tree))
    assert "git " in clean.description
    assert "modified" not in clean.description
    os.utime(tree / "net/ipv4/tcp.c", ns=(0, 0))
    assert find_source(str(tree)).key == clean.key, "a time of change is no change"
    (tree / "net/ipv4/tcp.c").write_text("int x;\n")
    changed = find_source(str(tree))
    assert changed.key != clean.key
    assert "modified" in changed.description
    (tree / "net/ipv4/tcp_mine.c").write_text("int y;\n")
    assert find_source(str(tree)).key != changed.key, "an untracked file is a change"
