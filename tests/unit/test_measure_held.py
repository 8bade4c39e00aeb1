# SPDX-License-Identifier: Apache-2.0
"""What held a flow back, on lives made by hand: each kind with the time computed by hand, and all of them together."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from howdah.held import HeldBy
from howdah.measure.capacity import FairCapacity
from howdah.measure.held import GroupHoldings, Holding, held_most, held_rows, holding, holding_rows
from howdah.measure.interval import receive_kinds
from howdah.measure.rounds import Restart, restarts_of, window_cuts
from howdah.measure.row import GroupOf, Sheet
from howdah.measure.sampled import NEVER, Busy, Samples, busy_of, steady
from howdah.measure.trace import FlowTrace
from howdah.plan.traffic import Exchange
from tests.unit.trace_factory import MS, MSS, make_flow, make_info, make_measured, make_queue, make_trace

RTT_MS = 40
BULK: dict[str, Any] = {"size_bytes": None, "rtt_us": RTT_MS * 1000, "program": None}
FAST = 1e12  # bit/s: a path that nobody fills


def divide(
    trace: FlowTrace,
    info: Samples | None = None,
    *,
    rate: float = FAST,
    link: Busy = NEVER,
    way_back: Busy = NEVER,
    thinks_ms: tuple[tuple[float, float], ...] = (),
) -> Holding:
    capacity = FairCapacity(rate, [(trace.start_ns, trace.stop_ns)])
    thinks = [(int(begin * MS), int(end * MS)) for begin, end in thinks_ms]
    found = holding(trace, make_info([]) if info is None else info, capacity, link, way_back, thinks)
    assert found is not None
    assert sum(found.seconds.values()) == pytest.approx(found.span_s, rel=1e-12)
    return found


def seconds(found: Holding) -> dict[str, float]:
    return {kind.value: round(time, 6) for kind, time in found.seconds.items()}


def bulk(time_ms: list[float], una: list[int], nxt: list[int], cwnd: list[int], **more: Any) -> FlowTrace:
    """A flow without end whose run ends with its last ACK; its first flight leaves at 0."""
    more = {"stop_ms": time_ms[-1], "flow": make_flow(**BULK), **more}
    return make_trace(time_ms, una, nxt, cwnd, **more)


def lockstep(count: int, flight: list[int] | int, cwnd: list[int] | int, **more: Any) -> FlowTrace:
    """One ACK a round trip, which acknowledges the whole flight before it."""
    flights = flight if isinstance(flight, list) else [flight] * count
    windows = cwnd if isinstance(cwnd, list) else [cwnd] * count
    una = [0, *np.cumsum(flights)[:-1].tolist()]
    nxt = np.cumsum(flights).tolist()
    return bulk([RTT_MS * (number + 1) for number in range(count)], una, nxt, windows, **more)


def readings(trace: FlowTrace, **columns: list[int] | int) -> Samples:
    """At every ACK; established and with unsent data, unless ``columns`` say otherwise."""
    usual: dict[str, list[int] | int] = {"state": 1, "ca_state": 0, "notsent_bytes": 100_000}
    count = len(trace)
    lists = {n: v if isinstance(v, list) else [v] * count for n, v in {**usual, **columns}.items()}
    return make_info((trace.time_ns / MS).tolist(), **lists)


def test_a_window_that_doubles_holds_a_flow_all_its_time() -> None:
    found = divide(lockstep(4, [10, 20, 40, 80], [10, 20, 40, 80]))
    assert seconds(found) == {"congestion-window": 0.16}
    assert (found.span_s, found.window_bytes) == (0.16, None)


def test_a_flow_at_the_rate_of_its_path() -> None:
    """80 segments in 40 ms are 23.168 Mbit/s, of 25 Mbit/s 93 %: from the ACK at 120 ms on that of the first flight of
    80. Of the last ACK nobody knows what it acknowledges."""
    trace = lockstep(6, [20, 40, 80, 80, 80, 80], [20, 40, 80, 80, 80, 80])
    assert seconds(divide(trace, rate=25e6)) == {"congestion-window": 0.12, "bandwidth": 0.12}


@pytest.mark.parametrize(("part", "kind"), [(0.6, "bandwidth"), (0.2, "congestion-window")])
def test_of_a_busy_link_a_flow_has_its_share_or_is_a_newcomer(part: float, kind: str) -> None:
    """The flow sends 8 Mbit/s (27.6 segments a round trip) over a busy link; alone it could have 8 / part."""
    trace = lockstep(10, 27, [27] * 10)
    link = Busy(np.array([0, 10**9]), np.array([True]))
    found = divide(trace, rate=27 * MSS * 8 / 0.04 / part, link=link)
    assert found.seconds[HeldBy(kind)] >= 0.32


def test_a_receive_window_at_its_maximum() -> None:
    """28 segments of 40 960 bytes a round trip, and a congestion window of 56: all the time but the first flight."""
    trace = lockstep(50, [10, *[28] * 49], [10, *[56] * 49], window_bytes=[40960] * 50)
    found = divide(trace)
    assert seconds(found) == {"congestion-window": 0.04, "receive-buffer": 1.96}
    assert found.window_bytes == 40960
    assert receive_kinds(trace, make_info([])) == {HeldBy.RECEIVE_BUFFER: pytest.approx(1.96)}


def test_a_receive_window_that_grows_later() -> None:
    windows = [65536 * 2**number for number in range(5)]
    trace = lockstep(5, [window // MSS for window in windows], [10_000] * 5, window_bytes=windows)
    assert seconds(divide(trace)) == {"autotuning": 0.2}


def test_a_window_that_stays_four_round_trips_is_its_buffers_maximum() -> None:
    growing = [65536, 131072, 262144]
    for stays, kinds in ((3, {"autotuning"}), (8, {"autotuning", "receive-buffer"})):
        windows = growing + [524288] * stays
        trace = lockstep(
            len(windows), [window // MSS for window in windows], [10_000] * len(windows), window_bytes=windows
        )
        found = divide(trace)
        assert set(seconds(found)) == kinds
        assert found.seconds.get(HeldBy.RECEIVE_BUFFER, 0.0) == pytest.approx(0.04 * stays if stays > 4 else 0)


def test_a_reader_that_stops_has_a_full_buffer() -> None:
    """The window falls to nothing after it was 512 KiB, and opens again to no more."""
    windows = [65536, 524288, 524288, 1000, 1000, 524288]
    flights = [45, 20, 20, 20, 20, 20]
    trace = lockstep(6, flights, [10_000] * 6, window_bytes=windows)
    info = readings(trace, notsent_bytes=[9, 0, 0, 9, 9, 0])
    assert divide(trace, info).seconds[HeldBy.RECEIVE_BUFFER] == pytest.approx(0.08)


def test_the_window_of_the_handshake_holds_a_large_first_flight() -> None:
    """45 segments are 65 160 bytes, which is what an unscaled window of 65 535 lets pass of 70."""
    windows = [65160, 2_000_000, 2_000_000]
    trace = lockstep(3, [45, 115, 230], [70, 115, 230], window_bytes=windows)
    assert seconds(divide(trace)) == {"congestion-window": 0.08, "handshake-window": 0.04}


def test_a_small_buffer_is_no_window_of_the_handshake() -> None:
    trace = lockstep(50, 5, [10] * 50, window_bytes=[8192] * 50)
    assert seconds(divide(trace)) == {"receive-buffer": 2.0}


def test_a_full_send_buffer_is_what_the_kernel_counts() -> None:
    """The count stands while nothing is sent; as much is in flight then as while it grew."""
    trace = lockstep(10, 30, [10, *[90] * 9])
    info = readings(trace, notsent_bytes=0, sndbuf_limited_us=[0, 0, 0, 40_000, 80_000, 80_000, *[120_000] * 4])
    found = divide(trace, info)
    assert found.seconds[HeldBy.SEND_BUFFER] == pytest.approx(0.36)
    assert found.share(HeldBy.SEND_BUFFER) == pytest.approx(0.9)


def test_an_application_that_writes_slowly_or_stops() -> None:
    trace = lockstep(10, 5, [90] * 10)
    assert seconds(divide(trace, readings(trace, notsent_bytes=0))) == {"application": 0.4}
    # A pause of 500 ms with nothing outstanding: the ACK comes a round trip behind the data that end it.
    paused = bulk([40, 80, 620, 660], [0, 10, 30, 50], [10, 30, 50, 90], [10, 20, 20, 40])
    assert seconds(divide(paused)) == {"congestion-window": 0.16, "application": 0.5}


def closed_loop(**changes: Any) -> FlowTrace:
    """Two answers of 30 segments, 1 s of thinking between; the request arrives at 1.08 s, the window restarts."""
    flow = make_flow(
        size_bytes=60 * MSS,
        rtt_us=RTT_MS * 1000,
        exchange=Exchange(object_bytes=30 * MSS, request_bytes=300, requests=2, think_us=10**6),
    )
    time: list[float] = [20, 60, 100, 1120, 1160, 1200]
    una = [0, 0, 10, 30, 30, 40]
    nxt = [0, 10, 30, 30, 40, 60]
    cwnd = [10, 10, 20, 40, 10, 20]
    return make_trace(time, una, nxt, cwnd, flow=dataclasses.replace(flow, **changes), stop_ms=1180)


def test_think_time_is_apart_from_the_rest_that_the_application_waits() -> None:
    """20 ms until the first request; then two rounds, the pause of 1 s and 20 ms of the request's way, two rounds."""
    found = divide(closed_loop(), thinks_ms=((100, 1100),))
    assert seconds(found) == {"congestion-window": 0.08, "application": 0.04, "think": 1.0, "idle-restart": 0.08}
    assert found.span_s == pytest.approx(1.2)


