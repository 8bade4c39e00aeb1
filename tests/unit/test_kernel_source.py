# SPDX-License-Identifier: Apache-2.0
"""Kernel sources: what is taken for one, and what is said of what is not."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from howdah.build import source_package as package
from howdah.build.cache import Cache
from howdah.build.kernel_source import find_patches, find_source, patch_sets
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


def test_a_package_with_a_set_of_patches_is_another_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(package, "PACKAGE_DIRECTORY", tmp_path)
    (tmp_path / "linux-source-6.12.tar.xz").write_bytes(b"archive")
    cache = Cache(tmp_path / "cache")
    plain, patched = (find_source(name, cache) for name in ("debian-6.12", "6.12+of-2007"))
    assert (patched.name, patched.archive, patched.release) == ("debian-6.12+of-2007", plain.archive, (6, 12))
    assert patched.patches is not None
    assert patched.patches.key[:12] in patched.description
    assert plain.key != patched.key


def _patches(directory: Path, about: str, **files: str) -> Path:
    (directory / "mine").mkdir(parents=True, exist_ok=True)
    (directory / "mine" / "about.txt").write_text(about)
    for name, text in files.items():
        (directory / "mine" / f"{name}.patch").write_text(text)
    return directory


def test_the_key_of_a_set_follows_its_patches(tmp_path: Path) -> None:
    first = patch_sets(_patches(tmp_path / "a", "6.12 one\n", a="1", b="2"))["mine"]
    assert (first.kernel, first.what, [file.stem for file in first.files]) == ("debian-6.12+mine", "one", ["a", "b"])
    same = patch_sets(_patches(tmp_path / "b", "# other words\n6.12 two\n", a="1", b="2"))["mine"]
    other = patch_sets(_patches(tmp_path / "c", "6.12 one\n", a="1", b="3"))["mine"]
    assert (first.key == same.key, first.key == other.key) == (True, False)


@pytest.mark.parametrize(
    ("name", "release", "what"),
    [("of-1999", "6.12", "no set of patches called 'of-1999'"), ("of-2007", "6.1", "for 6.12 and not for 6.1")],
)
def test_a_set_that_is_not_there_for_a_release(name: str, release: str, what: str) -> None:
    with pytest.raises(HowdahError, match=what) as caught:
        find_patches(name, release, f"debian-{release}+{name}")
    assert "debian-6.12+of-2007" in str(caught.value.hint)


@pytest.mark.parametrize("about", ["", "of 6.12\n"])
def test_a_set_that_does_not_say_what_it_is_for(tmp_path: Path, about: str) -> None:
    with pytest.raises(HowdahError, match="not a set of patches"):
        patch_sets(_patches(tmp_path, about, a="1"))


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


def test_a_tree_without_git_is_known_by_its_content(tree: Path) -> None:
    first = find_source(str(tree))
    assert "6.99.1-rc2" in first.description
    assert "no git" in first.description
    assert first.release == (6, 99)
    changed = tree / "net/ipv4/tcp.c"
    changed.write_text("int x;\n")
    second = find_source(str(tree))
    assert second.key != first.key
    os.utime(changed, ns=(0, 0))
    assert find_source(str(tree)).key == second.key, "a time of change is no change"


def test_a_git_tree_is_known_by_its_content_and_told_by_its_revision(tree: Path) -> None:
    without = find_source(str(tree))
    _git(tree, "init", "-q")
    _git(tree, "add", "-A")
    _git(tree, "commit", "-qm", "tree")
    clean = find_source(str(tree))
    assert "git " in clean.description
    assert "modified" not in clean.description
    assert clean.key == without.key
    os.utime(tree / "net/ipv4/tcp.c", ns=(0, 0))
    index = (tree / ".git/index").read_bytes()
    assert "modified" not in find_source(str(tree)).description
    assert (tree / ".git/index").read_bytes() == index, "git wrote into the tree"
    (tree / "net/ipv4/tcp.c").write_text("int x;\n")
    changed = find_source(str(tree))
    assert changed.key != clean.key
    assert "modified" in changed.description
    (tree / "net/ipv4/tcp_mine.c").write_text("int y;\n")
    untracked = find_source(str(tree))
    assert untracked.key != changed.key, "an untracked file is a change"
    (tree / ".gitignore").write_text("*.inc\n")
    ignoring = find_source(str(tree))
    (tree / "net/ipv4/mine.inc").touch()
    assert find_source(str(tree)).key != ignoring.key, "so is one that git ignores"
    _git(tree, "add", "-A", "--force")
    _git(tree, "commit", "-qm", "all of it")
    committed = find_source(str(tree))
    assert "modified" not in committed.description
