# SPDX-License-Identifier: Apache-2.0
"""What held a sender back, and how long it had nothing to send."""

from __future__ import annotations

import dataclasses

import pytest

from howdah.measure import limit
from howdah.measure.limit import has_nothing, limit_before, limit_of, limit_rows, nothing_to_send, promises_data
from howdah.measure.row import Sheet
from howdah.measure.sampled import Samples
from howdah.plan.traffic import Exchange, HttpRequests
from tests.unit.trace_factory import MS, make_flow, make_info, make_trace

RECOVERY = 3


def readings(count: int = 10, step_ms: float = 100, **columns: list[int] | int) -> Samples:
    """Of an established flow: 20 segments in flight, a window of 40, unsent data; ``columns`` say otherwise."""
    usual: dict[str, list[int] | int] = {
        "state": 1,
        "ca_state": 0,
        "cwnd_packets": 40,
        "unacked_packets": 20,
        "sacked_packets": 0,
        "lost_packets": 0,
        "retrans_packets": 0,
        "notsent_bytes": 100_000,
        "snd_wnd_bytes": 10_000_000,
        "mss_bytes": 1448,
    }
    columns = {**usual, **columns}
    lists = {name: value if isinstance(value, list) else [value] * count for name, value in columns.items()}
    return make_info([step_ms * number for number in range(count)], **lists)


@pytest.mark.parametrize(
    ("columns", "nothing"),
    [
        ({}, False),
        ({"notsent_bytes": 0}, True),
        ({"notsent_bytes": 0, "unacked_packets": 40}, False),  # the window is full
        ({"notsent_bytes": 0, "unacked_packets": 60, "sacked_packets": 30}, True),
        ({"notsent_bytes": 0, "lost_packets": 5}, False),  # these are to be sent again
        ({"notsent_bytes": 0, "lost_packets": 5, "retrans_packets": 5}, True),
        ({"notsent_bytes": 0, "snd_wnd_bytes": 20 * 1448}, False),  # nor does the receiver take more
        ({"notsent_bytes": 0, "state": 4}, False),  # it has closed
    ],
)
def test_a_sender_has_nothing_to_send(columns: dict[str, int], nothing: bool) -> None:
    found = has_nothing(readings(**columns))
    assert found is not None
    assert found.tolist() == [nothing] * 10


def test_a_kernel_that_does_not_tell_is_not_judged() -> None:
    assert has_nothing(make_info([0, 1])) is None
    assert nothing_to_send(make_trace([10], [0], [10]), make_info([0, 1])) is None


def test_the_share_of_the_time_and_what_of_it_is_in_recoveries() -> None:
    """Three tenths of a second of the first one, two of them in a recovery, by hand."""
    info = readings(notsent_bytes=[9, 0, 0, 0, *[9] * 6], ca_state=[0, 0, RECOVERY, RECOVERY, *[0] * 6])
    trace = make_trace([10], [0], [10], stop_ms=1000)
    found = nothing_to_send(trace, info)
    assert found is not None
    assert (found.time_s, found.recovery_s, found.span_s) == (0.3, 0.2, 1.0)
    sheet = Sheet({})
    limit_rows(sheet, trace, info)
    assert [(row.metric, row.value, row.unit) for row in sheet.rows] == [("nothing_to_send_share", 0.3, "ratio")]


def test_newreno_in_a_recovery_of_28_seconds() -> None:
    """What the kernel counts is 0; the sender stood still for 28 of 40 seconds."""
    idle = [0] * 5 + [1] * 28 + [0] * 7
    info = readings(
        count=40,
        step_ms=1000,
        notsent_bytes=[0 if one else 50_000 for one in idle],
        ca_state=[RECOVERY if one else 0 for one in idle],
        sacked_packets=[15 if one else 0 for one in idle],
        sndbuf_limited_us=0,
        busy_time_us=[1_000_000 * number for number in range(40)],
    )
    found = nothing_to_send(make_trace([10], [0], [10], stop_ms=40_000), info)
    assert found is not None
    assert (found.share, found.recovery_s) == (0.7, 28.0)


def test_a_flow_of_a_fixed_size_is_done_when_all_of_it_was_sent() -> None:
    info = readings(notsent_bytes=[9, 9, 9, 0, 0, 0, 0, 0, 0, 0])
    flow = make_flow(size_bytes=50 * 1448)
    trace = make_trace([100, 200, 300, 400], una=[0, 10, 20, 30], nxt=[20, 40, 50, 50], flow=flow, stop_ms=1000)
    found = nothing_to_send(trace, info)
    assert found is not None
    assert (found.time_s, found.span_s) == (0.0, 0.3)


