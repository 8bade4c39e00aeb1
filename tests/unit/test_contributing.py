# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING.md names files that exist, and of each usual change some of them and commits to imitate."""

from __future__ import annotations

import re

from howdah.place import PROJECT

TEXT = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_COMMIT = re.compile(r"`[0-9a-f]{7,40}`")
_FILE = re.compile(r"`([\w.*-]+(?:/[\w.*-]*)+)`")


def _files(text: str) -> list[str]:
    """Patterns of the files that a text names."""
    return [name.replace("NAME", "*").rstrip("/") for name in _FILE.findall(text)]


def test_every_file_exists() -> None:
    names = _files(TEXT)
    assert len(names) > 50
    assert {name for name in names if not any(PROJECT.glob(name))} == set()


def test_each_usual_change_has_files_and_commits() -> None:
    changes = re.split(r"^### ", TEXT.partition("usual changes\n")[2], flags=re.MULTILINE)[1:]
    assert changes
    assert [each.partition("\n")[0] for each in changes if not (_COMMIT.search(each) and _files(each))] == []
