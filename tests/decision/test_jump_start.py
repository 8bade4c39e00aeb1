# SPDX-License-Identifier: Apache-2.0
"""Jump Start: exact cases of section II of the paper, and of the caps of section IV.D."""

from __future__ import annotations

import pytest

from tests.decision.conftest import Start
from tests.decision.runner import INFINITE, LOSS, OPEN, RECOVERY, Connection, State

RTT_US = 100_000
MSS_BYTES = 1448


def rate(packets: int, rtt_us: int = RTT_US) -> int:
    """Payload bytes a second of packets spread over an RTT."""
    return packets * MSS_BYTES * 1_000_000 // rtt_us


def told(state: State, event: str) -> list[tuple[str, int, int]]:
    return [(item.reason, item.quantity, item.threshold) for item in state.events if item.event == event]


def jumped(start: Start, packets: int, **options: int) -> Connection:
    """A connection whose whole transfer has been sent, and nothing acknowledged."""
    connection = start("jump").open(None, unsent_packets=packets, **options)
    assert connection.send()["sent"] == packets
    return connection


@pytest.mark.parametrize(
    ("parameters", "opening", "packets"),
    [
        ({}, {"window_bytes": 65_535}, 45),  # what a SYN-ACK can offer
        ({}, {"window_bytes": 400 * MSS_BYTES}, 400),
        ({}, {"window_bytes": 400 * MSS_BYTES, "unsent_packets": 27}, 27),
        ({"cap_packets": 30}, {"window_bytes": 65_535}, 30),
        ({"cap_packets": 5}, {"window_bytes": 65_535}, 5),
        # 0.5 % of 100 Mbit/s over 0.1 s are 6250 bytes, four packets.
        ({"cap_kbps": 500}, {"window_bytes": 65_535}, 4),
        ({"cap_kbps": 1}, {"window_bytes": 65_535}, 1),
        ({"cap_kbps": 100_000, "cap_packets": 2000}, {}, 863),
        # A long fat path, 10 Gbit/s over 600 ms.
        (
            {"cap_kbps": 4_000_000_000},
            {"handshake_rtt_us": 600_000, "window_bytes": 868_800_000, "unsent_packets": 600_000},
            600_000,
        ),
    ],
)
def test_the_jump_is_the_least_of_window_data_and_caps(
    start: Start, parameters: dict[str, int], opening: dict[str, int], packets: int
) -> None:
    connection = start("jump", **parameters).open(None, **opening)
    state = connection.send(1)
    assert state["max_pacing_rate"] == rate(packets, opening.get("handshake_rtt_us", RTT_US))
    if packets < 1000:
        assert 1 + connection.send()["sent"] == packets


def test_the_pace_follows_the_data_that_come_by_and_by(start: Start) -> None:
    connection = start("jump").open(unsent_packets=1)
    assert connection.send()["max_pacing_rate"] == rate(1)
    for more, all_of_them in ((9, 10), (190, 200)):
        connection.set("unsent_packets", more)
        connection.send(1)
        assert connection.send()["max_pacing_rate"] == rate(all_of_them)