def test_restarts_have_the_windows_on_both_sides() -> None:
    trace = closed_loop()
    assert restarts_of(trace) == [Restart(40, 10)]
    assert window_cuts(trace, 0) == 0
    lossy = lockstep(4, [10, 20, 10, 5], [10, 20, 10, 5])
    # ACKs of whole flights leave nothing outstanding, as an idle time does: these are restarts by the rule.
    assert len(restarts_of(lossy)) == 2
    overlapping = dataclasses.replace(lossy, snd_una=lossy.snd_una - MSS)
    assert restarts_of(overlapping) == []
    assert window_cuts(overlapping, 0) == 1
    assert window_cuts(overlapping, int(130 * MS)) == 1
    assert window_cuts(overlapping, int(170 * MS)) == 0


def test_the_last_flight_of_a_transfer_is_held_back_by_what_held_the_one_before() -> None:
    """100 segments as 10, 20, 40 and 30: the last 30 fit into a window of 80, and take their round trip."""
    flow = make_flow(size_bytes=100 * MSS, rtt_us=RTT_MS * 1000)
    trace = make_trace([40, 80, 120, 160], [0, 10, 30, 70], [10, 30, 70, 100], [10, 20, 40, 80], flow=flow, stop_ms=140)
    assert seconds(divide(trace)) == {"congestion-window": 0.16}
    at_once = make_trace([40], [0], [5], [10], flow=make_flow(size_bytes=5 * MSS, rtt_us=RTT_MS * 1000), stop_ms=20)
    assert seconds(divide(at_once)) == {"application": 0.04}


