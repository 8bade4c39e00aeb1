# SPDX-License-Identifier: Apache-2.0
"""Completion times by class of size as rows."""

from __future__ import annotations

import json

import pyarrow as pa

from howdah.record.result import Experiment
from howdah.report.transfer import completion_data

_TEXT, _WHOLE, _NUMBER = pa.string(), pa.int64(), pa.float64()
SCHEMA = pa.schema(
    [
        *((name, _TEXT) for name in ("experiment", "algorithm", "kernel", "point", "group", "sizes")),
        *((name, _WHOLE) for name in ("least_bytes", "most_bytes", "transfers", "completed")),
        ("percentile", _TEXT),
        *((name, _NUMBER) for name in ("time_s", "time_low_s", "time_high_s")),
        *((name, _NUMBER) for name in ("slowdown", "slowdown_low", "slowdown_high")),
    ]
)


def completion_table(experiments: list[Experiment]) -> pa.Table:
    """Of the runs that count; ``point`` is JSON. Without rows where no measured flow has a fixed size."""
    rows = [{**row, "point": json.dumps(row["point"])} for row in completion_data(experiments)]
    return pa.Table.from_pylist(rows, schema=SCHEMA)
