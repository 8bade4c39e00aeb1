# SPDX-License-Identifier: Apache-2.0
"""Results of many runs as tidy tables: runs, measures, exits, checks.

Each table begins with the axes, in the given types, and the column ``RUN``, the name of the run's directory.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from howdah.library.axis import EXPERIMENT, TEXT, own_axes, run_axes, table
from howdah.metric import known_metrics, unit_by_suffix
from howdah.record.metrics import MetricRow
from howdah.record.model import Scalar
from howdah.record.result import Run
from howdah.record.table import FLOW_NAME, Axes

RUN = "run directory"  # contains a space, so it cannot clash with an axis
Types = dict[str, pa.DataType]
_NUMBERS: dict[str, pa.DataType] = {"flow": pa.int32(), FLOW_NAME: TEXT}
_PIECE = 1 << 15  # rows held as dictionaries at once
_EXIT = "exit_"
# Measures in the table of exits besides exit_…: what the exit cost, and the decision to exit.
_WITH_EXITS = ("decision_time_s", "decision_cwnd_packets", "overshoot_packets", "retransmitted_packets")


_RUN_COLUMNS: Types = {
    RUN: TEXT,
    "status": TEXT,
    "verdict": TEXT,
    "counts": pa.bool_(),
    "problem": pa.string(),
    "started": pa.string(),
    "wall_s": pa.float64(),
    "virtual_s": pa.float64(),
    "data_kept": pa.bool_(),
    "directory": pa.string(),
    "flows": pa.int64(),
    "rate_bits_per_second": pa.int64(),
    "rtt_us": pa.int64(),
    "buffer_bytes": pa.int64(),
    "bdp_packets": pa.int64(),
    "loss_ratio": pa.float64(),
}


def _of_run(run: Run) -> dict[str, Scalar]:
    return {**own_axes(run), RUN: run.name}


def run_rows(runs: list[Run], axes: Types) -> pa.Table:
    """One row per run. Columns of the path and of times carry their units."""
    types = {**axes, **_RUN_COLUMNS}
    units = {name: unit.name for name in types if name not in axes and (unit := unit_by_suffix(name)) is not None}
    units["loss_ratio"] = "ratio"
    return table([_run_row(run) for run in runs], types, units)


def _run_row(run: Run) -> dict[str, Scalar]:
    row: dict[str, Scalar] = {
        **_of_run(run),
        "status": run.status,
        "verdict": run.verdict_name,
        "counts": run.counts,
        "problem": run.problem,
        "started": run.provenance.started,
        "wall_s": run.provenance.wall_s,
        "virtual_s": run.provenance.virtual_s,
        "data_kept": run.data_kept,
        "directory": str(run.directory.path),
    }
    if run.plan is not None:
        path = run.plan.path
        row |= {
            "flows": len(run.plan.flows),
            "rate_bits_per_second": path.rate_bits_per_second,
            "rtt_us": path.rtt_us,
            "buffer_bytes": path.buffer_bytes,
            "bdp_packets": path.bdp_packets,
            "loss_ratio": path.loss_ratio,
        }
    return row


def _of_measure(run: Run, axes: Axes, row: MetricRow) -> dict[str, Scalar]:
    """The axes of a row of metrics.json, including the flow's axes if the row belongs to a flow."""
    number = row.flow
    flow = axes.flows.get(number) if isinstance(number, int) else None
    own = {EXPERIMENT: run.experiment, **axes.run, **(flow or {}), "flow": number if flow else None}
    return {**own, RUN: run.name}


def metric_rows(runs: list[Run], axes: Types) -> pa.Table:
    """One row per measure: each run's own, then those of its groups' connections."""
    types = {
        **axes,
        RUN: TEXT,
        **_NUMBERS,
        "group": TEXT,
        "metric": TEXT,
        "value": pa.float64(),
        "text": TEXT,
        "unit": TEXT,
        "why": pa.string(),
    }
    rows = _measures(runs)
    pieces = [table(list(itertools.islice(rows, _PIECE)), types)]
    while part := list(itertools.islice(rows, _PIECE)):
        pieces.append(table(part, types))
    if len(pieces) == 1:
        return pieces[0]
    return pa.concat_tables(pieces, promote_options="default").unify_dictionaries().combine_chunks()


