# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING.md has ten usual changes, each with commits to imitate, and names files that exist."""

from __future__ import annotations

import re

from howdah.place import PROJECT

TEXT = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
CHANGES = re.split(r"^### ", TEXT.partition("## Ten usual changes")[2], flags=re.MULTILINE)[1:]
_COMMIT = re.compile(r"`([0-9a-f]{7,40})`")
_FILE = re.compile(r"`([\w.*-]+(?:/[\w.*-]*)+)`")


def _files(text: str) -> list[str]:
    """Patterns of the files that a section names."""
    return [name.replace("NAME", "*").rstrip("/") for name in _FILE.findall(text)]


def test_there_are_ten_with_commits_to_imitate() -> None:
    assert len(CHANGES) == 10
    assert all(_COMMIT.search(section) and len(_files(section)) > 0 for section in CHANGES)


def test_every_file_exists() -> None:
    missing = {name for name in _files(TEXT) if not any(PROJECT.glob(name))}
    assert missing == set()
