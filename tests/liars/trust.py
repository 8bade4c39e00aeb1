# SPDX-License-Identifier: Apache-2.0
"""tests/liars/README.md, made from the registry. ``python -m tests.liars.trust`` writes it."""

from __future__ import annotations

import sys
from pathlib import Path

from howdah.record.verdict import ACCOUNTING, AFTER, BEFORE, COLLECTION, DURING, ENGINE
from tests.liars.liar import ABOUTS, About, Catch, Liar
from tests.liars.registry import LIARS

PAGE = Path(__file__).with_name("README.md")
_HEAD = """\
<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Made by `python -m tests.liars.trust`; do not edit. -->
# The liars
[docs/trust.md](../../docs/trust.md#the-promise) says what they are.
"""

_HEADINGS: dict[About, str] = {
    "path": "Lies of the path",
    "run": "Lies of the run",
    "clock": "Lies of the clock",
    "capture": "Lies of what was recorded",
    "table": "Lies of the tables",
    "result": "Lies of a result",
    "file": "Lies of files that somebody changed after the run",
    "module": "Lies of a module or an algorithm",
    "baseline": "Lies of a night or its baseline",
    "comparison": "Lies of a comparison or a claim",
}
_STAGES = {
    BEFORE: "before the flows",
    DURING: "during the flows",
    AFTER: "after the flows",
    ACCOUNTING: "accounting",
    COLLECTION: "collection",
    ENGINE: "engine",
}


def page() -> str:
    """The page as it should be."""
    parts = [f"{_HEAD}There are {len(LIARS)}, each a test here.\n"]
    for about in ABOUTS:
        rows = [liar for liar in LIARS if liar.about == about]
        parts.append(f"## {_HEADINGS[about]}\n\n| liar | the lie | caught by |\n|---|---|---|\n" + _rows(rows))
    return "\n".join(parts)


def _rows(liars: list[Liar]) -> str:
    return "".join(f"| `{liar.name}` | {_cell(liar.lie)} | {_caught(liar.caught)} |\n" for liar in liars)


def _caught(catch: Catch) -> str:
    if catch.kind == "check":
        return f"check **{_cell(catch.name)}** ({_STAGES[catch.stage]})"
    what = f"{catch.kind} **{_cell(catch.name)}**"
    return f"{what}: “{_cell(catch.words)}”"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
