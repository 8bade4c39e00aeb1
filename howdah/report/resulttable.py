# SPDX-License-Identifier: Apache-2.0
"""The main measures of the result table as a table for a paper: a row for each flow of a variant at a point."""

from __future__ import annotations

from collections.abc import Sequence

from howdah.errors import HowdahError
from howdah.report.table import Table
from howdah.report.tabular import Tabular


def result_table(results: Table, title: str, names: Sequence[str] = ()) -> Tabular:
    """Of these measures, or of the main ones. Behind each with a spread there is a column of it. Raises HowdahError."""
    place = {measure.name: number for number, measure in enumerate(results.measures)}
    lacking = next((name for name in names if name not in place), None)
    if lacking is not None:
        raise HowdahError(f"no run that counts has a value of {lacking} for a flow, a group or the whole run")
    shown = [place[name] for name in names]
    if not names:
        shown = [number for number, measure in enumerate(results.measures) if measure.main]
    columns = ["point", "algorithm", "n", "flow"]
    for number in shown:
        measure = results.measures[number]
        name = f"{measure.header} ({measure.unit})" if measure.unit else measure.header
        columns += [name, f"{name}, spread"]
    rows = []
    for point, blocks in results.points:
        for block in blocks:
            for row in block.rows:
                cells = [point, block.variant.label, str(block.count), row.flow]
                for number in shown:
                    cell = row.cells[number]
                    cells += [cell.text if cell else "", cell.interval if cell else ""]
                rows.append(cells)
    spread = f"; spread: {results.spread_words}" if results.spread_words else ""
    return Tabular(f"{title}: medians over n repetitions{spread}", columns, rows)