def test_a_paced_sender_leaves_room_in_its_window() -> None:
    """20 segments a round trip of a window of 90, at 724 000 bytes/s: the pacing rate."""
    trace = lockstep(10, 20, [90] * 10)
    paced = readings(trace, pacing_rate_bytes_per_second=20 * MSS * 25)
    assert divide(trace, paced).share(HeldBy.PACING) == pytest.approx(0.9, abs=0.11)
    faster = readings(trace, pacing_rate_bytes_per_second=200 * MSS * 25)
    assert divide(trace, faster).share(HeldBy.UNKNOWN) == 1.0


def test_acks_that_wait_on_a_full_way_back() -> None:
    trace = lockstep(10, 20, [20] * 10)
    back = Busy(np.array([0, 200 * MS, 400 * MS]), np.array([False, True]))
    assert seconds(divide(trace, way_back=back)) == {"congestion-window": 0.2, "way-back": 0.2}


def test_a_window_that_was_cut_holds_until_it_is_what_it_was() -> None:
    cwnd = [40, 80, 40, 60, 80, 90]
    trace = lockstep(6, cwnd, cwnd)
    trace = dataclasses.replace(trace, snd_una=np.maximum(trace.snd_una - MSS, 0))  # something is outstanding
    cut = lockstep(6, cwnd, cwnd)
    assert seconds(divide(trace)) == {"congestion-window": 0.16, "window-cut": 0.08}
    assert seconds(divide(cut)) == {"congestion-window": 0.16, "idle-restart": 0.08}


