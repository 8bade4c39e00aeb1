# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING.md names files that exist, and commits that exist and touch them."""

from __future__ import annotations

import re
import subprocess
from fnmatch import fnmatch
from pathlib import Path

import pytest

from howdah.place import PROJECT

TEXT = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CHANGES = re.split(r"^### ", TEXT.partition("## Ten usual changes")[2], flags=re.MULTILINE)[1:]
_COMMIT = re.compile(r"`([0-9a-f]{7,40})`")
_FILE = re.compile(r"`([\w.*-]+(?:/[\w.*-]*)+)`")


def _git(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", "-C", str(PROJECT), *arguments], capture_output=True, text=True, check=False)


def _files(text: str) -> list[str]:
    """Patterns of the files that a section names."""
    return [name.replace("NAME", "*").rstrip("/") for name in _FILE.findall(text)]


def _title(section: str) -> str:
    return section.partition("\n")[0]


def test_there_are_ten_with_commits_to_imitate() -> None:
    assert len(CHANGES) == 10
    assert all(_COMMIT.search(section) and len(_files(section)) > 0 for section in CHANGES)


def test_every_file_exists() -> None:
    missing = {name for name in _files(TEXT) if not any(PROJECT.glob(name))}
    assert missing == set()


@pytest.mark.parametrize("section", CHANGES, ids=_title)
def test_every_commit_exists_and_touches_files_of_its_list(section: str) -> None:
    """A file counts under its present name in any directory: older commits have it elsewhere."""
    if _git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        pytest.skip("this is no clone with all commits")
    names = [Path(name).name for name in _files(section)]
    for commit in _COMMIT.findall(section):
        assert _git("merge-base", "--is-ancestor", commit, "HEAD").returncode == 0, f"{commit} is not in the history"
        touched = _git("show", "--format=", "--name-only", commit).stdout.split()
        assert any(fnmatch(Path(file).name, name) for file in touched for name in names), f"{commit} touches none"
