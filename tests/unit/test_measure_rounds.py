# SPDX-License-Identifier: Apache-2.0
"""Rounds, recovery episodes, raw RTTs and trains of packets and ACKs, on hand-made traces."""

from __future__ import annotations

import numpy as np
import pytest

from howdah.measure.conversation import Acks, Conversation, DataSegments
from howdah.measure.receiver import Train, last_train, lone_acks
from howdah.measure.rounds import Episode, episodes, raw_rtt, rounds, send_time_doubt_ns, sent_once
from howdah.measure.trace import FlowTrace
from tests.unit.trace_factory import MS, MSS, make_flow, make_info, make_trace


def slow_start() -> FlowTrace:
    """Initial window of 4, one ACK for two segments, RTT 40 ms: rounds begin with the ACKs at 40, 80 and 120 ms."""
    return make_trace(
        [40, 41, 80, 81, 82, 83, 120],
        una=[0, 2, 4, 6, 8, 10, 12],
        nxt=[4, 8, 12, 16, 20, 24, 28],
        cwnd=[4, 6, 8, 10, 12, 14, 16],
    )


def test_a_round_ends_when_all_that_was_out_at_its_start_is_acknowledged() -> None:
    assert rounds(slow_start()).tolist() == [0, 2, 6]


def test_no_records_have_no_rounds_and_one_record_has_one() -> None:
    none = rounds(make_trace([], [], []))
    assert none.tolist() == []
    assert np.issubdtype(none.dtype, np.integer), "they are indices"
    assert rounds(make_trace([40], [0], [10])).tolist() == [0]


def test_the_doubt_about_a_time_is_a_share_of_the_round_trip_or_of_the_spacing_of_acks() -> None:
    """One per cent of 40 ms, or four times the median of 1, 1 and 5 ms."""
    near = make_trace([40.0, 40.05, 40.1], [0, 1, 2], [10, 10, 10])
    far = make_trace([40, 41, 42, 47], [0, 1, 2, 3], [10, 10, 10, 10])
    assert near.flow.rtt_us == 40_000
    assert send_time_doubt_ns(near) == send_time_doubt_ns(make_trace([40], [0], [10])) == 400_000
    assert send_time_doubt_ns(far) == 4 * MS


def test_a_silent_connection_does_not_hang_the_detector() -> None:
    idle = make_trace([1, 2, 3], una=[5, 5, 5], nxt=[5, 5, 5])
    assert rounds(idle).tolist() == [0]


def test_raw_rtt_is_the_time_since_the_ack_that_let_the_byte_go() -> None:
    rtt, good = raw_rtt(slow_start())
    # The first window left when the connection could send, at 0; the ACK at 40 ms sent segments 5 to 8.
    assert (rtt[good] / MS).tolist() == [40, 41, 40, 41]
    # Segments 9 to 12 left at 41 ms or during the silence until 80 ms; nobody knows what the last ACK acknowledged.
    assert good.tolist() == [True] * 4 + [False] * 3


def test_a_user_space_senders_first_flight_has_no_known_time() -> None:
    trace = slow_start()
    user = make_trace(
        [40, 41, 80, 81, 82, 83, 120],
        una=[0, 2, 4, 6, 8, 10, 12],
        nxt=[4, 8, 12, 16, 20, 24, 28],
        flow=make_flow(traffic="python"),
    )
    assert raw_rtt(trace)[1].tolist() == [True] * 4 + [False] * 3
    assert raw_rtt(user)[1].tolist() == [False] * 2 + [True] * 2 + [False] * 3


def test_a_connection_opened_before_its_flow_starts_counts_from_the_start() -> None:
    early = make_trace([140, 141], una=[0, 2], nxt=[4, 8], start_ms=100, connected_ms=-500)
    rtt, good = raw_rtt(early)
    assert (rtt[good] / MS).tolist() == [40]


def test_the_last_segment_of_a_flight_has_an_uncertain_time() -> None:
    """After the ACK at 41 ms nothing comes for 39 ms: what left in that time may have left at any moment of it."""
    trace = make_trace(
        [40, 40.1, 40.2, 40.3, 41, 80, 80.1, 80.2, 81, 82],
        una=[0, 2, 4, 6, 8, 10, 12, 14, 16, 18],
        nxt=[10, 12, 14, 16, 18, 20, 22, 24, 26, 28],
        connected_ms=None,
    )
    _rtt, good = raw_rtt(trace)
    # Record 8 acknowledges segments 17 and 18, which left between 40.3 and 41 ms; record 9 is the last.
    assert good.tolist() == [False] * 5 + [True, True, True, False, False]