def test_the_last_flight_of_a_fixed_size_is_not_a_stall() -> None:
    """The ACKs of the last flight show what had been sent a round trip before; the socket stays open."""
    sent = [20, 40, 50, 50, 50, 50, 50, 50, 50, 50]
    info = readings(
        notsent_bytes=[9, 9, *[0] * 8],
        bytes_sent_bytes=[(each + 1) * 1448 for each in sent],
        bytes_retrans_bytes=1448,
    )
    flow = make_flow(size_bytes=50 * 1448)
    trace = make_trace([100, 200, 600], una=[0, 10, 30], nxt=[20, 40, 50], flow=flow, stop_ms=1000)
    found = nothing_to_send(trace, info)
    assert found is not None
    assert (found.time_s, found.span_s) == (0.0, 0.2)
    stalled = readings(
        notsent_bytes=[9, 9, *[0] * 8],
        bytes_sent_bytes=[1448 * min(each, 49) for each in sent],
        bytes_retrans_bytes=0,
    )
    found = nothing_to_send(trace, stalled)
    assert found is not None
    assert (found.time_s, found.span_s) == (0.4, 0.6), "the last segment had not been sent"


def test_iperf3_may_not_send_before_its_server_says_so() -> None:
    """A cookie of 37 bytes leaves with the connection, the data a round trip later; what stalls after that counts."""
    info = readings(notsent_bytes=[0, 0, 9, 9, 0, *[9] * 5], bytes_sent_bytes=[37, 37, *[5000] * 8])
    for traffic, time_s, span_s in (("iperf3", 0.1, 0.8), ("kernel", 0.3, 1.0)):
        trace = make_trace([10], [0], [10], flow=make_flow(traffic=traffic), stop_ms=1000)
        found = nothing_to_send(trace, info)
        assert found is not None
        assert (found.time_s, found.span_s) == (time_s, span_s)


def test_without_two_readings_there_is_no_share() -> None:
    sheet = Sheet({})
    limit_rows(sheet, make_trace([10], [0], [10], stop_ms=50), readings())
    assert sheet.rows[0].value is None
    assert "tcp_info" in str(sheet.rows[0].why)


def test_what_took_more_than_half_of_the_time_held_the_flow_back() -> None:
    half = readings(count=2, busy_time_us=[0, 1000], rwnd_limited_us=[0, 500])
    more = readings(count=2, busy_time_us=[0, 1000], rwnd_limited_us=[0, 501])
    buffer = readings(count=2, busy_time_us=[0, 1000], rwnd_limited_us=0, sndbuf_limited_us=[0, 501])
    assert limit_of(half, 0, 10**9) is None
    assert limit_of(more, 0, 10**9) == limit.RECEIVE_WINDOW
    assert limit_of(buffer, 0, 10**9) == limit.SEND_BUFFER
    assert limit_of(make_info([]), 0, 10**9) is None


def test_an_application_that_stops_is_the_reason() -> None:
    assert limit_of(readings(notsent_bytes=0), 0, 900 * MS) == limit.APPLICATION
    assert limit_of(make_info([10, 20, 30], app_limited=[0, 1, 1]), 0, 10**9) == limit.APPLICATION
    assert limit_of(readings(notsent_bytes=[0, *[9] * 9]), 0, 900 * MS) is None


def test_the_mark_of_a_connection_that_has_just_begun_is_no_reason() -> None:
    """tcp_info of a transfer in its first round trips: the first reading is before the handshake's end."""
    info = make_info([3, 101], app_limited=[1, 1], state=[2, 1], notsent_bytes=[0, 72400])
    assert limit_of(info, 10 * MS, 90 * MS) is None
    info = make_info([3, 101], app_limited=[1, 1], state=[1, 1], notsent_bytes=[0, 0])
    assert limit_of(info, 10 * MS, 90 * MS) == limit.APPLICATION


def test_a_limit_of_long_ago_is_no_reason_now() -> None:
    """The receive window held the flow for the first half second; the exit came in the second one, RTT 40 ms."""
    held = [100_000 * min(number, 5) for number in range(10)]
    info = readings(busy_time_us=[100_000 * number for number in range(10)], rwnd_limited_us=held)
    trace = make_trace([float(10 * number) for number in range(100)], [0] * 100, [10] * 100)
    assert limit_before(trace, info, 450 * MS) == limit.RECEIVE_WINDOW
    assert limit_before(trace, info, 850 * MS) is None
    assert limit_of(info, 0, 900 * MS) == limit.RECEIVE_WINDOW


def test_which_traffic_promises_data() -> None:
    bulk = make_flow()
    assert promises_data(bulk)
    assert promises_data(dataclasses.replace(bulk, size_bytes=1_000_000))
    assert not promises_data(dataclasses.replace(bulk, http=HttpRequests(1, 1, None)))
    assert not promises_data(dataclasses.replace(bulk, exchange=Exchange(1, 1, 2, 0)))
    assert not promises_data(dataclasses.replace(bulk, request_bytes=100))
