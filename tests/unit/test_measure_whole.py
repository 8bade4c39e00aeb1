# SPDX-License-Identifier: Apache-2.0
"""A flow of fixed size, measured to the ACK of its last byte: ten segments, the last of which arrive at 30 ms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from howdah.measure import throughput
from howdah.measure.trace import FlowTrace, columns_of, trace_of
from howdah.record.schema import TCP_PROBE
from tests.unit.trace_factory import MS, MSS, make_flow

_SIZE = 10 * MSS
_RECEIVED_NS = 30 * MS


def trace(times_ms: list[int], una: list[int], nxt: list[int], *, complete: bool = True, **changes: Any) -> FlowTrace:
    flow = make_flow(**{"size_bytes": _SIZE, "stop_us": 1_000_000, **changes})
    columns = {
        "flow": [flow.id] * len(times_ms),
        "time_ns": [time * MS for time in times_ms],
        "snd_una_bytes": [count * MSS for count in una],
        "snd_nxt_bytes": [count * MSS for count in nxt],
        "cwnd_packets": [10] * len(times_ms),
        "srtt_us": [40_000] * len(times_ms),
    }
    rows = {name: columns.get(name, [None] * len(times_ms)) for name in TCP_PROBE.names}
    table = pa.table(rows, schema=TCP_PROBE)
    record: dict[str, int | None] = {"start_ns": 0, "connected_ns": 0, "end_ns": _RECEIVED_NS, "complete": complete}
    return trace_of(columns_of(table), flow, record, MSS)


def test_it_ends_with_the_ack_of_its_last_byte() -> None:
    """The record of that ACK is the state before it."""
    whole = trace([10, 20, 50], [0, 4, 7], [7, 10, 10])
    assert (whole.received_ns, whole.stop_ns) == (_RECEIVED_NS, 50 * MS)
    assert list(whole.una_after) == [4 * MSS, 7 * MSS, _SIZE]
    assert throughput.completion_time_s(whole, _SIZE) == pytest.approx(0.05)


def test_its_goodput_is_its_size_over_the_time_until_it_is_received() -> None:
    whole = trace([10, 20, 50], [0, 4, 7], [7, 10, 10])
    for end_ns in (_RECEIVED_NS, 50 * MS, 900 * MS):
        assert throughput.flow_goodput_bits_per_second(whole, 0, end_ns) == pytest.approx(8 * _SIZE / 0.03)
    # After 10 ms four of them are acknowledged; before the end nobody knows what is received.
    assert throughput.flow_goodput_bits_per_second(whole, 10 * MS, 900 * MS) == pytest.approx(8 * 6 * MSS / 0.02)
    assert throughput.flow_goodput_bits_per_second(whole, 0, 20 * MS) == pytest.approx(8 * 7 * MSS / 0.02)


@pytest.mark.parametrize(
    ("what", "early"),
    [
        ("its sender closed before the last ACK", trace([10, 20], [0, 4], [7, 10])),
        ("not all of it was sent when the trace ends", trace([10, 20, 50], [0, 4, 7], [7, 8, 9])),
        ("another program may close early", trace([10, 20, 50], [0, 4, 7], [7, 10, 10], traffic="iperf3")),
        ("it is not complete", trace([10, 20, 50], [0, 4, 7], [7, 10, 10], complete=False)),
        ("it has no size", trace([10, 20, 50], [0, 4, 7], [7, 10, 10], size_bytes=None)),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_the_last_ack_did_is_not_guessed(what: str, early: FlowTrace) -> None:
    assert early.acknowledged_bytes is None, what
    assert early.una_after[-1] == early.snd_una[-1]
    assert np.all(early.una_after < _SIZE)