def test_the_repair_of_losses() -> None:
    """Three ACKs in a row that acknowledge nothing new, from 80 to 120 ms; all is acknowledged at 160 ms."""
    trace = bulk(
        [40, 80, 90, 100, 110, 160, 200],
        [0, 10, 20, 20, 20, 20, 60],
        [10, 30, 40, 50, 60, 60, 100],
        [10, 20, 20, 20, 20, 20, 40],
    )
    info = make_info(
        [0, 100, 200],
        state=[1] * 3,
        ca_state=[0, 3, 0],
        notsent_bytes=[9] * 3,
        sacked_packets=[0, 20, 0],
        lost_packets=[0, 1, 0],
        retrans_packets=[0, 1, 0],
    )
    found = divide(trace, info)
    assert found.seconds[HeldBy.RECOVERY] == pytest.approx(0.1)


def test_what_has_arrived_beyond_a_gap_leaves_room_in_the_congestion_window() -> None:
    """40 segments fill the receive window; 25 of them have arrived, so that a congestion window of 30 has room."""
    trace = bulk(
        [40, 80, 90, 100, 110, 160, 200],
        [0, 10, 20, 20, 20, 20, 60],
        [10, 30, 60, 60, 60, 60, 100],
        [10, 20, 30, 30, 30, 30, 40],
        window_bytes=[10**6, 10**6, *[40 * MSS] * 4, 10**6],
    )
    info = make_info(
        [0, 100, 200],
        state=[1] * 3,
        ca_state=[0, 3, 3],
        notsent_bytes=[9] * 3,
        sacked_packets=[0, 25, 25],
        lost_packets=[0, 1, 1],
        retrans_packets=[0, 1, 1],
    )
    # From the third ACK in a row that acknowledges nothing new, at 110 ms.
    assert receive_kinds(trace, info) == {HeldBy.RECEIVE_BUFFER: pytest.approx(0.06)}


def test_a_timeout_is_the_silence_before_it_and_the_repair_behind() -> None:
    """Nothing comes for 400 ms, then the window is 1; what was outstanding is acknowledged at 560 ms."""
    trace = bulk(
        [40, 80, 480, 520, 560, 600],
        [0, 10, 10, 11, 13, 30],
        [10, 30, 30, 30, 30, 34],
        [10, 20, 1, 2, 4, 4],
    )
    found = divide(trace)
    assert found.seconds[HeldBy.TIMEOUT] == pytest.approx(0.4 + 0.08)
    # Silence in which nothing comes until the end of the run.
    ended = bulk([40, 80], [0, 10], [10, 30], [10, 20], stop_ms=1000)
    assert seconds(divide(ended)) == {"congestion-window": 0.08, "timeout": 0.92}


def test_a_probe_after_a_silence_is_no_timeout() -> None:
    trace = bulk([40, 80, 400, 440], [0, 10, 10, 31], [10, 30, 31, 71], [10, 20, 21, 40])
    assert HeldBy.TIMEOUT not in divide(trace).seconds


def test_without_an_ack_nothing_is_said() -> None:
    trace = make_trace([], [], [])
    assert holding(trace, make_info([]), FairCapacity(FAST, []), NEVER, NEVER, []) is None
    sheet = Sheet({})
    holding_rows(sheet, GroupOf("web", "cubic", "measured"), GroupHoldings())
    assert all(row.value is None and row.why for row in sheet.rows)


