# SPDX-License-Identifier: Apache-2.0
"""Sources that contradict each other, on traces made by hand: 40 ms, an ACK of two segments every 10 ms."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from howdah.judge.agreement import agreement_checks
from howdah.linux.netlink.diag import TCP_ESTABLISHED
from howdah.measure.measured import Measured
from howdah.measure.sampled import MISSING, Samples
from howdah.measure.trace import FlowTrace
from howdah.record.schema import FLOW
from howdah.record.verdict import Check
from tests.unit.plan_factory import collecting, make_plan
from tests.unit.trace_factory import MS, MSS, make_counters, make_flow, make_info, make_trace
from tests.unit.traffic_factory import make_quic, make_stack

_COUNT = 20
_TIMES = [float(100 + 10 * number) for number in range(_COUNT)]
_WINDOWS = [10 + number for number in range(_COUNT)]


def _trace(**changes: Any) -> FlowTrace:
    una = [2 * number for number in range(_COUNT)]
    made = {"cwnd": _WINDOWS, "ssthresh": [np.inf] * 10 + [20.0] * 10, **changes}
    return make_trace(_TIMES, una, [each + 10 for each in una], flow=make_flow(), **made)


def _info(**columns: list[int]) -> Samples:
    """Read after the 2nd, 5th, 10th, 15th and 19th ACK."""
    read = {
        "state": [TCP_ESTABLISHED] * 5,
        "cwnd_packets": [12, 15, 20, 25, 29],
        "ssthresh_packets": [MISSING, MISSING, 20, 20, 20],
        "bytes_acked_bytes": [MSS * count + 1 for count in (4, 10, 20, 30, 38)],
        "total_retrans_packets": [0] * 5,
        **columns,
    }
    return make_info([115.0, 145.0, 195.0, 245.0, 285.0], **read)


def _failed(*arguments: Any, **changes: Any) -> dict[str, str]:
    return {check.name: check.message for check in _checks(*arguments, **changes).values() if check.ok is False}


def _checks(
    trace: FlowTrace | None = None,
    info: Samples | None = None,
    counters: dict[str, int] | None = None,
    received: int | None = 2 * _COUNT * MSS,
    complete: bool = True,
    more: list[FlowTrace] | None = None,
    last_ms: float = 400.0,
    **collected: Any,
) -> dict[str, Check]:
    trace = _trace() if trace is None else trace
    flow = trace.flow
    moved = {"TcpExtTCPHystartTrainDetect": 0, "TcpExtTCPHystartTrainCwnd": 0, "TcpRetransSegs": 0}
    moved |= {"TcpExtTCPHystartDelayDetect": 0, "TcpExtTCPHystartDelayCwnd": 0, **(counters or {})}
    readings: list[tuple[float, str | None, str, int]] = [
        (time, flow.sender, name, value)
        for name, grown in moved.items()
        for time, value in ((0.0, 7), (last_ms, 7 + grown))
    ]
    traces = [trace, *(more or [])]
    rows: list[dict[str, Any]] = [
        dict.fromkeys(FLOW.names) | {"flow": each.flow.id, "bytes_received_bytes": received, "complete": complete}
        for each in traces
    ]
    plan = make_plan()
    collect = collecting(plan.collect, **{"tcp_probe": True, "tcp_info_us": 50_000, **collected})
    data = Measured(
        plan=dataclasses.replace(plan, flows=[each.flow for each in traces], collect=collect),
        traces=traces,
        info={each.flow.id: _info() if info is None else info for each in traces},
        info_receiver={},
        bottleneck=make_info([]),
        counters=make_counters(readings),
        flows=pa.Table.from_pylist(rows, schema=FLOW),
    )
    return {check.name: check for check in agreement_checks(data)}


def test_what_a_timer_cut_before_the_next_ack_is_no_contradiction() -> None:
    """The 10th ACK opened the window to 60, a timeout closed it to 1, and the 11th record shows that."""
    windows = [*_WINDOWS[:10], 1, *range(2, 11)]
    info = _info(cwnd_packets=[12, 15, 60, 5, 9])
    assert _failed(_trace(cwnd=windows), info) == {}


def test_readings_that_no_record_surrounds_say_nothing() -> None:
    """Before the first record a timer may have cut what nobody saw, and what the last ACK did is in no record."""
    info = make_info(
        [50.0, 295.0],
        state=[TCP_ESTABLISHED] * 2,
        cwnd_packets=[60, 99],
        ssthresh_packets=[3, MISSING],
        bytes_acked_bytes=[1, MSS * 99],
        total_retrans_packets=[0, 0],
    )
    assert _failed(info=info) == {}


_SENDER = make_flow().sender
_HYSTART = f"HyStart's counters and the trace, {_SENDER}"
_RETRANSMITTED = f"retransmissions of counters and tcp_info, {_SENDER}"
_BYTES = "bytes of trace and receiver"
ACKED = "bytes acknowledged, tcp_probe around it"


def _agree(name: str, message: str) -> Check:
    return Check(name, "collection", True, message, 0, 0, 0, "flows")


def test_every_check_says_what_agreed() -> None:
    assert list(_checks().values()) == [
        _agree(_BYTES, "the receiver got what was acknowledged"),
        _agree("bytes of trace and tcp_info", "tcp_info has the bytes that the trace has"),
        _agree("windows of trace and tcp_info", "tcp_info has the windows that the trace has"),
        _agree("exits of trace and tcp_info", "tcp_info has a threshold where the trace has one"),
        Check(_HYSTART, "collection", True, "HyStart counted no exit", 0, 1, None, "exits"),
        Check(
            _RETRANSMITTED,
            "collection",
            True,
            "the host's counter has the retransmissions of its sockets",
            0,
            0,
            0,
            "packets",
        ),
    ]
    assert list(_checks(tcp_info_us=None)) == [_BYTES, _HYSTART, _RETRANSMITTED]
    assert _checks(tcp_probe=False) == {}


@pytest.mark.parametrize(
    ("column", "reading", "low", "high", "what"),
    [
        # Beside the 2nd reading, at 145 ms, are those at 115 and 195 ms: it may have seen what the ACKs at 110 to
        # 210 ms did, the 2nd to the 12th, and the SYN and the FIN.
        ("bytes_acked_bytes", 1, 4 * MSS, 24 * MSS + 2, f"{ACKED} {4 * MSS} to {24 * MSS}"),
        # The first one has none before it: the 2nd to the 7th, at 160 ms.
        ("bytes_acked_bytes", 0, 4 * MSS, 14 * MSS + 2, f"{ACKED} {4 * MSS} to {14 * MSS}"),
        # None follows the last one: from that before 245 ms, the 15th, to the last. What that one acknowledged is in no
        # record; 48 segments were sent.
        ("bytes_acked_bytes", 4, 30 * MSS, 48 * MSS + 2, f"{ACKED} {30 * MSS} to {48 * MSS}"),
        # Windows 11 to 21, and an ACK of two segments adds three at most.
        ("cwnd_packets", 1, 11, 24, "packets, tcp_probe around it 11 to 21"),
    ],
)
def test_a_reading_may_be_anything_that_its_neighbours_surround(
    column: str, reading: int, low: int, high: int, what: str
) -> None:
    at = f"flow 1 (bulk) at {[0.115, 0.145, 0.195, 0.245, 0.285][reading]:.6f} s: tcp_info has "
    at += "a window of " * (column == "cwnd_packets")
    for value, ok in ((low, True), (high, True), (low - 1, False), (high + 1, False)):
        values = _info()[column].tolist()
        values[reading] = value
        failed = _failed(info=_info(**{column: values}))
        assert list(failed.values()) == ([] if ok else [f"{at}{value} {what}"]), value


@pytest.mark.parametrize(
    ("time_ms", "reading", "value", "ok"),
    [
        (99.9, 0, 99 * MSS, True),  # before the first record
        (100.0, 0, 99 * MSS, False),
        (100.0, 0, 0, True),  # nothing has to be acknowledged before it
        (105.0, 0, 0, True),
        (110.0, 0, 0, True),
        (110.1, 0, 0, False),  # of two records before it the later one is what it saw at least
        (289.9, 4, 99 * MSS, False),
        (290.0, 4, 99 * MSS, True),  # what the last ACK did is in no record
    ],
)
def test_a_reading_counts_from_the_first_record_to_the_last(time_ms: float, reading: int, value: int, ok: bool) -> None:
    times = [115.0, 145.0, 195.0, 245.0, 285.0]
    times[reading] = time_ms
    columns = {name: each.tolist() for name, each in _info().columns.items()}
    columns["bytes_acked_bytes"][reading] = value
    assert (_failed(info=make_info(times, **columns)) == {}) is ok


def test_a_reading_at_the_time_of_a_record_may_come_before_it_or_after() -> None:
    """Beside the one at 150 ms are those at 120 and 200 ms: what the ACKs at 110 to 220 ms did."""
    columns = {name: each.tolist() for name, each in _info().columns.items()}
    for value, ok in ((4 * MSS, True), (26 * MSS + 2, True), (4 * MSS - 1, False), (26 * MSS + 3, False)):
        columns["bytes_acked_bytes"][1] = value
        assert (_failed(info=make_info([120.0, 150.0, 200.0, 250.0, 280.0], **columns)) == {}) is ok


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([MISSING, 20, 20, 20, 20], None),  # the records beside the 2nd to the 4th reading have both
        ([MISSING, MISSING, MISSING, MISSING, 20], None),
        (
            [20] * 5,
            "at 0.115000 s: ssthresh is finite in tcp_info (20 packets) and infinite in tcp_probe: "
            "only one of them shows an exit",
        ),
        (
            [MISSING] * 5,
            "at 0.285000 s: ssthresh is infinite in tcp_info (none) and finite in tcp_probe: "
            "only one of them shows an exit",
        ),
    ],
)
def test_an_exit_is_in_both_or_in_none(values: list[int], message: str | None) -> None:
    failed = _failed(info=_info(ssthresh_packets=values))
    assert failed == ({} if message is None else {"exits of trace and tcp_info": f"flow 1 (bulk) {message}"})


def test_readings_without_a_column_say_nothing_of_it() -> None:
    nothing = make_info([115.0, 145.0], state=[1, 1], cwnd_packets=[12, 15], ssthresh_packets=[MISSING] * 2)
    assert "bytes of trace and tcp_info" in _checks(info=nothing)
    assert _failed(info=nothing) == {}
    assert _RETRANSMITTED not in _checks(info=nothing)
    closed = _info(cwnd_packets=[99] * 5, state=[4] * 5)
    assert _failed(info=closed) == {}


@pytest.mark.parametrize(("received", "ok"), [(38 * MSS, True), (38 * MSS - 1, False), (None, True), (10**9, True)])
def test_nothing_is_acknowledged_that_its_receiver_has_not(received: int | None, ok: bool) -> None:
    message = f"flow 1 (bulk): tcp_probe has {38 * MSS} bytes acknowledged, the receiver got {received}"
    check = _checks(received=received)[_BYTES]
    assert (check.ok, check.measured) == (ok, 0 if ok else 1)
    assert check.message == ("the receiver got what was acknowledged" if ok else message)
    program = dataclasses.replace(_trace(), flow=make_flow(traffic="program"))
    assert _checks(program, received=1)[_BYTES].ok is True


def test_a_transfer_must_be_traced_to_its_last_byte() -> None:
    size = 2 * _COUNT * MSS
    flow = make_flow(size_bytes=size, traffic="kernel")
    short = dataclasses.replace(_trace(), flow=flow, received_ns=250 * MS)
    assert list(_failed(short)) == [_BYTES]
    assert _failed(dataclasses.replace(short, acknowledged_bytes=size)) == {}
    assert _failed(short, complete=False) == {}
    late = dataclasses.replace(flow, stop_us=480_000)  # before an ACK that is delayed by 200 ms
    assert _failed(dataclasses.replace(short, flow=late)) == {}
    assert _failed(dataclasses.replace(short, flow=dataclasses.replace(flow, traffic="iperf3"))) == {}


@pytest.mark.parametrize(("stop_us", "ok"), [(490_000, True), (490_001, False)])
def test_the_last_ack_may_take_a_round_trip_and_a_delay(stop_us: int, ok: bool) -> None:
    """The receiver has everything at 250 ms; 40 ms and 200 ms later its ACK has come."""
    flow = make_flow(size_bytes=39 * MSS, stop_us=stop_us)
    late = dataclasses.replace(_trace(), flow=flow, received_ns=250 * MS)
    failed = _failed(late, received=39 * MSS)
    told = f"flow 1 (bulk): tcp_probe ends with {38 * MSS} bytes acknowledged, the receiver got {39 * MSS}"
    told += ": the last ACKs are missing, so nothing that is measured goes to the flow's end"
    assert failed == ({} if ok else {_BYTES: told})


@pytest.mark.parametrize("count", [3, 4, 5])
def test_three_flows_are_named_and_the_others_counted(count: int) -> None:
    traces = [dataclasses.replace(_trace(), flow=make_flow(id=number, name="x")) for number in range(1, count + 1)]
    check = _checks(traces[0], more=traces[1:], received=1)[_BYTES]
    words = [
        f"flow {number} (x): tcp_probe has {38 * MSS} bytes acknowledged, the receiver got 1" for number in (1, 2, 3)
    ]
    more = f"; and of {count - 3} more" if count > 3 else ""
    assert check == Check(_BYTES, "collection", False, "; ".join(words) + more, 0, count, 0, "flows")


@pytest.mark.parametrize(
    ("kind", "window", "exits", "message"),
    [
        ("Train", 19, 1, None),  # the window went from 19 to 20 packets when ssthresh became finite
        ("Delay", 20, 1, None),
        ("Train", 18, 1, "counts an exit at 18 packets (TCPHystart…Cwnd), tcp_probe shows none at that window"),
        ("Delay", 21, 1, "counts an exit at 21 packets (TCPHystart…Cwnd), tcp_probe shows none at that window"),
        ("Train", 99, 2, None),  # windows of two are added up
    ],
)
def test_an_exit_is_at_the_window_that_hystart_noted(kind: str, window: int, exits: int, message: str | None) -> None:
    name = f"TcpExtTCPHystart{kind}"
    check = _checks(counters={f"{name}Detect": exits, f"{name}Cwnd": window})[_HYSTART]
    if message is None:
        good = "the trace shows the exits that HyStart counted"
        assert check == Check(_HYSTART, "collection", True, good, exits, 1, None, "exits")
    else:
        assert check == Check(_HYSTART, "collection", False, f"{_SENDER} {message}", window, None, 0, "packets")


def test_the_window_of_an_exit_may_be_below_its_threshold() -> None:
    """HyStart may leave at a window that grows until the next record: up to ssthresh, 30 packets."""
    trace = _trace(ssthresh=[np.inf] * 10 + [30.0] * 10)
    info = _info(ssthresh_packets=[MISSING, MISSING, 30, 30, 30])
    for window, ok in ((30, True), (31, False)):
        counted = {"TcpExtTCPHystartTrainDetect": 1, "TcpExtTCPHystartTrainCwnd": window}
        assert _checks(trace, info, counted)[_HYSTART].ok is ok
    first = _trace(ssthresh=[20.0] * _COUNT)  # finite from the first record on, at a window of 10
    for window, ok in ((10, True), (20, True), (9, False), (21, False)):
        counted = {"TcpExtTCPHystartTrainDetect": 1, "TcpExtTCPHystartTrainCwnd": window}
        assert _checks(first, _info(ssthresh_packets=[20] * 5), counted)[_HYSTART].ok is ok


def test_the_ack_of_an_exit_may_begin_a_recovery_that_sets_another_threshold() -> None:
    """HyStart notes a window of 19 packets; the same ACK then cuts it to 17 on its way to 13."""
    cut = _trace(ssthresh=[np.inf] * 10 + [13.0] * 10)
    cut.cwnd[10:] = 17
    for window, ok in ((19, True), (18, False), (20, False)):
        counted = {"TcpExtTCPHystartDelayDetect": 1, "TcpExtTCPHystartDelayCwnd": window}
        assert _checks(cut, _info(ssthresh_packets=[MISSING, MISSING, 13, 13, 13]), counted)[_HYSTART].ok is ok


def test_an_exit_that_no_record_shows_fails() -> None:
    counted = {"TcpExtTCPHystartTrainDetect": 2, "TcpExtTCPHystartTrainCwnd": 40, "TcpExtTCPHystartDelayDetect": 1}
    check = _checks(_trace(ssthresh=[np.inf] * _COUNT), _info(ssthresh_packets=[MISSING] * 5), counted)[_HYSTART]
    message = f"{_SENDER} counts 3 exits from slow start (TCPHystart…Detect, windows 40 packets in all)"
    message += ", tcp_probe shows none: ssthresh stays infinite in every record"
    assert check == Check(_HYSTART, "collection", False, message, 3, 0, 0, "exits")


@pytest.mark.parametrize(("counted", "ok"), [(9, True), (10, True), (8, False)])
def test_a_host_counts_the_retransmissions_of_all_its_sockets(counted: int, ok: bool) -> None:
    info = _info(total_retrans_packets=[0, 0, 2, 5, 9])
    check = _checks(info=info, counters={"TcpRetransSegs": counted})[_RETRANSMITTED]
    good = "the host's counter has the retransmissions of its sockets"
    bad = f"{_SENDER} counts 8 retransmissions (TcpRetransSegs), tcp_info of its sockets 9"
    expected = Check(_RETRANSMITTED, "collection", ok, good if ok else bad, counted, 9, 0, "packets")
    assert check == expected
    other = dataclasses.replace(_trace(), flow=make_flow(id=2))
    assert _checks(info=info, counters={"TcpRetransSegs": 17}, more=[other])[_RETRANSMITTED].measured == 18
    assert _checks(info=info, counters={"TcpRetransSegs": 17}, more=[other])[_RETRANSMITTED].ok is False


@pytest.mark.parametrize(("last_ms", "counted"), [(2000.0, 1), (2000.1, 0)])
def test_what_is_sent_after_a_flows_stop_is_traced_by_nobody(last_ms: float, counted: int) -> None:
    """The flow has no size and stops at 2 s."""
    exits = {"TcpExtTCPHystartTrainDetect": 1, "TcpExtTCPHystartTrainCwnd": 20}
    assert _checks(counters=exits, last_ms=last_ms)[_HYSTART].expected == counted
    whole = dataclasses.replace(_trace(), received_ns=250 * MS)
    assert _checks(whole, counters=exits, last_ms=last_ms)[_HYSTART].expected == 1


@pytest.mark.parametrize("traffic", ["program", "flent"])
def test_programs_that_may_open_connections_are_not_compared_with_their_host(traffic: str) -> None:
    flow = make_flow(traffic=traffic)
    assert {_HYSTART, _RETRANSMITTED} & set(_checks(dataclasses.replace(_trace(), flow=flow))) == set()
    other = dataclasses.replace(_trace(), flow=make_flow(id=2, traffic=traffic))
    assert {_HYSTART, _RETRANSMITTED} & set(_checks(more=[other])) == set()
    elsewhere = dataclasses.replace(_trace(), flow=make_flow(id=2, traffic=traffic, sender="s2"))
    assert {_HYSTART, _RETRANSMITTED} <= set(_checks(more=[elsewhere]))


def test_only_the_kernels_flows_are_compared() -> None:
    for other in ({"sender_stack": make_stack("lwip")}, {"datagram_bytes": 1200}, {"program": make_quic("ngtcp2")}):
        assert _failed(dataclasses.replace(_trace(), flow=make_flow(**other)), received=1) == {}
    empty = make_trace([], [], [], flow=make_flow())
    assert list(_checks(empty)) == [_BYTES, *(name for name in _checks() if "tcp_info" in name and _SENDER not in name)]
