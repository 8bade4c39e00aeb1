# SPDX-License-Identifier: Apache-2.0
"""The time-sequence picture, against tables written by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest

from howdah.record.result import Run
from howdah.report.sequence import ACKED, AGAIN, ALLOWED, LOST, SACKED, SENT, WINDOW, sequence_curves
from tests.unit.recorded_run import recorded_plan

MS = 1_000_000


def run_of(probe: list[dict[str, Any]], info: list[dict[str, Any]]) -> Run:
    """A run whose tables hold these rows of the first flow of a recorded plan."""
    tables = {"tcp_probe": probe, "tcp_info": info}
    plan = recorded_plan()

    def table(name: str) -> pa.Table | None:
        rows = [{"flow": plan.flows[0].id, **row} for row in tables[name]]
        return pa.Table.from_pylist(rows) if rows else None

    return cast(Run, SimpleNamespace(plan=plan, table=table))


def ack(at_ms: int, una: int, sent: int, cwnd: int = 10, window: int = 100_000) -> dict[str, Any]:
    return {
        "time_ns": at_ms * MS,
        "snd_una_bytes": una,
        "snd_nxt_bytes": sent,
        "cwnd_packets": cwnd,
        "snd_wnd_bytes": window,
    }


def reading(at_ms: int, again: int, lost: int = 0, sacked: int = 0, end: str = "sender") -> dict[str, Any]:
    counters = {"total_retrans_packets": again, "lost_packets": lost, "sacked_packets": sacked}
    return {"end": end, "time_ns": at_ms * MS, **counters}


PROBE = [ack(10, 0, 50_000), ack(20, 20_000, 90_000, cwnd=12), ack(30, 40_000, 70_000, cwnd=6)]
INFO = [
    reading(5, 0),
    reading(15, 0, sacked=2),
    reading(25, 3, lost=1),
    reading(30, 3),
    reading(15, 9, end="receiver"),
]


def test_every_line_is_what_the_records_say() -> None:
    run = run_of(PROBE, INFO)
    assert run.plan is not None
    mss = run.plan.path.mss_bytes
    found = sequence_curves(run, run.plan.flows[0])
    assert found[SENT].time_ms.tolist() == [10, 20, 30]
    assert found[SENT].value.tolist() == [0.05, 0.09, 0.09]  # what is sent again is no step back
    assert found[ACKED].value.tolist() == [0.0, 0.02, 0.04]
    assert found[WINDOW].value == pytest.approx([10 * mss / 1e6, 0.02 + 12 * mss / 1e6, 0.04 + 6 * mss / 1e6])
    assert found[AGAIN].time_ms.tolist() == [25]
    assert found[AGAIN].value == pytest.approx([0.03])  # half way between two ACKs
    assert found[LOST].value == pytest.approx([0.03 + mss / 1e6])
    assert np.nanmax(found[SACKED].value) == pytest.approx(0.01 + 2 * mss / 1e6)
    assert np.isnan(found[SACKED].value).sum() == 3


def test_a_receive_window_far_above_is_not_drawn() -> None:
    run = run_of([ack(10, 0, 50_000, window=60_000), ack(20, 20_000, 60_000, window=900_000)], [])
    assert run.plan is not None
    allowed = sequence_curves(run, run.plan.flows[0])[ALLOWED].value
    assert allowed[0] == pytest.approx(0.06)
    assert np.isnan(allowed[1])


def test_another_flow_is_not_in_it_and_without_records_there_is_nothing() -> None:
    run = run_of(PROBE, INFO)
    assert run.plan is not None
    assert sequence_curves(run, replace(run.plan.flows[0], id=77)) == {}
    empty = run_of([], INFO)
    assert sequence_curves(empty, run.plan.flows[0]) == {}