def test_a_link_is_busy_between_readings() -> None:
    """1 Mbit/s carries 12 500 bytes in 100 ms."""
    queue = make_queue([0, 100, 200, 300], [0] * 4, sent=[0, 12_500, 20_000, 31_300])
    busy = busy_of(queue, "sent_bytes", steady(1e6))
    assert busy.busy.tolist() == [True, False, True]
    assert busy.at(np.array([-5, 0, 50, 100, 150, 300, 301]) * MS).tolist() == [
        *[False, False, True, True, False, True, False]
    ]
    assert not busy_of(make_queue([0], [0]), "sent_bytes", steady(1e6)).at(np.array([0])).any()


def test_what_is_told_first() -> None:
    shares = dict.fromkeys(HeldBy, 0.0)
    ordinary = {**shares, HeldBy.CONGESTION_WINDOW: 0.5, HeldBy.BANDWIDTH: 0.46, HeldBy.PACING: 0.04}
    assert held_most(ordinary) is HeldBy.CONGESTION_WINDOW
    assert held_most({**ordinary, HeldBy.BANDWIDTH: 0.44, HeldBy.PACING: 0.06}) is HeldBy.PACING
    assert held_most({**shares, HeldBy.THINK: 0.84, HeldBy.IDLE_RESTART: 0.12}) is HeldBy.IDLE_RESTART
    thinking = {**shares, HeldBy.THINK: 0.9}
    assert held_most({**thinking, HeldBy.IDLE_RESTART: 0.02, HeldBy.BANDWIDTH: 0.08}) is HeldBy.IDLE_RESTART, "20 %"
    assert held_most({**thinking, HeldBy.IDLE_RESTART: 0.004, HeldBy.BANDWIDTH: 0.096}) is HeldBy.THINK, "4 %"
    assert held_most({**shares, HeldBy.THINK: 1.0}) is HeldBy.THINK


def test_the_rows_of_a_flow_add_up_and_agree_with_the_kernel() -> None:
    trace = lockstep(50, [10, *[28] * 49], [10, *[56] * 49], window_bytes=[40960] * 50)
    trace = dataclasses.replace(trace, stop_ns=2000 * MS)
    counted = [max(0, 40_000 * (number - 1)) for number in range(51)]
    info = make_info([RTT_MS * number for number in range(51)], rwnd_limited_us=counted)
    sheet = Sheet({})
    held_rows(sheet, make_measured([trace], info=info), trace, None)
    rows = {row.metric: row.value for row in sheet.rows}
    assert sum(float(rows[kind.metric] or 0) for kind in HeldBy) == pytest.approx(1)
    assert rows["held_receive_window_share"] == rows["held_receive_buffer_share"] == pytest.approx(0.98)
    assert (rows["held_back_by"], rows["held_window_bytes"]) == ("receive-buffer", 40960)
    assert rows["receive_window_limited_s"] == 1.96
    (check,) = sheet.cross_checks
    assert (check.metric, check.agree) == ("held_receive_window_share", True)
    silent = make_info([RTT_MS * number for number in range(51)], rwnd_limited_us=[0] * 51)
    sheet = Sheet({})
    held_rows(sheet, make_measured([trace], info=silent), trace, None)
    assert not sheet.cross_checks[0].agree


def test_a_group_is_the_time_of_all_its_connections() -> None:
    together = GroupHoldings([Holding({HeldBy.THINK: 1.0, HeldBy.PACING: 1.0}, 2.0), Holding({HeldBy.THINK: 6.0}, 6.0)])
    sheet = Sheet({})
    holding_rows(sheet, GroupOf("web", "cubic", "measured"), together)
    rows = {row.metric: row.value for row in sheet.rows}
    assert (rows["held_think_share"], rows["held_pacing_share"], rows["held_back_by"]) == (0.875, 0.125, "pacing")
    assert rows["held_back_share"] == 1.0, "of all the time in which no client thought"
    assert rows["idle_restarts"] == 0