def test_a_delayed_ack_of_one_segment_is_no_round_trip() -> None:
    trace = make_trace(
        [40, 41, 42, 43, 83, 84],
        una=[0, 2, 4, 6, 8, 9],
        nxt=[10, 11, 12, 13, 14, 15],
        connected_ms=0,
    )
    _rtt, good = raw_rtt(trace)
    assert good.tolist() == [True, True, True, True, False, False]


def loss() -> FlowTrace:
    """Segment 21 is lost: five duplicates, then the ACK at 85 ms of all 40 segments sent before the third."""
    return make_trace(
        [40, 41, 42, 43, 44, 45, 85, 86, 87],
        una=[0, 20, 20, 20, 20, 20, 20, 40, 42],
        nxt=[40, 40, 40, 40, 40, 42, 42, 44, 46],
    )


def test_an_episode_lasts_from_the_third_duplicate_to_the_recovery_point() -> None:
    assert episodes(loss()) == [Episode(3, 7)]


def test_no_rtt_is_taken_inside_a_recovery() -> None:
    _rtt, good = raw_rtt(loss())
    # Record 6 acknowledges the lost segment, which was sent twice; what record 7 acknowledges left after the loss.
    assert good.tolist() == [True, False, False, False, False, False, False, True, False]


def test_a_byte_that_left_in_a_recovery_may_have_been_repaired_in_it() -> None:
    """Segments 41 and 42 leave at 45 ms, among the duplicates. Only a counter says that they were not sent again."""
    trace = loss()
    repaired = make_info([0, 44, 46, 100], total_retrans_packets=[0, 0, 1, 1])
    quiet = make_info([0, 100], total_retrans_packets=[0, 0])
    unread = make_info([])
    assert raw_rtt(trace)[1][7]
    assert sent_once(trace, quiet).all()
    for info in (repaired, unread):
        assert not sent_once(trace, info)[7]
        # What was acknowledged before the loss left once, whatever was sent again later.
        assert sent_once(trace, info)[0]


def test_a_byte_that_left_behind_the_last_duplicate_of_a_recovery_is_none_to_rely_on() -> None:
    """Segments 41 and 42 leave at the first ACK that moves on; every ACK after it moves on, too."""
    trace = make_trace(
        [40, 41, 42, 43, 44, 85, 86, 126, 127],
        una=[0, 20, 20, 20, 20, 20, 30, 40, 42],
        nxt=[40, 40, 40, 40, 40, 40, 42, 44, 46],
    )
    assert episodes(trace) == [Episode(3, 7)]
    assert raw_rtt(trace)[1][7]
    assert not sent_once(trace, make_info([0, 50, 90, 130], total_retrans_packets=[0, 1, 2, 3]))[7]


def test_a_byte_that_waited_for_a_timer_was_perhaps_sent_by_it() -> None:
    """Segments 5 and 6 leave at 40 ms; after 41 ms nothing is heard until a timer has sent them again."""
    trace = make_trace([40, 41, 340, 341, 342], una=[0, 2, 4, 6, 8], nxt=[4, 8, 8, 10, 12])
    rtt, good = raw_rtt(trace)
    assert good[2]
    assert rtt[2] == 300 * MS
    timer = make_info([0, 100, 300, 400], total_retrans_packets=[0, 0, 1, 1])
    assert sent_once(trace, timer).tolist() == [True, True, False, False, False]
    # A path that became longer is silent, too, and nothing is sent again.
    assert sent_once(trace, make_info([0, 400], total_retrans_packets=[0, 0])).all()
    # Nobody read the counter after the last ACK.
    assert not sent_once(trace, make_info([0, 40], total_retrans_packets=[0, 0]))[2]


def test_a_byte_behind_a_gap_waits_for_its_repair() -> None:
    """One duplicate is no episode, but what follows the gap is acknowledged with it."""
    trace = make_trace([40, 41, 42, 82, 83], una=[0, 2, 4, 4, 8], nxt=[6, 8, 10, 12, 14])
    assert episodes(trace) == []
    info = make_info([0, 50, 90], total_retrans_packets=[0, 1, 1])
    assert sent_once(trace, info)[[0, 1, 3]].tolist() == [True, True, False]