def _measures(runs: list[Run]) -> Iterator[dict[str, Scalar]]:
    for run in runs:
        own = run_axes(run)
        for row in itertools.chain(run.metrics, run.connections().rows()):
            number = row.number
            yield {
                **_of_measure(run, own, row),
                "group": row.group,
                "metric": row.metric,
                "value": None if number is None else float(number),
                "text": row.value if isinstance(row.value, str) else None,
                "unit": row.unit or None,
                "why": row.why,
            }


def exit_measures() -> list[str]:
    """Names of the measures that are columns of the table of exits."""
    return [name for name in known_metrics() if name.startswith(_EXIT) or name in _WITH_EXITS]


def exit_rows(runs: list[Run], axes: Types) -> pa.Table:
    """One row per flow that has a measure of its exit; measures without a value are null."""
    found: dict[tuple[str, int], dict[str, Scalar]] = {}
    metrics, names = known_metrics(), exit_measures()
    wanted = set(names)
    for run in runs:
        own = run_axes(run)
        for row in run.metrics:
            if row.metric in wanted and isinstance(row.flow, int):
                key = (str(run.directory.path), row.flow)
                if key not in found:
                    found[key] = _of_measure(run, own, row)
                found[key][row.metric] = row.value
    rows = [row for row in found.values() if any(name.startswith(_EXIT) for name in row)]
    types = {**axes, RUN: TEXT, **_NUMBERS}
    types |= {name: TEXT if metrics[name].is_text else pa.float64() for name in names}
    units = {name: metrics[name].unit for name in names if not metrics[name].is_text and not metrics[name].is_by_cause}
    return table(rows, types, units)


def check_rows(runs: list[Run], axes: Types) -> pa.Table:
    """One row per check. Expected and measured values are JSON, because their types differ between checks."""
    rows: list[dict[str, Scalar]] = []
    for run in runs:
        own = _of_run(run)
        for check in run.checks:
            row = {**own, "verdict": run.verdict_name, "stage": check.stage, "check": check.name, "ok": check.ok}
            for name in ("expected", "measured", "tolerance"):
                value = getattr(check, name)
                row[name] = None if value is None else json.dumps(value)
            rows.append({**row, "unit": check.unit, "message": check.message})
    types = {**axes, RUN: TEXT, "verdict": TEXT, "stage": TEXT, "check": TEXT, "ok": pa.bool_()}
    types |= {name: pa.string() for name in ("expected", "measured", "tolerance")}
    return table(rows, {**types, "unit": TEXT, "message": pa.string()})


ROWS: dict[str, Callable[[list[Run], Types], pa.Table]] = {
    "runs": run_rows,
    "metrics": metric_rows,
    "exits": exit_rows,
    "checks": check_rows,
}


def positions(table: pa.Table, runs: Iterable[str]) -> npt.NDArray[np.int64]:
    """For each row, the index of its run in ``runs``, or -1 if the run is not in it."""
    column = table[RUN].combine_chunks() if table.num_rows else pa.array([], table[RUN].type)
    place = {run: number for number, run in enumerate(runs)}
    of_code = np.array([*(place.get(run, -1) for run in column.dictionary.to_pylist()), -1], dtype=np.int64)
    found: npt.NDArray[np.int64] = of_code[column.indices.fill_null(-1).to_numpy()]
    return found


def of_runs(table: pa.Table, runs: Iterable[str]) -> pa.Table:
    """The rows that belong to ``runs``."""
    return table.filter(pa.array(positions(table, runs) >= 0))


def stacked(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    """Concatenate tables under one schema; columns that a table lacks are null. Raises ValueError if a column of the
    schema cannot hold a table's values unchanged."""
    tables = [
        pa.Table.from_arrays([_column(table, field) for field in schema], schema=schema)
        for table in tables
        if table.num_rows
    ]
    if not tables:
        return schema.empty_table()
    table = pa.concat_tables(tables)
    return table.unify_dictionaries().combine_chunks() if len(tables) > 1 else table


def _column(table: pa.Table, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    if field.name not in table.column_names:
        return pa.nulls(table.num_rows, field.type)
    column = table[field.name]
    if column.type == field.type:
        return column
    if column.null_count == len(column):
        return pa.nulls(len(column), field.type)
    if (column.type, field.type) in ((pa.int64(), pa.float64()), (pa.int64(), pa.string()), (TEXT, pa.string())):
        return column.cast(field.type)  # raises ValueError for an integer that no float can represent
    raise ValueError(f"{field.name} is of type {column.type}, not {field.type}")
