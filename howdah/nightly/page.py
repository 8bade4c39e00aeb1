# SPDX-License-Identifier: Apache-2.0
"""The night as one HTML file: the matrix of cells, then each cell with its changes and the command that repeats it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from howdah.nightly.change import CellResult, Comparison, label
from howdah.nightly.night import Night, largest
from howdah.nightly.significance import ALPHA
from howdah.number import significant
from howdah.place import REPORTS
from howdah.report.page import write
from howdah.report.template import framed, templates_of

_PLACE = REPORTS / "nightly"
_SHARED = ("tokens.css", "page.css", "table.css", "print.css")
_STYLES = (*(REPORTS / "css" / name for name in _SHARED), _PLACE / "css/nightly.css")
_MOST_ROWS = 60
_SHORT = {"improvement": "better"}


@dataclass(frozen=True)
class PageRow:
    """One measure, as text."""

    name: str
    baseline: str
    tonight: str
    difference: str
    margin: str
    p: str
    outcome: str
    css: str


@dataclass(frozen=True)
class CellView:
    cell: CellResult
    anchor: str
    label: str
    css: str
    reasons: list[str]
    notes: list[str]
    again: str
    look: str
    report: str
    rows: list[PageRow]
    summary: str


@dataclass(frozen=True)
class MatrixRow:
    name: str
    cells: list[CellView | None]


@dataclass(frozen=True)
class PageGroup:
    item: str
    rows: list[MatrixRow]


@cache
def _template() -> Any:
    return templates_of(_PLACE / "templates").get_template("page.html.j2")


def write_page(night: Night, target: Path) -> Path:
    """Write the page to ``target``, with links to existing reports. Raises HowdahError."""
    views = [_view(night, cell, target.parent) for cell in night.cells]
    kernels = list(dict.fromkeys(cell.kernel for cell in night.cells))
    page = _template().render(
        night=night,
        headline=headline(night),
        kernels=[Path(kernel).name if "/" in kernel else kernel for kernel in kernels],
        groups=_groups(views, kernels),
        views=sorted(views, key=lambda view: not view.reasons),
        facts=_facts(night),
        **framed(_STYLES),
    )
    return write(page, target)


def headline(night: Night) -> str:
    """``3 of 40 cells fail, 2 regression, 1 changed, too few repetitions, 2 better``."""
    states, cells = night.states, len(night.cells)
    failing = len(night.failing)
    words = [f"{failing} of {cells} cells fail" if failing else f"none of {cells} cells fails"]
    told = ("regression", "not repeatable", "howdah changed", "unproven", "cannot tell")
    better = ("improvement", "new", "not built", "gone")
    words += [f"{states[state]} {_SHORT.get(state, label(state))}" for state in (*told, *better) if states[state]]
    return ", ".join(words)


def _groups(views: list[CellView], kernels: list[str]) -> list[PageGroup]:
    groups = []
    for item in dict.fromkeys(view.cell.item for view in views):
        some = [view for view in views if view.cell.item == item]
        rows = []
        for slug in dict.fromkeys(view.cell.slug for view in some):
            found = {view.cell.kernel: view for view in some if view.cell.slug == slug}
            rows.append(MatrixRow(slug, [found.get(kernel) for kernel in kernels]))
        groups.append(PageGroup(item, rows))
    return groups


def _view(night: Night, cell: CellResult, directory: Path) -> CellView:
    changed = [each for each in cell.comparisons if each.outcome != "equal"]
    shown = sorted(largest(changed), key=_rank)[:_MOST_ROWS]
    report = night.runs / cell.experiment / "report.html"
    equal = len(cell.comparisons) - len(changed)
    summary = f"{len(changed)} measures differ, {equal} are equal in every repetition"
    if len(changed) > len(shown):
        summary += f"; the first {len(shown)}"
    reasons = night.reasons(cell)
    return CellView(
        cell=cell,
        anchor="cell-" + re.sub(r"[^a-z0-9]+", "-", cell.id.lower()).strip("-"),
        label=f"{label(cell.state)} {len(reasons)}" if cell.reasons and reasons else label(cell.state),
        css=_css(cell.state),
        reasons=reasons,
        notes=night.hints(cell),
        again=night.command(cell) if reasons else "",
        look=night.look(cell) if reasons else "",
        report=os.path.relpath(report, directory) if report.exists() else "",
        rows=[_row(each) for each in shown],
        summary=summary,
    )


def _rank(each: Comparison) -> tuple[int, bool]:
    order = {"not repeatable": 0, "howdah changed": 0, "regression": 0, "vanished": 0, "unproven": 1}
    return order.get(each.outcome, 2 if each.outcome in ("improvement", "appeared") else 3), not each.is_primary


def _css(state: str) -> str:
    return state.replace(" ", "-")


def _row(each: Comparison) -> PageRow:
    unit = f" {each.unit}" if each.unit not in ("", "ratio") else ""
    difference = ""
    if each.difference is not None:
        difference = f"{_signed(each.difference)}"
        if each.low is not None and each.high is not None:
            difference += f" ({each.spread_words}: {_signed(each.low)} to {_signed(each.high)})"
        difference += unit
    return PageRow(
        name=f"{each.name} (primary)" if each.is_primary else each.name,
        baseline=_value(each.baseline, unit),
        tonight=_value(each.tonight, unit),
        difference=difference,
        margin=f"{significant(each.margin, 2)}{unit}"
        if each.margin is not None and each.difference is not None
        else "",
        p="" if each.adjusted is None else f"{each.adjusted:.2g}",
        outcome=label(each.outcome),
        css=_css(each.outcome),
    )


def _value(value: float | str | None, unit: str) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else f"{significant(value)}{unit}"


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else ''}{significant(value, 3)}"


def _facts(night: Night) -> list[tuple[str, str]]:
    return [
        ("Begun", night.started),
        ("Wall time", f"{night.wall_s:.0f} s"),
        ("Runs", f"{night.runs_made} made, {night.runs_found} reused"),
        (
            "Comparisons",
            f"{night.primary_tests} of primary measures, {night.tests - night.primary_tests} of others, each family "
            f"corrected by itself (Holm); chance of any false regression {ALPHA:.0%} at most",
        ),
        ("Baseline", night.baseline_name),
    ]