def test_the_jump_ends_with_the_first_ack(start: Start) -> None:
    connection = jumped(start, 100)
    state = connection.ack(1, wait_us=RTT_US)
    assert told(state, "jump-end") == [("jump-size", 100, (1 << 30) // MSS_BYTES)]
    # D, and one packet of slow start.
    assert (state.cwnd, state.ssthresh) == (101, INFINITE)
    assert state["pacing"] == 0


def test_a_small_transfer_keeps_the_initial_window(start: Start) -> None:
    connection = jumped(start, 3)
    assert connection.ack(1, wait_us=RTT_US).cwnd == 10


@pytest.mark.parametrize("lost", [1, 30, 99])
def test_recovery_ends_at_half_of_what_got_through(start: Start, lost: int) -> None:
    connection = jumped(start, 100)
    connection.ack(1, wait_us=RTT_US)
    assert connection.lose(lost).state == RECOVERY
    while connection.state()["total_retrans"] < lost:
        connection.send()
        connection.ack(1, wait_us=1000)
    connection.runner.wait(RTT_US)
    state = connection.ack(99)
    assert state.state == OPEN
    window = max((100 - lost) // 2, 2)
    assert told(state, "retreat") == [("jump-size", window, 100)]
    assert state.ssthresh == window


def test_more_retransmissions_than_packets_leave_two(start: Start) -> None:
    connection = jumped(start, 20)
    connection.ack(1, wait_us=RTT_US)
    connection.set("unsent_packets", 1000)
    connection.send()
    flight = connection.state().packets_out
    connection.lose(flight)
    while connection.state()["total_retrans"] <= 20:
        connection.send()
        connection.ack(1, wait_us=1000)
    state = connection.ack(flight, wait_us=RTT_US)
    assert told(state, "retreat") == [("jump-size", 2, 20)]


def test_a_second_recovery_is_the_bases(start: Start) -> None:
    connection = jumped(start, 100)
    connection.set("unsent_packets", 10_000)
    connection.ack(1, wait_us=RTT_US)
    connection.lose(10)
    connection.send()
    connection.ack(100, wait_us=RTT_US)
    connection.round(rtt_us=RTT_US)
    connection.send()
    before = connection.state().cwnd
    connection.lose(1)
    connection.send()
    state = connection.ack(before, wait_us=RTT_US)
    assert told(state, "retreat") == []
    assert state.ssthresh == before // 2


def test_an_undo_cancels_it(start: Start) -> None:
    connection = jumped(start, 100)
    connection.ack(1, wait_us=RTT_US)
    connection.lose(30)
    state = connection.undo()
    assert (state.cwnd, state.ssthresh) == (101, INFINITE)
    assert told(connection.ack(99), "retreat") == []


def test_a_timeout_cancels_it(start: Start) -> None:
    connection = jumped(start, 100)
    state = connection.timeout()
    assert (state.state, state.cwnd) == (LOSS, 1)
    assert state["pacing"] == 0
    connection.send()
    assert told(connection.ack(100, wait_us=RTT_US), "retreat") == []


def test_a_drop_in_the_senders_own_queue_ends_the_jump(start: Start) -> None:
    connection = jumped(start, 100)
    state = connection.local_congestion()
    assert state["pacing"] == 0
    connection.set("unsent_packets", 10)
    connection.ack(100, wait_us=RTT_US)
    connection.send()
    state = connection.ack(1)
    assert told(state, "retreat") == [("jump-size", 50, 100)]


@pytest.mark.parametrize("opening", [{"handshake_rtt_us": 0}, {"ssthresh": 100}])
def test_without_a_reason_to_jump_it_is_standard(start: Start, opening: dict[str, int]) -> None:
    connection = start("jump").open(None, **opening)
    state = connection.state()
    assert (state.cwnd, state["pacing"], state.events) == (10, 0, [])


def test_a_running_connection_does_not_jump(start: Start) -> None:
    connection = start("jump").open(algorithm="standard_reno")
    connection.round(rtt_us=RTT_US)
    state = connection.switch("jump_reno")
    assert (state.cwnd, state["pacing"]) == (20, 0)


@pytest.mark.parametrize(("pace_first", "spread_us"), [(0, 1_100), (1, 90_000)])
def test_the_first_ten_are_paced_if_asked(start: Start, pace_first: int, spread_us: int) -> None:
    """Ten packets over an RTT are nine gaps of a tenth of it; without pacing, ten packets at the link's rate."""
    connection = start("jump", pace_first=pace_first).open(None, unsent_packets=10, handshake_rtt_us=RTT_US)
    course = connection.path(trace=1, rtt_us=RTT_US, duration_us=1_000_000)
    times = [row.time_us for row in course.rows if row.time_us < 2 * RTT_US]
    assert len(times) == 10
    assert times[-1] - times[0] == pytest.approx(spread_us, rel=0.02)


def test_pacing_the_first_ten_leaves_the_count_of_segments_right(start: Start) -> None:
    """The kernel's own count is used to switch their pacing on: the size of the jump must not show it."""
    connection = start("jump", pace_first=1).open(None, unsent_packets=20)
    connection.send()
    state = connection.ack(1, wait_us=RTT_US)
    assert told(state, "jump-end") == [("jump-size", 20, (1 << 30) // MSS_BYTES)]
    assert state["data_segs_out"] == 20


DSCP = 14  # AF13, of the high drop precedence of its class (RFC 2597)


def test_a_jump_is_marked_until_it_ends_and_the_rest_is_not(start: Start) -> None:
    connection = start("jump", mark_dscp=DSCP).open(None, unsent_packets=100)
    connection.set("tos", 0b1010_0010)  # CS5, and ECT(0)
    assert connection.send()["tos"] == DSCP << 2 | 0b10
    connection.set("tos", DSCP << 2)  # TCP sends what must not carry ECT
    assert connection.ack(1, wait_us=RTT_US)["tos"] == 0b1010_0000
    assert connection.send()["tos"] == 0b1010_0000


@pytest.mark.parametrize("end", ["timeout", "local_congestion", "switch"])
def test_however_a_jump_ends_its_mark_does(start: Start, end: str) -> None:
    connection = start("jump", mark_dscp=DSCP).open(None, unsent_packets=100)
    assert connection.send()["tos"] == DSCP << 2
    arguments = ["standard_reno"] if end == "switch" else []
    assert getattr(connection, end)(*arguments)["tos"] == 0


def test_what_any_connection_may_send_is_not_marked(start: Start) -> None:
    connection = start("jump", mark_dscp=DSCP).open(None, unsent_packets=10)
    assert connection.send()["tos"] == 0
    connection.set("unsent_packets", 2)
    assert connection.send(1)["tos"] == 0, "what follows it is not queued yet"
    assert connection.send()["tos"] == DSCP << 2


def test_without_mark_dscp_the_byte_stays(start: Start) -> None:
    connection = jumped(start, 100)
    assert connection.state()["tos"] == 0
    assert connection.ack(1, wait_us=RTT_US)["tos"] == 0
