# SPDX-License-Identifier: Apache-2.0
"""What a profile cannot express, and the nearest alternative (unsayable.yaml), for errors and the reference page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from ruamel.yaml import YAML

from howdah.profile.source import Path_

TITLE = "What a profile cannot say"
_TABLE = Path(__file__).with_name("unsayable.yaml")


@dataclass(frozen=True)
class Unsayable:
    """Something a profile cannot express. ``words`` mean it in any section, the words of ``at`` only in theirs;
    ``nearest``, the alternative, is Markdown."""

    what: str
    nearest: str
    words: Sequence[str] = ()
    at: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def is_meant(self, text: str, section: str) -> bool:
        words = (*self.words, *self.at.get(section, ()))
        return any(f" {word} " in text or f" {word}s " in text for word in words)

    def hint(self) -> str:
        return f"a profile has no {self.what}; nearest: {self.nearest.replace('`', '')}"


@cache
def table() -> tuple[Unsayable, ...]:
    """All rows of unsayable.yaml, in order."""
    return tuple(Unsayable(**row) for row in YAML(typ="safe").load(_TABLE.read_text(encoding="utf-8")))


def unsayable(text: str, section: Path_ = ()) -> Unsayable | None:
    """What an unknown name or value in ``section`` probably means, or None."""
    words = f" {re.sub(r'[^a-z0-9]+', ' ', text.lower()).strip()} "
    place = section_name(section)
    return next((row for row in table() if row.is_meant(words, place)), None)


def section_name(path: Path_) -> str:
    """The name of a section in messages: ``("groups", 0, "web")`` is ``groups[…].web``."""
    return "".join("[…]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")
