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
from howdah.report.sequence import ACKED, ALLOWED, LOST, RETRANSMITTED, SACKED, SENT, WINDOW, sequence_curves
from tests.unit.recorded_run import recorded_plan

MS = 1_000_000


def run_of(
    probe: list[dict[str, Any]],
    info: list[dict[str, Any]],
    segments: list[dict[str, Any]] | None = None,
    blocks: list[dict[str, Any]] | None = None,
) -> Run:
    """A run whose tables hold these rows of the first flow of a recorded plan."""
    tables = {"tcp_probe": probe, "tcp_info": info, "segment": segments or [], "sack_block": blocks or []}
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
    assert found[RETRANSMITTED].time_ms.tolist() == [25]
    assert found[RETRANSMITTED].value == pytest.approx([0.03])  # half way between two ACKs
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


MSS = recorded_plan().path.mss_bytes


def sent(at_ms: int, first: int, segments: float, end: str = "sender") -> dict[str, Any]:
    """Segments of data as one packet, which begins with the segment of that number."""
    size = round(segments * MSS)
    return {
        "end": end,
        "sent_by": "sender",
        "time_ns": at_ms * MS,
        "sequence_bytes": first * MSS,
        "payload_bytes": size,
        "ack_bytes": 0,
    }


def confirmed(at_ms: int, segments: int) -> dict[str, Any]:
    common = {"end": "sender", "sent_by": "receiver", "time_ns": at_ms * MS, "sequence_bytes": 0, "payload_bytes": 0}
    return {**common, "ack_bytes": segments * MSS}


# Three segments as a super-packet, of which the second is lost and sent again; then a super-packet that has one segment
# which was sent before, and two new ones that are still under way.
CAPTURED = [
    sent(1, 0, 3),
    confirmed(11, 1),
    sent(12, 1, 1),
    confirmed(22, 3),
    sent(23, 2, 2.5),
]
ARRIVED = [sent(6, 0, 1, "receiver"), sent(6, 2, 1, "receiver"), sent(17, 1, 1, "receiver")]


def test_each_segment_of_a_capture_is_a_point() -> None:
    run = run_of(PROBE, INFO, CAPTURED)
    assert run.plan is not None
    found = sequence_curves(run, run.plan.flows[0])
    assert found[SENT].time_ms.tolist() == [1, 1, 1, 12, 23, 23, 23]
    assert found[SENT].value == pytest.approx(np.array([1, 2, 3, 3, 3, 4, 4.5]) * MSS / 1e6)
    assert found[ACKED].time_ms.tolist() == [11, 22]
    assert found[ACKED].value == pytest.approx(np.array([1, 3]) * MSS / 1e6)
    assert found[RETRANSMITTED].time_ms.tolist() == [12, 23]
    assert found[RETRANSMITTED].value == pytest.approx(np.array([2, 3]) * MSS / 1e6)
    assert found[LOST].time_ms.tolist() == [25], "without a capture at the receiver the counters say it"


def block(at_ms: int, left: int, right: int, end: str = "sender", sent_by: str = "receiver") -> dict[str, Any]:
    edges = {"left_edge_bytes": left * MSS, "right_edge_bytes": right * MSS}
    return {"end": end, "sent_by": sent_by, "time_ns": at_ms * MS, **edges}


def test_each_sack_block_that_reached_the_sender_is_a_range() -> None:
    others = [block(9, 1, 2, end="receiver"), block(9, 1, 2, sent_by="sender")]
    blocks = [block(11, 4, 6), block(11, 2, 3), block(12, 2, 3), *others]
    run = run_of(PROBE, INFO, CAPTURED, blocks)
    assert run.plan is not None
    found = sequence_curves(run, run.plan.flows[0])[SACKED]
    assert found.low is not None
    assert found.time_ms.tolist() == [11, 11, 12]
    assert found.low * 1e6 / MSS == pytest.approx([2, 4, 2])
    assert found.value * 1e6 / MSS == pytest.approx([3, 6, 3])


def test_a_capture_without_sack_blocks_leaves_what_the_counters_say() -> None:
    run = run_of(PROBE, INFO, CAPTURED)
    assert run.plan is not None
    found = sequence_curves(run, run.plan.flows[0])[SACKED]
    assert found.low is None
    assert np.nanmax(found.value) == pytest.approx(0.01 + 2 * MSS / 1e6)


def test_what_did_not_arrive_is_lost_when_it_was_sent() -> None:
    run = run_of(PROBE, INFO, [*CAPTURED, *ARRIVED])
    assert run.plan is not None
    found = sequence_curves(run, run.plan.flows[0])
    # The second segment's first copy, and the second copy of the third, of which one arrived: it counts as the first
    # that was lost. The two that are under way are not.
    assert sorted(zip(found[LOST].time_ms.tolist(), np.rint(found[LOST].value * 1e6 / MSS).tolist(), strict=True)) == [
        (1, 2.0),
        (1, 3.0),
    ]


def test_a_capture_at_the_receiver_alone_changes_nothing() -> None:
    plain, at_receiver = run_of(PROBE, INFO), run_of(PROBE, INFO, ARRIVED)
    assert plain.plan is not None
    flow = plain.plan.flows[0]
    one, other = sequence_curves(plain, flow), sequence_curves(at_receiver, flow)
    assert list(one) == list(other)
    for name in one:
        assert one[name].value == pytest.approx(other[name].value, nan_ok=True)
