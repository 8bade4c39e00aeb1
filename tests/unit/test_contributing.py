# SPDX-License-Identifier: Apache-2.0
"""CONTRIBUTING.md names files that exist."""

from __future__ import annotations

import re

from howdah.place import PROJECT

TEXT = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_FILE = re.compile(r"`([\w.*-]+(?:/[\w.*-]*)+)`")


def _files(text: str) -> list[str]:
    """Patterns of the files that a text names."""
    return [name.replace("NAME", "*").rstrip("/") for name in _FILE.findall(text)]


def test_every_file_exists() -> None:
    names = _files(TEXT)
    assert len(names) > 50
    assert {name for name in names if not any(PROJECT.glob(name))} == set()
