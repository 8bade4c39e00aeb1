# SPDX-License-Identifier: Apache-2.0
"""FreeBSD's inflight limiting: its average and its limit, exactly."""

from __future__ import annotations

import pytest

from tests.decision.conftest import Lived, Start
from tests.decision.runner import INFINITE, Connection, State

RTT_US = 100_000
MSS = 1000


class Model:
    """The formula in floating point: bytes, seconds."""

    def __init__(self, tick_us: int, stab: int = 20, least_bytes: int = 6144) -> None:
        self.tick_us, self.stab, self.least_bytes = tick_us, stab, least_bytes
        self.rate = 0.0
        self.last: tuple[int, int] | None = None
        self.limit = float("inf")

    def ack(self, now_us: int, una: int, srtt_us: int, least_us: int) -> None:
        tick = now_us // self.tick_us
        if self.last is None:
            self.last = (tick, una)
            return
        if tick == self.last[0]:
            return
        sample = (una - self.last[1]) * MSS * 1e6 / ((tick - self.last[0]) * self.tick_us)
        self.rate += (sample - self.rate) / 16
        self.last = (tick, una)
        whole = [-(-rtt // self.tick_us) * self.tick_us for rtt in (srtt_us, least_us)]
        size = self.rate * sum(whole) / 2e6 + self.stab * MSS / 10
        self.limit = max(size, self.least_bytes, 2 * MSS) / MSS


def run(connection: Connection, model: Model, rounds: int, gap_us: int) -> list[State]:
    states = []
    for _ in range(rounds):
        connection.send()
        connection.runner.wait(RTT_US)
        for index in range(connection.state().packets_out):
            state = connection.ack(1, wait_us=gap_us if index else 0, rtt_us=RTT_US)
            model.ack(state.now_us, state.una, RTT_US, RTT_US)
            assert state.cwnd <= model.limit + 1, state
            states.append(state)
    return states


@pytest.mark.parametrize("tick_us", [1, 1000, 10_000])
@pytest.mark.parametrize("stab", [0, 20, 50])
def test_cwnd_is_at_most_the_limit(start: Start, tick_us: int, stab: int) -> None:
    connection = start("inflight", tick_us=tick_us, stab=stab).open(cwnd=10, mss_bytes=MSS)
    model = Model(tick_us, stab)
    states = run(connection, model, 9, 100)
    # 100 us a packet of 1000 bytes over 100 ms: 1000 packets. The limit is that, or less with a coarse clock.
    limited = [state for state in states if state.events]
    if tick_us == 1:
        assert limited[0].events[0].threshold == pytest.approx(1000, rel=0.02)
        assert states[-1].cwnd == pytest.approx(model.limit, abs=1)
    else:
        assert states[-1].cwnd == int(model.limit)
        assert len(limited) == 1


def test_the_first_limit_is_told_with_its_numbers(start: Start) -> None:
    connection = start("inflight", tick_us=10_000).open(cwnd=10, mss_bytes=MSS)
    [event] = [event for state in run(connection, Model(10_000), 4, 100) for event in state.events]
    assert (event.event, event.reason) == ("phase", "inflight-limit")
    assert (event.quantity, event.threshold) == (6, event.cwnd)
    assert connection.state().ssthresh == INFINITE


@pytest.mark.parametrize(("least_bytes", "cwnd"), [(0, 2), (3000, 3), (6144, 6), (9000, 9)])
def test_the_limit_has_a_floor(start: Start, least_bytes: int, cwnd: int) -> None:
    connection = start("inflight", tick_us=10_000, stab=0, min_bytes=least_bytes).open(cwnd=10, mss_bytes=MSS)
    connection.send()
    connection.ack(1, wait_us=RTT_US, rtt_us=RTT_US)
    # 1000 bytes in 10 ms, a sixteenth of it: less than a packet in an RTT.
    assert connection.ack(1, wait_us=10_000, rtt_us=RTT_US).cwnd == cwnd


def test_a_short_rtt_is_not_limited(start: Start) -> None:
    for threshold_us, cwnd in ((10_000, 12), (1000, 6)):
        runner = start("inflight", tick_us=1000, rtt_threshold_us=threshold_us, stab=0)
        connection = runner.open(cwnd=10, mss_bytes=MSS, handshake_rtt_us=5000)
        connection.send()
        connection.ack(1, wait_us=5000, rtt_us=5000)
        assert connection.ack(1, wait_us=5000, rtt_us=5000).cwnd == cwnd


def test_standard_slow_start_is_not_limited(start: Start) -> None:
    with pytest.raises(AssertionError):
        run(start("standard").open(cwnd=10, mss_bytes=MSS), Model(10_000), 4, 100)


@pytest.mark.parametrize("tick_us", [1, 10_000])
def test_a_fast_long_path(lived: Lived, tick_us: int) -> None:
    """10 Gbit/s and 600 ms, 495 376 packets: no overflow, and never a window of none."""

    def life(start: Start) -> None:
        course = (
            start("inflight", tick_us=tick_us)
            .open(handshake_rtt_us=600_000)
            .path(
                bits_per_second=10_000_000_000,
                interface_bits_per_second=0,
                rtt_us=600_001,  # not a whole number of ticks
                buffer_packets=500_000,
                quick_acks=16,
                duration_us=22_000_000,
            )
        )
        if tick_us == 1:
            assert course.dropped == 0
            # An ACK comes every 2.4 us and counts as 2 or 3: the mean of such rates is some 4 % too high.
            assert 495_376 < course.end.cwnd < 1.08 * 495_376
        else:
            assert course.end.cwnd < 0.05 * 495_376

    lived("inflight", life)


@pytest.mark.parametrize(("name", "value"), [("tick_us", "0"), ("tick_us", "1000001"), ("stab", "10001")])
def test_nonsense_is_refused(start: Start, name: str, value: str) -> None:
    assert start("inflight").try_set(name, value).error < 0
