# SPDX-License-Identifier: Apache-2.0
"""Checks figures against their profile before anything runs: measures, flows, axes, values and printed numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from howdah.metric import Metric
from howdah.profile.claim import SelectorSection
from howdah.profile.claim_check import ALGORITHM, TRAFFIC_AXIS, ClaimCheck
from howdah.profile.control import CONTROL_AXIS, axis_key
from howdah.profile.figure import SERIES_PANELS, ColumnSection, FigureSection
from howdah.quantity import QuantityError

NO_CONTROL = "none"
_PER_CENT = Metric("ratio")


class FigureCheck(ClaimCheck):
    """Checks figures against what they may refer to: the same as for claims."""

    def check_figures(self, figures: Sequence[FigureSection]) -> None:
        """Raise ProfileError at the first figure that does not fit the profile."""
        for index, figure in enumerate(figures):
            self._place = ("figures", index)
            for entry in figure.entry:
                self._check_entry(entry)
            self._check_figure(figure)

    def _check_figure(self, figure: FigureSection) -> None:
        metric = self._checked_metric(figure.y, "y") if figure.y is not None else None
        if figure.metric is not None:
            self._checked_metric(figure.metric, "metric")
        self._check_flow(SelectorSection(metric="x", flow=figure.flow, take=figure.take), "flow")
        self._check_group(figure)
        named = self._drawn_axes(figure)
        for name, value in [*figure.at.items(), *figure.relative_to.items()]:
            side = "at" if name in figure.at else "relative_to"
            for item in value if isinstance(value, list) else [value]:
                self._check_value(name, item, side)
        of_columns: set[str] = set()
        if isinstance(figure.columns, list):
            of_columns = {axis for column in figure.columns for axis in column.at}
            for number, column in enumerate(figure.columns):
                self._check_column(column, number)
        self._check_every_axis(figure, {*named, *of_columns})
        self._check_paper(figure, metric)

    def _drawn_axes(self, figure: FigureSection) -> dict[str, str]:
        """The axes that the figure is drawn along, with the field that names each. Raises ProfileError if unknown."""
        found = dict.fromkeys(figure.rows, "rows")
        if isinstance(figure.columns, str):
            found[figure.columns] = "columns"
        if figure.kind != "table":
            found[figure.lines] = "lines"
        if figure.x is not None:
            found[figure.x] = "x"
        if figure.panels not in (None, SERIES_PANELS):
            found[str(figure.panels)] = "panels"
        known = [axis.name for axis in self.axes]
        for axis, place in found.items():
            if axis not in known and axis not in (ALGORITHM, CONTROL_AXIS, TRAFFIC_AXIS):
                raise self._unknown(f"this profile does not sweep over {axis}", axis, [*known, ALGORITHM], place)
        return found

    def _check_value(self, name: str, wanted: Any, side: str) -> None:
        if name == CONTROL_AXIS and axis_key(wanted) == axis_key(NO_CONTROL):
            return
        known = [axis.name for axis in self.axes]
        if name not in known and name not in (ALGORITHM, CONTROL_AXIS, TRAFFIC_AXIS):
            what = f"this profile does not sweep over {name}"
            raise self._unknown(what, name, known, side, *([name] if side in ("at", "relative_to") else []))
        values = self._axis_values(name)
        if axis_key(wanted) not in map(axis_key, values):
            raise self._unknown(f"{name} is never {wanted} in this profile", str(wanted), values, side)

    def _check_group(self, figure: FigureSection) -> None:
        if figure.kind != "cdf":
            return
        groups = {group.name for scenario in self.scenarios for group in scenario.groups if group.role == "measured"}
        if not groups:
            raise self._error("a cdf needs a measured group of connections", "kind")
        if figure.group is not None and figure.group not in groups:
            raise self._unknown(f"there is no group {figure.group!r}", figure.group, groups, "group")
        if figure.group is None and len(groups) > 1:
            raise self._error(f"there are several groups; give one: {', '.join(sorted(groups))}", "kind")

    def _check_column(self, column: ColumnSection, number: int) -> None:
        place = f"columns {number + 1}"
        self._checked_metric(column.metric, "columns", str(number))
        self._check_flow(SelectorSection(metric="x", flow=column.flow, take=column.take), place)
        for name, value in column.at.items():
            self._check_value(name, value, "columns")

    def _check_every_axis(self, figure: FigureSection, named: set[str]) -> None:
        """Raise ProfileError unless every axis with several values is drawn along or fixed."""
        for axis in self.axes:
            fixed = figure.at.get(axis.name)
            one = axis.name in figure.at and not (isinstance(fixed, list) and len(fixed) > 1)
            if len(axis.values) > 1 and axis.name not in named and not one:
                values = ", ".join(str(item) for item in axis.values)
                where = "rows, columns or at" if figure.kind == "table" else "lines, panels or at"
                raise self._error(
                    f"the axis {axis.name} is not fixed: it is {values}", "id", hint=f"give it in {where}"
                )

    def _check_paper(self, figure: FigureSection, metric: Metric | None) -> None:
        if figure.paper is None:
            return
        rows, columns = self._paper_names(figure)
        for row, values in figure.paper.points.items():
            if axis_key(row) not in map(axis_key, rows):
                raise self._unknown(f"the figure has no {row!r}", row, rows, "paper", "points", row)
            for column, number in values.items():
                known = columns if figure.kind != "table" or isinstance(figure.columns, str) else list(columns)
                if axis_key(column) not in map(axis_key, known):
                    raise self._unknown(f"the figure has no {column!r}", column, known, "paper", "points", row, column)
                of = metric or columns[column]
                if of is None or of.is_text:
                    continue
                try:
                    (_PER_CENT if figure.relative_to else of).read(str(number))
                except QuantityError as error:
                    raise self._error(f"{of.name}: {error}", "paper", "points", row, column) from None

    def _paper_names(self, figure: FigureSection) -> tuple[list[str], dict[str, Metric | None]]:
        """The names of the figure's lines or rows, and of the points or columns in each, with a column's metric."""
        if figure.kind == "table":
            rows = [", ".join(row) for row in itertools.product(*(self._axis_values(axis) for axis in figure.rows))]
            if isinstance(figure.columns, str):
                return rows, dict.fromkeys(self._axis_values(figure.columns))
            columns: dict[str, Metric | None] = {}
            for number, column in enumerate(figure.columns):
                metric = self._checked_metric(column.metric, "columns", str(number))
                columns |= {name: metric for name in (column.title, column.metric) if name}
            return rows, columns
        lines = self._axis_values(figure.lines)
        if figure.panels is not None and figure.panels != figure.lines:
            lines = [f"{panel} / {line}" for panel in self._axis_values(figure.panels) for line in lines]
        return lines, dict.fromkeys(self._axis_values(figure.x or ""))
