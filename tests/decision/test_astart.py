# SPDX-License-Identifier: Apache-2.0
"""Adaptive Start: the eligible rate estimate against a model in floating point, and what follows from it."""

from __future__ import annotations

import pytest

from tests.decision.conftest import Lived, Start
from tests.decision.runner import INFINITE, RECOVERY, Connection, Course

RTT_US = 100_000
MSS = 1000
# The paper's path: 40 Mbit/s, 100 ms, packets of 1000 bytes; 469 frames of 1066 bytes fit.
PAPER = {"bits_per_second": 40_000_000, "interface_bits_per_second": 0, "rtt_us": RTT_US, "duration_us": 20_000_000}
BDP_PACKETS = 469


class Model:
    """Sections II.B and IV of the paper, in seconds and packets. History is whole, not a ring of moments."""

    def __init__(self, tau: float) -> None:
        self.tau = tau
        self.acks: list[tuple[float, int]] = []
        self.estimate = self.sample = self.achieved = self.achieved_sample = 0.0

    def within(self, interval: float) -> float:
        """Packets a second in the last interval; what was delivered between two ACKs came evenly between them."""
        now, delivered = self.acks[-1]
        begin = now - interval
        if begin <= self.acks[0][0]:
            return (delivered - self.acks[0][1]) / (now - self.acks[0][0])
        at = next(index for index in range(len(self.acks) - 1, -1, -1) if self.acks[index][0] <= begin + 1e-9)
        (found, had), (later, has) = self.acks[at], self.acks[at + 1]
        return (delivered - had - (has - had) * (begin - found) / (later - found)) / interval

    def filtered(self, value: float, sample: float, before: float, gap: float) -> float:
        gap = min(gap, 2 * self.tau)
        a = (2 * self.tau - gap) / (2 * self.tau + gap)
        return a * value + (1 - a) * (sample + before) / 2

    def ack(self, now: float, delivered: int, cwnd: int, srtt: float, least: float) -> None:
        self.acks.append((now, delivered))
        if len(self.acks) == 1:
            return
        gap = now - self.acks[-2][0]
        sample = self.within(max(srtt, gap))
        self.achieved = self.filtered(self.achieved, sample, self.achieved_sample, gap)
        self.achieved_sample = sample
        expected = cwnd / least
        interval = srtt * max(0.0, expected - self.achieved) / expected
        sample = self.within(max(interval, gap))
        if self.sample:
            sample = min(sample, 2 * self.sample)
        self.estimate = self.filtered(self.estimate, sample, self.sample, gap)
        self.sample = sample


def evenly(connection: Connection, model: Model, acks: int, gap_us: int) -> int:
    """An ACK every ``gap_us``: returns ssthresh. The window the ACK meets is the one before it."""
    connection.send()
    state = connection.state()
    for _ in range(acks):
        cwnd = state.cwnd
        state = connection.ack(1, wait_us=gap_us, rtt_us=RTT_US)
        model.ack(state.now_us / 1e6, state["delivered"], cwnd, RTT_US / 1e6, RTT_US / 1e6)
        connection.send()
    return state.ssthresh


