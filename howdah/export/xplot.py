# SPDX-License-Identifier: Apache-2.0
"""Time-sequence graphs for xplot, drawn as by tcptrace: bytes sent, acknowledged and allowed by the receive window.

They are made from the records of ACKs, which have the sender's state at each ACK. Everything sent since the last ACK is
one line; retransmissions are not in these records (docs/export.md).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from howdah.export.flow import FlowExit, exit_of, file_stem, flow_text, path_text, plan_of, probed
from howdah.plan.plan import Flow
from howdah.record.directory import write_whole
from howdah.record.result import Run

SUFFIX = ".xpl"
SENT, ACKNOWLEDGED, ALLOWED, EXIT = "white", "green", "yellow", "red"

Integers = npt.NDArray[np.int64]


def write_xplot(run: Run, directory: Path) -> list[Path]:
    """Write one file for each TCP flow. Raises HowdahError for a run without tables or without ACKs."""
    plan = plan_of(run)
    written = []
    for flow, rows in probed(run):
        title = f"{run.name}, {flow_text(flow)}; {path_text(plan)}"
        file = directory / f"{file_stem(run, flow)}{SUFFIX}"
        write_whole(file, _graph(title, rows, exit_of(run, flow), flow))
        written.append(file)
    return written


def _graph(title: str, rows: pa.Table, leaves: FlowExit | None, flow: Flow) -> str:
    time, una, sent = (_column(rows, name) for name in ("time_ns", "snd_una_bytes", "snd_nxt_bytes"))
    known = np.array([value is not None for value in rows["snd_una_bytes"].to_pylist()]) if rows.num_rows else None
    if known is not None and not known.all():
        time, una, sent = time[known], una[known], sent[known]
    allowed = una + _column(rows, "snd_wnd_bytes")[: una.size]
    text = [_time(value) for value in time.tolist()]
    lines = ["timeval double", "title", title, "xlabel", "time", "ylabel", "sequence number (bytes)"]
    lines.append(SENT)
    before = np.maximum.accumulate(np.concatenate([np.zeros(1, dtype=np.int64), sent[:-1]]))
    lines += [f"line {text[row]} {before[row]} {text[row]} {sent[row]}" for row in np.flatnonzero(sent > before)]
    for colour, values in ((ACKNOWLEDGED, una), (ALLOWED, allowed)):
        lines += [colour, *_stairs(text, values)]
    if leaves is not None and time.size:
        at = min(int(np.searchsorted(time, leaves.time_ns)), time.size - 1)
        when = _time(leaves.time_ns)
        lines += [EXIT, f"diamond {when} {sent[at]}", f"atext {when} {sent[at]}", leaves.text(flow)]
    return "\n".join([*lines, "go"]) + "\n"


def _column(rows: pa.Table, name: str) -> Integers:
    values: Integers = rows[name].fill_null(0).to_numpy().astype(np.int64)
    return values


def _stairs(time: list[str], values: Integers) -> list[str]:
    """Lines of a step curve that holds each value until the next one; rows without a change need none."""
    turns = [0, *(np.flatnonzero(np.diff(values)) + 1).tolist()] if values.size else []
    lines = []
    for here, there in zip(turns, [*turns[1:], values.size - 1], strict=True):
        if time[here] != time[there]:
            lines.append(f"line {time[here]} {values[here]} {time[there]} {values[here]}")
        if values[here] != values[there]:
            lines.append(f"line {time[there]} {values[here]} {time[there]} {values[there]}")
    return lines


def _time(value_ns: int) -> str:
    return f"{value_ns // 1_000_000_000}.{value_ns % 1_000_000_000 // 1000:06d}"