def test_the_longest_round_trip_before_a_loss_is_certain_though_readings_are_far_apart() -> None:
    """Between the readings something was sent again, but no ACK told of a gap while the bytes were out."""
    trace = make_trace([40, 41, 90, 91, 92, 93], una=[0, 2, 4, 6, 8, 8], nxt=[6, 8, 10, 12, 14, 14])
    assert sent_once(trace, make_info([0, 200], total_retrans_packets=[0, 9]))[:3].all()


def test_two_duplicates_are_no_episode() -> None:
    trace = make_trace([40, 41, 42, 43, 44], una=[0, 20, 20, 20, 22], nxt=[40, 42, 43, 44, 46])
    assert episodes(trace) == []


def test_an_idle_receiver_sending_window_updates_is_no_episode() -> None:
    trace = make_trace([40, 41, 42, 43, 44, 45], una=[0, 20, 20, 20, 20, 20], nxt=[20, 20, 20, 20, 20, 20])
    assert episodes(trace) == []


def test_an_episode_that_never_ends_lasts_to_the_last_record() -> None:
    trace = make_trace([40, 41, 42, 43, 44], una=[0, 20, 20, 20, 20], nxt=[40, 40, 40, 40, 40])
    assert episodes(trace) == [Episode(3, 5)]


def test_acknowledged_bytes_step_up_when_the_ack_arrives() -> None:
    trace = slow_start()
    times = np.array([39, 40, 80, 81, 500], dtype=np.int64) * MS
    assert (trace.acked_bytes(times) / 1448).tolist() == [0, 2, 6, 8, 12]
    assert trace.packets_out.tolist() == [4, 6, 8, 10, 12, 14, 16]


# Rounds of one, two and four segments; each ACK releases two. The four arrive within 3 ms, their ACKs come within 4 ms.
ACKED_MS = [40.0, 80.0, 81.0, 120.0, 121.0, 122.5, 124.0, 160.0]
ARRIVED_MS = [20.0, 60.0, 61.0, 100.0, 101.0, 102.0, 103.0]


def doubling() -> FlowTrace:
    una = list(range(8))
    return make_trace(ACKED_MS, una, [1 + 2 * acked for acked in una])


def captured(arrived_ms: list[float], numbers: list[int] | None = None) -> Conversation:
    count = len(arrived_ms)
    begin = np.array(range(count) if numbers is None else numbers, dtype=np.int64) * MSS
    order, ones = np.arange(count, dtype=np.int64), np.ones(count, dtype=np.int64)
    times = np.array([time * MS for time in arrived_ms], dtype=np.int64)
    nothing = np.zeros(0, dtype=np.int64)
    return Conversation(DataSegments(order, times, begin, begin + MSS, ones), Acks(*[nothing] * 5))


def test_the_last_round_that_is_over_has_its_two_trains() -> None:
    assert last_train(doubling(), captured(ARRIVED_MS), 160 * MS) == Train(4, 3 * MS, 4 * MS)
    # The exit comes in the middle of the round of four: that of two is the last whole one.
    assert last_train(doubling(), captured(ARRIVED_MS), 122 * MS) == Train(2, 1 * MS, 1 * MS)


def test_no_train_before_a_round_of_two_is_over() -> None:
    assert last_train(doubling(), captured(ARRIVED_MS), 100 * MS) is None
    assert last_train(doubling(), captured(ARRIVED_MS), 10 * MS) is None


def test_no_train_where_a_packet_came_twice() -> None:
    twice = captured([*ARRIVED_MS, 150.0], [0, 1, 2, 3, 4, 5, 6, 4])
    assert last_train(doubling(), twice, 160 * MS) is None


@pytest.mark.parametrize(
    ("times_ms", "until_ms", "expected"),
    [
        ([40.0, 80.0, 81.0, 83.0], 100, (1, 4)),  # exactly 2 ms are not apart
        ([40.0, 80.0, 81.0, 121.0], 100, (1, 3)),  # what comes after the exit does not count
        ([40.0, 80.0, 120.0], 130, (3, 3)),
        ([40.0, 80.0], 10, (0, 0)),
    ],
)
def test_an_ack_is_alone_that_is_apart_from_both_neighbours(
    times_ms: list[float], until_ms: int, expected: tuple[int, int]
) -> None:
    una = list(range(len(times_ms)))
    trace = make_trace(times_ms, una, [each + 9 for each in una])
    assert lone_acks(trace, until_ms * MS) == expected