@pytest.mark.parametrize("tau_us", [50_000, 100_000, 500_000])
@pytest.mark.parametrize("gap_us", [1000, 5000])
def test_the_estimate_is_that_of_the_paper(start: Start, tau_us: int, gap_us: int) -> None:
    """Even ACKs at the rate of a window: ssthresh is ERE * RTTmin, where it has risen."""
    connection = start("astart", tau_us=tau_us, init_ssthresh=2).open(cwnd=RTT_US // gap_us, mss_bytes=MSS)
    model = Model(tau_us / 1e6)
    ssthresh = evenly(connection, model, 3 * RTT_US // gap_us, gap_us)
    # Moments of the history are an RTT / 24 apart.
    assert ssthresh == pytest.approx(model.estimate * RTT_US / 1e6, rel=0.06, abs=1)
    assert ssthresh > 2


def test_the_filter_follows_a_step_with_its_time_constant(start: Start) -> None:
    """From nothing to a rate of 1000 packets a second: 1 - exp(-t / tau) of it, of 100 packets an RTT."""
    connection = start("astart", tau_us=200_000, init_ssthresh=2).open(cwnd=100, mss_bytes=MSS)
    shares = [evenly(connection, Model(0.2), 100, 1000) / 100 for _ in range(4)]
    assert shares == pytest.approx([0.39, 0.63, 0.78, 0.86], abs=0.04)


@pytest.mark.parametrize("tau_us", [0, 2_000_000])
def test_acks_in_clusters_are_worth_their_share_of_the_time(lived: Lived, tau_us: int) -> None:
    """A full queue that two flows share, each a cluster of its own: at the rate of the path, and then silence.

    70 ms and a queue of as much; 360 packets come 160 us apart. Half of them fit the empty path.
    """

    def life(start: Start) -> None:
        packets, gap_us, least_us = 360, 160, 70_000
        connection = start("astart", tau_us=tau_us, init_ssthresh=2).open(cwnd=packets, mss_bytes=MSS)
        model = Model(tau_us / 1e6 or 2 * least_us / 1e6)
        connection.send()
        state = connection.state()
        for cluster in range(40):
            for number in range(packets):
                wait_us = gap_us if number else 2 * least_us - (packets - 1) * gap_us
                cwnd, srtt_us = state.cwnd, 2 * least_us if cluster else least_us
                state = connection.ack(1, wait_us=wait_us, rtt_us=srtt_us)
                model.ack(state.now_us / 1e6, state["delivered"], cwnd, srtt_us / 1e6, least_us / 1e6)
                connection.send()
                connection.set("cwnd", packets)
        share = packets / 2
        assert model.estimate * least_us / 1e6 == pytest.approx(share, rel=0.2)
        ssthresh = connection.lose().ssthresh
        assert ssthresh == pytest.approx(model.estimate * least_us / 1e6, rel=0.06)
        assert ssthresh == pytest.approx(share, rel=0.2)

    lived("astart", life)


def test_the_threshold_begins_low_and_only_rises(start: Start) -> None:
    connection = start("astart").open(cwnd=10, mss_bytes=MSS)
    assert connection.state().ssthresh == 32
    before = 32
    for _ in range(200):
        now = evenly(connection, Model(0.1), 5, 1000)
        assert now >= before
        before = now
    assert before > 32


@pytest.mark.parametrize(("threshold", "first"), [(32, 32), (1, 2), (100, 100), (0, INFINITE)])
def test_the_first_threshold_is_a_parameter(start: Start, threshold: int, first: int) -> None:
    assert start("astart", init_ssthresh=threshold).open().state().ssthresh == first


def test_a_threshold_that_is_known_stands(start: Start) -> None:
    assert start("astart").open(ssthresh=300).state().ssthresh == 300


def test_a_loss_takes_the_estimate_and_ends_it(start: Start) -> None:
    connection = start("astart", tau_us=50_000).open(cwnd=100, mss_bytes=MSS)
    model = Model(0.05)
    evenly(connection, model, 300, 1000)
    cwnd = connection.state().cwnd
    state = connection.lose()
    assert state.state == RECOVERY
    assert state.ssthresh == pytest.approx(min(model.estimate / 10, cwnd), rel=0.06)
    assert state.ssthresh <= cwnd
    kept = state.ssthresh
    # The episode ends, and ssthresh does not follow any more.
    for _ in range(300):
        connection.send()
        if not connection.state().packets_out:
            break
        state = connection.ack(1, wait_us=500, rtt_us=RTT_US)
    assert state.ssthresh == kept


def test_after_a_timeout_it_adapts_anew(start: Start) -> None:
    connection = start("astart", tau_us=50_000).open(cwnd=100, mss_bytes=MSS)
    model = Model(0.05)
    evenly(connection, model, 300, 1000)
    connection.send()
    state = connection.timeout()
    assert state.cwnd == 1
    assert state.ssthresh == pytest.approx(model.estimate / 10, rel=0.06)
    low = connection.set("ssthresh", 4).ssthresh
    assert evenly(connection, Model(0.05), 60, 1000) > low


def run_paper(start: Start, buffer: int, algorithm: str = "astart", **parameters: int) -> Course:
    connection = start(algorithm, **parameters).open(mss_bytes=MSS, handshake_rtt_us=RTT_US)
    return connection.path(buffer_packets=buffer, **PAPER)


@pytest.mark.parametrize("buffer", [500, 125])
def test_on_the_papers_path_it_reaches_the_bdp_slower_and_slower(start: Start, buffer: int) -> None:
    course = run_paper(start, buffer)
    windows = [row.cwnd for row in course.rounds]
    reached = next(index for index, cwnd in enumerate(windows) if cwnd >= BDP_PACKETS)
    assert windows[: reached + 1] == sorted(windows[: reached + 1])
    near = [growth for cwnd, growth in zip(windows[:reached], course.growth, strict=False) if cwnd > BDP_PACKETS / 2]
    assert len(near) >= 5
    assert max(near) < 1.3
    steps = [event.ssthresh for event in course.events if event.event == "estimate"]
    assert len(steps) >= 5
    assert [event.reason for event in course.exits][:1] == ["rate-estimate"]


def test_standard_slow_start_overshoots_there(start: Start) -> None:
    for course in (run_paper(start, 500, "standard"), run_paper(start, 500, init_ssthresh=0)):
        assert [event.reason for event in course.exits][:1] == ["loss"]
        assert course.dropped > 100


def test_a_fast_long_path(lived: Lived) -> None:
    """10 Gbit/s and 600 ms: nothing overflows."""

    def life(start: Start) -> None:
        course = (
            start("astart")
            .open(handshake_rtt_us=600_000)
            .path(
                bits_per_second=10_000_000_000,
                interface_bits_per_second=0,
                rtt_us=600_000,
                buffer_packets=500_000,
                duration_us=20_000_000,
            )
        )
        assert course.dropped == 0
        assert 0.3 * 495_376 < course.end.cwnd < 1.1 * 495_376

    lived("astart", life)


@pytest.mark.parametrize(("name", "value"), [("tau_us", "10000001"), ("init_cwnd", "-1")])
def test_nonsense_is_refused(start: Start, name: str, value: str) -> None:
    assert start("astart").try_set(name, value).error < 0


def test_the_rule_of_the_hystart_paper_lowers_an_infinite_threshold(start: Start) -> None:
    """rule=2: ssthresh = ERE * RTTmin whenever that is above cwnd, up or down. rule=1 never acts here."""
    thresholds = {}
    for rule in (1, 2):
        connection = start("astart", rule=rule, init_ssthresh=0, tau_us=50_000).open(cwnd=20, mss_bytes=MSS)
        connection.set("cwnd", 20)
        for _ in range(100):
            connection.send()
            thresholds[rule] = connection.ack(1, wait_us=1000, rtt_us=RTT_US).ssthresh
            connection.set("cwnd", 20)
    assert thresholds[1] == INFINITE
    # A packet a millisecond is a hundred an RTT, and the filter is nearly there after two time constants.
    assert 60 < thresholds[2] <= 100


def test_the_rule_of_the_hystart_paper_leaves_a_window_above_the_estimate_alone(start: Start) -> None:
    connection = start("astart", rule=2, init_ssthresh=0, tau_us=50_000).open(cwnd=200, mss_bytes=MSS)
    connection.send()
    for _ in range(100):
        assert connection.ack(1, wait_us=1000, rtt_us=RTT_US).ssthresh == INFINITE
        connection.send()
