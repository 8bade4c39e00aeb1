# SPDX-License-Identifier: Apache-2.0
"""The difference view and completion times by class of size as rows, with the columns of their models."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from howdah.record.model import FilePart
from howdah.record.result import Experiment
from howdah.report.difference import PairedRow, difference_data
from howdah.report.ending import results
from howdah.report.source import TableSource
from howdah.report.subject import subjects
from howdah.report.transfer import CompletionRow, completion_data


def difference_table(experiments: list[Experiment]) -> pa.Table:
    """Each side against the first at each point of the sweep, of the runs that count; without rows where there is one
    side alone."""
    return _table(PairedRow, difference_data(subjects(results(experiments, TableSource()))))


def completion_table(experiments: list[Experiment]) -> pa.Table:
    """Of the runs that count; ``point`` is JSON. Without rows where no measured flow has a fixed size."""
    return _table(CompletionRow, completion_data(experiments))


def _table(kind: type[FilePart], rows: Sequence[FilePart]) -> pa.Table:
    schema = pa.schema([(name, _type_of(field.annotation)) for name, field in kind.model_fields.items()])
    columns = {name: [_cell(getattr(row, name)) for row in rows] for name in schema.names}
    return pa.Table.from_pydict(columns, schema=schema)


def _type_of(annotation: object) -> pa.DataType:
    for kind, type_ in ((float, pa.float64()), (int, pa.int64())):
        if annotation in (kind, kind | None):
            return type_
    return pa.string()


def _cell(value: object) -> object:
    return json.dumps(value) if isinstance(value, dict) else value
