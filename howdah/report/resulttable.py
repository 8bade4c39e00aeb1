# SPDX-License-Identifier: Apache-2.0
"""The main measures of the result table as a table for a paper: a row for each flow of a variant at a point."""

from __future__ import annotations

from howdah.report.table import Table
from howdah.report.tabular import Tabular


def result_table(results: Table, title: str) -> Tabular:
    """Behind each measure with a spread there is a column of it."""
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
