# SPDX-License-Identifier: Apache-2.0
"""The night as KTAP (Documentation/dev-tools/ktap.rst of Linux), which the kernel's test harnesses read: a subtest an
experiment, a case a cell. What a case took is a diagnostic line, since KTAP has no field for it."""

from __future__ import annotations

from itertools import groupby

from howdah.nightly.cell import CellResult, label, one_line
from howdah.nightly.night import Night
from howdah.nightly.setting import settings

_INDENT = "  "


def ktap(night: Night) -> str:
    """One document. A case that has nothing to be compared with, and need not have, is skipped."""
    groups = [(name, list(cells)) for name, cells in groupby(night.cells, key=lambda cell: cell.experiment)]
    lines = ["KTAP version 1", f"1..{len(groups)}"]
    ran_on = settings(night)
    for number, (experiment, cells) in enumerate(groups, start=1):
        lines += [_INDENT + line for line in _subtest(night, experiment, cells, ran_on[experiment])]
        sign = "not ok" if any(night.fails(cell) for cell in cells) else "ok"
        lines.append(f"{sign} {number} {_name(experiment)}{_skipped(night, cells)}")
    return "\n".join(lines) + "\n"


def _subtest(night: Night, experiment: str, cells: list[CellResult], ran_on: str) -> list[str]:
    lines = ["KTAP version 1", f"# Subtest: {_name(experiment)}", f"1..{len(cells)}"]
    lines.append(f"# kernels and paths: {_clean(ran_on)}")
    for number, cell in enumerate(cells, start=1):
        lines += [f"# {cell.slug}: {_clean(text)}" for text in [*night.reasons(cell), *night.hints(cell)]]
        if night.fails(cell):
            lines.append(f"# {cell.slug}: again: {_clean(night.command(cell))}")
        lines += [f"# {cell.slug}: state: {label(cell.state)}", f"# {cell.slug}: duration_ms: {cell.wall_s * 1000:.0f}"]
        sign = "not ok" if night.fails(cell) else "ok"
        lines.append(f"{sign} {number} {_name(cell.slug)}{_skipped(night, [cell])}")
    return lines


def _skipped(night: Night, cells: list[CellResult]) -> str:
    """The directive of what was not compared; empty where something was, or where it fails."""
    if any(night.fails(cell) or cell.state not in ("not built", "new", "gone") for cell in cells):
        return ""
    return f" # SKIP {', '.join(dict.fromkeys(label(cell.state) for cell in cells))}"


def _name(text: str) -> str:
    """Without ``#``, which would begin a directive."""
    return _clean(text).replace("#", "_").strip() or "unnamed"


def _clean(text: str) -> str:
    return one_line(text)
