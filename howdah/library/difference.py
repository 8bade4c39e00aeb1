# SPDX-License-Identifier: Apache-2.0
"""The difference view as rows: each side against the first at each point of the sweep."""

from __future__ import annotations

import pyarrow as pa

from howdah.record.result import Experiment
from howdah.report.difference import difference_data
from howdah.report.ending import results
from howdah.report.source import TableSource
from howdah.report.subject import subjects

_TEXT, _NUMBER = pa.string(), pa.float64()
SCHEMA = pa.schema(
    [
        *((name, _TEXT) for name in ("side", "other", "place", "flow", "metric", "unit")),
        *((name, _NUMBER) for name in ("mine", "others", "difference", "difference_low", "difference_high")),
        *((name, _NUMBER) for name in ("ratio", "ratio_low", "ratio_high")),
        ("pairs", pa.int64()),
        ("better", _TEXT),
        ("run", _TEXT),
    ]
)


def difference_table(experiments: list[Experiment]) -> pa.Table:
    """Of the runs that count; without rows where there is one side alone."""
    return pa.Table.from_pylist(difference_data(subjects(results(experiments, TableSource()))), schema=SCHEMA)
