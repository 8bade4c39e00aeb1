# SPDX-License-Identifier: Apache-2.0
"""Overshoot, losses and their repair, timeouts, blackouts, estimates, queue peak, on hand-made traces."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from howdah.measure import overshoot, queue
from howdah.measure.capacity import FairCapacity
from howdah.measure.event import estimate_rows
from howdah.measure.exit import find_exit
from howdah.measure.opening import reach, reach_rows
from howdah.measure.overshoot import LossEpisode
from howdah.measure.recovery import recovery_rows
from howdah.measure.row import Sheet
from howdah.measure.throughput import blackout_s, silent_spans
from howdah.measure.trace import FlowTrace
from howdah.plan.plan import Plan
from howdah.record.metrics import MetricRow
from tests.unit.event_factory import told
from tests.unit.plan_factory import make_plan
from tests.unit.trace_factory import MS, MSS, make_counters, make_flow, make_info, make_measured, make_queue, make_trace

FRAME = 1514
RATE = 20_000_000


PATH = dataclasses.replace(
    make_plan().path, rate_bits_per_second=20_000_000, buffer_bytes=100_000, frame_bytes=1000, mss_bytes=MSS
)
STEADY = FairCapacity(0.0, [])


@pytest.mark.parametrize(("out", "beyond"), [(200, 0), (250, 50), (100, -100)])
def test_overshoot_is_the_peak_beyond_bdp_and_buffer_in_frames(out: int, beyond: int) -> None:
    """20 Mbit/s x 40 ms are 100 packets of 1000 bytes, and the buffer holds as many."""
    trace = make_trace([40.0, 41.0], [0, 0], [out, out - 1])
    assert overshoot.overshoot_packets(trace, None, STEADY, PATH) == beyond


def test_the_path_holds_what_its_rate_of_the_moment_lets_it() -> None:
    """From 500 ms on the link carries half: 150 packets out are then 50 too many, 160 before that none."""
    capacity = FairCapacity(100 * MSS * 8 / 0.04, [], [(500 * MS, 50 * MSS * 8 / 0.04)])
    path = dataclasses.replace(PATH, rate_steps=[[500_000, 10_000_000]])
    trace = make_trace([400.0, 600.0], [0, 0], [160, 150])
    assert overshoot.overshoot_packets(trace, None, capacity, path) == pytest.approx(0)
    assert overshoot.overshoot_packets(trace, None, STEADY, PATH) == -40


def test_the_peak_is_taken_until_two_rounds_after_the_exit() -> None:
    """One ACK a round: exit at record 2, peak of 60 in the second round after it, 70 in the third, 90 later."""
    out = [10, 20, 40, 50, 60, 70, 40, 90]
    una, nxt = [], []
    sent = 0
    for packets in out:
        una.append(sent)
        sent += packets
        nxt.append(sent)
    trace = make_trace(
        [40.0 * (index + 1) for index in range(len(out))],
        una,
        nxt,
        cwnd=out,
        ssthresh=[math.inf, math.inf, 28, 28, 28, 28, 28, 28],
    )
    found = find_exit(trace)
    assert overshoot.overshoot_packets(trace, found, STEADY, PATH) == 60 - 200
    assert overshoot.peak_cwnd(trace, found) == 60
    for count, last in ((5, 5), (6, 5)):  # with the two rounds after the exit, or one more
        short = make_trace(
            [40.0 * (index + 1) for index in range(count)],
            una[:count],
            nxt[:count],
            cwnd=out[:count],
            ssthresh=[math.inf, math.inf, *[28.0] * (count - 2)],
        )
        assert overshoot.startup_end(short, find_exit(short)) == last
    # Without an exit the whole flow is start-up.
    assert overshoot.overshoot_packets(trace, None, STEADY, PATH) == 90 - 200
    assert overshoot.overshoot_packets(make_trace([], [], []), None, STEADY, PATH) is None


def lossy() -> FlowTrace:
    """The third duplicate comes at 143 ms; everything sent by then is acknowledged at 200 ms."""
    return make_trace(
        [100, 140, 141, 142, 143, 144, 180, 200],
        una=[0, 20, 20, 20, 20, 20, 30, 60],
        nxt=[40, 60, 60, 60, 60, 60, 62, 64],
    )


def test_the_first_episode_counts_its_own_drops_and_retransmissions() -> None:
    info = make_info([0, 100, 200, 300, 400], total_retrans_packets=[0, 0, 7, 7, 90])
    bottleneck = make_queue([0, 50, 100, 200, 400], [0] * 5, drops=[0, 0, 5, 8, 99])
    episode = overshoot.first_loss_episode(lossy(), info, bottleneck, 40 * MS, 1)
    assert episode is not None
    assert (episode.begin_ns, episode.end_ns) == (142 * MS, 200 * MS)
    assert (episode.retransmitted, episode.dropped) == (7, 8)


def test_a_reading_at_the_moment_of_the_third_duplicate_has_what_was_sent_again_before_it() -> None:
    """One segment was sent again by the reading at 142 ms itself: it belongs to the episode that begins there."""
    info = make_info([0, 142, 200], total_retrans_packets=[0, 1, 1])
    episode = overshoot.first_loss_episode(lossy(), info, make_queue([0, 300], [0, 0]), 0, 1)
    assert episode is not None
    assert episode.retransmitted == 1


def test_reordering_is_no_loss() -> None:
    info = make_info([0, 100, 200, 300], total_retrans_packets=[0, 0, 0, 0])
    assert overshoot.first_loss_episode(lossy(), info, make_queue([0, 300], [0, 0]), 0, 1) is None


def test_without_tcp_info_the_queue_decides_for_a_single_flow() -> None:
    nothing = make_queue([0, 300], [0, 0], drops=[0, 0])
    some = make_queue([0, 300], [0, 0], drops=[0, 4])
    assert overshoot.first_loss_episode(lossy(), make_info([]), nothing, 0, 1) is None
    found = overshoot.first_loss_episode(lossy(), make_info([]), some, 0, 1)
    assert found is not None
    assert (found.retransmitted, found.dropped) == (None, 4)


def test_the_longest_rtt_tells_what_a_fifo_held() -> None:
    trace = make_trace(
        [40, 41, 42, 90, 91, 92],
        una=[0, 2, 4, 6, 8, 10],
        nxt=[6, 8, 10, 12, 14, 16],
        connected_ms=0,
    )
    # Segments 7 and 8 left at 40 ms and were acknowledged at 90 ms: 10 ms of queue at 20 Mbit/s, less the frame itself.
    found = queue.rtt_peak_bytes(trace, make_info([]), RATE, FRAME)
    assert found == pytest.approx(25_000 - FRAME)
    assert queue.rtt_peak_bytes(make_trace([], [], []), make_info([]), RATE, FRAME) is None


def test_a_round_trip_over_a_retransmission_is_no_queue() -> None:
    """The byte that a timer sent again was out for 300 ms; the queue held 24 000 bytes, and nothing contradicts it."""
    trace = make_trace([40, 41, 340, 341, 342], una=[0, 2, 4, 6, 8], nxt=[4, 8, 8, 10, 12])
    info = make_info([0, 100, 300, 400], total_retrans_packets=[0, 0, 1, 1])
    peak = queue.queue_peak([(trace, info)], make_queue([0, 10, 20], [0, 1_000, 0]), RATE, FRAME, fifo=True)
    assert peak.by_rtt_bytes == pytest.approx(1e-3 * RATE / 8 - FRAME)
    assert peak.agree
    once = make_info([0, 400], total_retrans_packets=[0, 0])
    assert not queue.queue_peak([(trace, once)], make_queue([0, 10], [0, 1_000]), RATE, FRAME, fifo=True).agree


def test_two_sources_of_the_queue_peak_are_compared() -> None:
    trace = make_trace([40, 41, 42, 90, 91, 92], una=[0, 2, 4, 6, 8, 10], nxt=[6, 8, 10, 12, 14, 16])
    flows = [(trace, make_info([]))]
    near = queue.queue_peak(flows, make_queue([0, 10, 20], [0, 24_000, 0]), RATE, FRAME, fifo=True)
    far = queue.queue_peak(flows, make_queue([0, 10, 20], [0, 90_000, 0]), RATE, FRAME, fifo=True)
    assert near.sampled_bytes == 24_000
    assert near.agree
    assert far.sampled_bytes == 90_000
    assert not far.agree
    # A queue that is no FIFO, or was not read, has one source only, and nothing to disagree with.
    other = queue.queue_peak(flows, make_queue([0, 10], [0, 90_000]), RATE, FRAME, fifo=False)
    assert other.by_rtt_bytes is None
    alone = queue.queue_peak(flows, make_queue([], []), RATE, FRAME, fifo=True)
    assert alone.sampled_bytes is None
    assert alone.agree


RTT_MS = 40  # of make_flow()
SENDER = make_flow().sender


def rows_of(sheet: Sheet) -> dict[str, MetricRow]:
    return {row.metric: row for row in sheet.rows}


def steady(stop_ms: float = 2000) -> FlowTrace:
    """A window of 10 packets a round trip from 40 ms on, to the end."""
    times = [40.0 * step for step in range(1, int(stop_ms // 40) + 1)]
    una = [10 * step for step in range(len(times))]
    return make_trace(times, una, [first + 10 for first in una], stop_ms=stop_ms)


def recovered(trace: FlowTrace, episode: LossEpisode | None, **parts: Any) -> dict[str, MetricRow]:
    sheet = Sheet({})
    recovery_rows(sheet, make_measured([trace], **parts), trace, episode)
    return rows_of(sheet)


def test_a_repair_lasts_from_the_third_duplicate_to_the_ack_of_all_that_was_out() -> None:
    episode = LossEpisode(400 * MS, 800 * MS, retransmitted=30, dropped=30)
    rows = recovered(steady(), episode)
    assert rows["recovery_s"].value == pytest.approx(0.4)
    # 10 round trips of 40 ms, 30 packets.
    assert rows["repaired_per_rtt_packets"].value == pytest.approx(3)


def test_a_repair_that_is_not_over_lasts_to_the_end_of_the_flow() -> None:
    trace = steady()
    episode = LossEpisode(400 * MS, int(trace.time_ns[-1]), retransmitted=40, dropped=900)
    rows = recovered(trace, episode)
    assert rows["recovery_s"].value == pytest.approx(1.6)
    assert rows["repaired_per_rtt_packets"].value == pytest.approx(1)


def test_without_a_loss_there_is_no_repair_and_the_row_says_so() -> None:
    rows = recovered(steady(), None)
    assert rows["recovery_s"].value is None
    assert rows["recovery_s"].why == "no loss episode"
    unread = recovered(steady(), LossEpisode(400 * MS, 800 * MS, retransmitted=None, dropped=30))
    assert unread["repaired_per_rtt_packets"].value is None
    short = recovered(steady(), LossEpisode(400 * MS, 430 * MS, retransmitted=3, dropped=3))
    assert short["repaired_per_rtt_packets"].value is None


def test_timeouts_are_those_of_the_senders_host_while_the_flow_is_there() -> None:
    name = "TcpExtTCPTimeouts"
    readings = [(-100, SENDER, name, 7), (500, SENDER, name, 7), (900, SENDER, name, 9), (1900, SENDER, name, 10)]
    counters = make_counters([*readings, (900, "elsewhere", name, 99)])
    rows = recovered(steady(), None, counters=counters)
    assert rows["timeouts"].value == 3
    assert rows["first_timeout_s"].value == pytest.approx(0.9)
    calm = recovered(steady(), None, counters=make_counters([(-100, SENDER, name, 7), (1900, SENDER, name, 7)]))
    assert calm["timeouts"].value == 0
    assert calm["first_timeout_s"].value is None
    unread = recovered(steady(), None)
    assert (unread["timeouts"].value, unread["timeouts"].why) == (None, "the counters were not read")


def test_timeouts_of_two_flows_of_one_host_cannot_be_told_apart() -> None:
    one, other = steady(), make_trace([], [], [], flow=make_flow(id=2))
    counters = make_counters([(0, SENDER, "TcpExtTCPTimeouts", 0), (900, SENDER, "TcpExtTCPTimeouts", 2)])
    sheet = Sheet({})
    recovery_rows(sheet, make_measured([one, other], counters=counters), one, None)
    shared = "other flows of this host share its counters"
    told = {row.metric: (row.flow, row.value, row.why) for row in sheet.rows}
    assert told["timeouts"] == told["first_timeout_s"] == (one.flow.id, None, shared)
    assert {row.flow for row in sheet.rows} == {one.flow.id}


def silent(begin: int, end: int, steps: int = 1000) -> FlowTrace:
    """20 Mbit/s (the capacity of make_plan()) but from round ``begin`` to ``end``, and once more for one round."""
    times, una, sent = [], [], 0
    for step in range(1, steps):
        if begin <= step < end or step == end + 20:
            continue
        times.append(40.0 * step)
        una.append(sent)
        sent += 60
    return make_trace(times, una, [first + 60 for first in una], stop_ms=40.0 * (steps - 4))


def test_the_longest_blackout_is_the_longest_stretch_and_not_the_sum() -> None:
    trace = silent(100, 200)
    rows = recovered(trace, None)
    capacity = make_measured([trace]).capacity
    total = blackout_s(trace, capacity)
    spans = silent_spans(trace, capacity)
    assert total is not None and spans is not None
    longest = rows["longest_blackout_s"].number
    assert longest is not None
    assert longest == pytest.approx(100 * RTT_MS / 1000, abs=0.1)
    assert len(spans) == 2
    assert total == pytest.approx(longest + RTT_MS / 1000)
    assert rows["long_blackout"].value == 0


def test_a_blackout_is_long_from_thirty_seconds_on() -> None:
    assert recovered(silent(50, 50 + 760), None)["long_blackout"].value == 1
    assert recovered(silent(50, 50 + 740), None)["long_blackout"].value == 0


def test_a_flow_that_never_got_going_has_no_blackout() -> None:
    trace = make_trace([40, 80, 120], [0, 1, 2], [1, 2, 3])
    assert recovered(trace, None)["longest_blackout_s"].value is None
    assert recovered(make_trace([], [], []), None)["long_blackout"].value is None


def test_the_first_estimate_of_a_rate_is_what_the_module_told() -> None:
    events = [
        told(100, "phase", "queue-estimate", quantity=5, threshold=1),
        told(200, "estimate", "packet-pair", quantity=143_400, threshold=3, ssthresh_packets=1263),
        told(900, "estimate", "packet-pair", quantity=9, threshold=3, ssthresh_packets=7),
    ]
    sheet = Sheet({})
    estimate_rows(sheet, steady(), events)
    rows = rows_of(sheet)
    assert rows["estimated_bits_per_second"].value == 143_400_000
    assert rows["estimated_packets"].value == 1263
    nothing = Sheet({})
    estimate_rows(nothing, steady(), events[:1])
    assert nothing.rows == []


def growing() -> FlowTrace:
    """Connected at 40 ms; the windows 1, 2, 4, 8, one ACK a round from 80 ms on."""
    return make_trace([80, 120, 160, 200], [0, 1, 3, 7], [1, 3, 7, 15], cwnd=[1, 2, 4, 8], connected_ms=40)


def test_a_window_is_reached_by_the_ack_after_which_it_is_there() -> None:
    found = reach(growing(), 4)
    assert found is not None
    assert found.time_s == pytest.approx(0.08)  # the ACK at 120 ms, 80 ms after the connection
    assert found.rounds == 2
    assert reach(growing(), 5) == dataclasses.replace(found, time_s=0.12, rounds=3)
    assert reach(growing(), 9) is None
    assert reach(make_trace([], [], []), 2) is None


def test_a_round_in_the_middle_of_which_the_window_is_reached_counts_whole() -> None:
    trace = make_trace([80, 120, 121, 160], [0, 2, 3, 4], [2, 5, 6, 8], cwnd=[2, 3, 4, 5])
    found = reach(trace, 4)
    assert found is not None
    assert found.rounds == 2


def test_the_window_that_is_looked_for_is_the_plans() -> None:
    sheet = Sheet({})
    reach_rows(sheet, growing(), None)
    assert sheet.rows == []
    reach_rows(sheet, growing(), 100)
    assert rows_of(sheet)["time_to_cwnd_s"].why == "the window never was 100 packets"
    plan = make_plan()
    assert "measure_cwnd_packets" not in plan.to_json()
    asked = dataclasses.replace(plan, measure_cwnd_packets=5000)
    assert Plan.from_json(asked.to_json()) == asked
