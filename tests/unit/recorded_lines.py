# SPDX-License-Identifier: Apache-2.0
"""Facts of checks and of metrics as lines of text, compared with recorded ones: fields, not wording.

After a wanted change set HOWDAH_RECORD=1, run the tests that compare, and read the difference.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from howdah.record.verdict import Check

GOLDEN = Path(__file__).resolve().parents[1] / "golden"


def compare(name: str, lines: Iterable[str]) -> None:
    """With the file of that name below tests/golden."""
    file, text = GOLDEN / name, "".join(f"{line}\n" for line in lines)
    if os.environ.get("HOWDAH_RECORD"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def line_of(check: Check) -> str:
    words = (check.measured, check.expected, check.tolerance)
    measured, expected, tolerance = (_shown(value) for value in words)
    return (
        f"{check.stage}: {check.name}: {check.ok}: {measured} of {expected} ± {tolerance} {check.unit or ''}".rstrip()
    )


def compare_checks(name: str, judged: Iterable[tuple[str, bool | None, Check]]) -> None:
    """Each with its title and whether it must pass; numbers and words are those of a file below tests/golden/checks."""
    lines = []
    for title, ok, check in judged:
        assert check.ok is ok, title
        lines += [f"# {title}", line_of(check), f"  {check.message}"]
    compare(f"checks/{name}.txt", lines)


def line_of_row(row: Mapping[str, Any], common: Iterable[str]) -> str:
    """Without what all rows of the run have in common; ``why`` counts as being there."""
    of_its_own = set(row) - set(common) - {"metric", "value", "unit", "why"}
    extra = ", ".join(f"{name} {row[name]}" for name in sorted(of_its_own) if row[name] is not None)
    value = f"{_shown(row['value'])} {row['unit']}".rstrip()
    return f"{row['metric']}: {value} ({extra}){' why' if 'why' in row else ''}"


def line_of_cross_check(found: Mapping[str, Any]) -> str:
    sources = ", ".join(f"{name} {_shown(value)}" for name, value in found["sources"].items())
    return f"cross-check of {found['metric']} (flow {found['flow']}): {sources}: {found['agree']}"


def _shown(value: Any) -> str:
    """Another processor may add in another order."""
    return f"{value:.9g}" if isinstance(value, float) else str(value)
