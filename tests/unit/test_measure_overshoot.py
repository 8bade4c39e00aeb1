# SPDX-License-Identifier: Apache-2.0
"""Overshoot, first loss episode and queue peak, on hand-made traces."""

from __future__ import annotations

import dataclasses
import math

import pytest

from howdah.measure import overshoot, queue
from howdah.measure.capacity import FairCapacity
from howdah.measure.exit import find_exit
from howdah.measure.trace import FlowTrace
from tests.unit.plan_factory import make_plan
from tests.unit.trace_factory import MS, MSS, make_info, make_queue, make_trace

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
