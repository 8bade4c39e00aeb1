# SPDX-License-Identifier: Apache-2.0
"""Packet pair, Swift-Start, Adaptive Start and inflight limiting on the wire."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.measure.rounds import raw_rtt
from tests.guest.signature import Shared, SlowStart, read

pytestmark = pytest.mark.guest

RTT_NS = 102_000_000
FRAME, PAYLOAD = 1514, 1448
PAYLOAD_KBITS = 100_000 * PAYLOAD / FRAME  # 95 641: what 100 Mbit/s carry
BDP_PACKETS = 842
CAPTURE = "collect.pcap=[s1:s1-eth0]"
# A receiver that takes a whole BDP at once.
WIDE = ["flows=[{initial_receive_window: 2000}]", "host.tcp_rmem=4096 67108864 268435456"]
# The path of the paper on Adaptive Start: packets of 1000 bytes, 40 Mbit/s, 100 ms; 469 frames of 1066 bytes.
ASTART = ["path.rate=40 Mbit/s", "path.rtt=100 ms", "path.mtu=1052", "duration=20 s"]
ASTART_BDP = 469
BUFFERS = {500: "path.buffer=533000 B", 125: "path.buffer=133000 B"}  # packets


@pytest.fixture(scope="module")
def run_of(engine: UmlEngine, tmp_path_factory: pytest.TempPathFactory) -> Shared:
    return Shared(engine, tmp_path_factory)


def estimates(run: SlowStart) -> list[dict[str, Any]]:
    return [row for row in run.events if row["event"] == "estimate"]


# --- packet pair -----------------------------------------------------------------------------------------------------


def slopes(run: SlowStart) -> list[tuple[float, float]]:
    """Span (us) and least-squares slope (kbit/s) of every three ACKs in a row of the first window."""
    trace = run.trace
    count = int(np.searchsorted(trace.una_after, trace.snd_nxt[0], side="right"))
    times, acked = trace.time_ns[:count] // 1000, trace.una_after[:count]
    return [
        (float(times[i + 2] - times[i]), float(np.polyfit(times[i : i + 3], acked[i : i + 3], 1)[0]) * 8000)
        for i in range(count - 2)
    ]


def check_pair(run: SlowStart) -> dict[str, Any]:
    """ssthresh is set once, within two RTTs, and slow start doubles until there."""
    [event] = estimates(run)
    assert event["reason"] == "packet-pair"
    assert event["time_ns"] - run.trace.start_ns < 2.02 * RTT_NS
    # The estimate is the rate of the kbit/s that it tells, times the RTT of the first segment.
    bdp = event["quantity"] * 1000 / 8 * 0.102 / run.trace.mss_bytes
    assert event["ssthresh_packets"] == pytest.approx(bdp, rel=0.002)
    assert run.exits[0]["cwnd_packets"] == event["ssthresh_packets"]
    until = int(np.flatnonzero(run.round_windows() >= event["ssthresh_packets"])[0])
    assert np.all(np.isclose(run.growth()[: until - 1], 2.0, atol=0.02))
    return event


def test_the_closest_three_acks_decide(run_of: Shared) -> None:
    run = run_of("packet-pair")
    event = check_pair(run)
    assert event["threshold"] == len(slopes(run))
    assert event["quantity"] == pytest.approx(min(slopes(run))[1], rel=0.01)
    # The idle bottleneck lets the second packet pass at once: half as much again as the path has.
    assert 1.3 < event["quantity"] / PAYLOAD_KBITS < 1.6


def test_without_the_compressed_pair_the_estimate_is_the_capacity(run_of: Shared) -> None:
    """Three packets of 100 Mbit/s take 242 us."""
    event = check_pair(run_of("packet-pair", min_span_us=200))
    assert event["quantity"] == pytest.approx(PAYLOAD_KBITS, rel=0.02)
    assert event["ssthresh_packets"] == pytest.approx(BDP_PACKETS, rel=0.02)


def test_on_a_link_that_spaces_every_frame_no_pair_is_compressed(run_of: Shared) -> None:
    event = check_pair(run_of("packet-pair", "path.burst=none"))
    assert event["quantity"] == pytest.approx(PAYLOAD_KBITS, rel=0.02)
    assert event["ssthresh_packets"] == pytest.approx(BDP_PACKETS, rel=0.02)
    times = run_of("packet-pair", "path.burst=none").trace.time_ns
    # The first window's ACKs, from the first to the last: a frame of 100 Mbit/s takes 121 us.
    assert np.diff(times[:8]) == pytest.approx(FRAME * 8 * 10, abs=1500)


def test_the_mean_of_all_sets_errs_less(run_of: Shared) -> None:
    event = check_pair(run_of("packet-pair", average=1))
    assert event["quantity"] == pytest.approx(np.mean([slope for _, slope in slopes(run_of("packet-pair"))]), rel=0.01)
    assert 1.0 < event["quantity"] / PAYLOAD_KBITS < 1.15


def test_standard_slow_start_estimates_nothing(run_of: Shared) -> None:
    with pytest.raises(ValueError, match="not enough values"):
        check_pair(run_of("standard"))


# --- Swift-Start -----------------------------------------------------------------------------------------------------


def check_swift(run: SlowStart, paced: bool) -> None:
    """Four segments, then the estimated window, within an RTT at the estimated rate or at once."""
    estimate, jump, left = run.events[:3]
    assert (estimate["event"], jump["event"], left["event"]) == ("estimate", "jump", "exit")
    sent = run.sent()
    first = [segment for segment in sent if segment.time_ns < RTT_NS * 0.9]
    assert len(first) == 4
    assert jump["cwnd_packets"] == estimate["ssthresh_packets"] == left["ssthresh_packets"]
    assert jump["time_ns"] - run.trace.start_ns < 2.02 * RTT_NS
    flight = sent[4 : 4 + 1000]
    # After the first ten segments of a connection, which the kernel never paces.
    took_ns = flight[-1].time_ns - flight[10].time_ns
    at_rate_ns = (len(flight) - 11) * PAYLOAD * 8e6 / jump["quantity"]
    at_once_ns = (len(flight) - 11) * FRAME * 8  # 1 Gbit/s
    assert took_ns == pytest.approx(at_rate_ns if paced else at_once_ns, rel=0.05)


@pytest.mark.parametrize("paced", [1, 0])
def test_four_segments_decide_the_window(run_of: Shared, paced: int) -> None:
    check_swift(run_of("swift-start", *WIDE, CAPTURE, paced=paced), bool(paced))


def test_standard_slow_start_does_not_jump(run_of: Shared) -> None:
    with pytest.raises(ValueError, match="not enough values"):
        check_swift(run_of("standard", *WIDE, CAPTURE), True)


# --- Adaptive Start --------------------------------------------------------------------------------------------------


def lost_before(run: SlowStart, cwnd: int) -> bool:
    """Was there a cut of the window before it reached so many packets?"""
    windows = run.trace.cwnd
    reached = np.flatnonzero(windows >= cwnd)
    return not reached.size or bool(np.any(np.diff(windows[: reached[0] + 1]) < 0))


def check_astart(run: SlowStart) -> None:
    """It reaches the BDP without loss, slower and slower, by many steps of ssthresh."""
    assert not lost_before(run, ASTART_BDP)
    windows = run.round_windows()
    growth = run.growth()
    near = (windows[:-1] > ASTART_BDP / 2) & (windows[:-1] < ASTART_BDP)
    assert near.sum() >= 5
    assert growth[near].max() < 1.3
    assert growth[:3] == pytest.approx([2, 2, 2])
    steps = [row["ssthresh_packets"] for row in estimates(run)]
    assert len(steps) >= 5
    assert all(row["reason"] == "rate-estimate" for row in estimates(run))
    until_loss = [row for row in run.exits if row["reason"] == "loss"]
    end_ns = until_loss[0]["time_ns"] if until_loss else run.trace.stop_ns
    rising = [row["ssthresh_packets"] for row in estimates(run) if row["time_ns"] < end_ns]
    assert rising == sorted(set(rising))
    # ERE is no more than what the path delivers.
    assert max(rising) <= ASTART_BDP * 1.02


@pytest.mark.parametrize("buffer", [500, 125])
def test_it_reaches_the_bdp_without_loss(run_of: Shared, buffer: int) -> None:
    check_astart(run_of("adaptive-start", *ASTART, BUFFERS[buffer]))


@pytest.mark.parametrize(("algorithm", "parameters"), [("standard", {}), ("adaptive-start", {"init_ssthresh": 0})])
def test_with_an_infinite_threshold_it_is_standard_slow_start(
    run_of: Shared, algorithm: str, parameters: dict[str, int]
) -> None:
    """The HyStart paper's figure 9d: the same overshoot."""
    run = run_of(algorithm, *ASTART, BUFFERS[500], **parameters)
    assert np.array_equal(run.round_windows()[:8], [10, 20, 40, 80, 160, 320, 640, 1280])
    assert run.exits[0]["reason"] == "loss"
    with pytest.raises(AssertionError):
        check_astart(run)


def test_after_a_loss_the_window_is_that_of_the_rate(run_of: Shared) -> None:
    """Reno would halve 1939 packets; the estimate says what the path holds."""
    run = run_of("adaptive-start", *ASTART, BUFFERS[500], init_ssthresh=0)
    assert 0.7 * ASTART_BDP < run.exits[0]["ssthresh_packets"] <= ASTART_BDP * 1.02
    standard = run_of("standard", *ASTART, BUFFERS[500])
    assert standard.exits[0]["ssthresh_packets"] > 1.5 * ASTART_BDP


def test_five_flows_at_once_share(run_of: Shared) -> None:
    five = ["flows=[{}, {}, {}, {}, {}]"]
    run = run_of("adaptive-start", *ASTART, BUFFERS[500], *five)
    flows = [read(run.directory, run.verdict, flow) for flow in range(1, 6)]
    for flow in flows:
        early = flow.trace.cwnd[flow.trace.time_ns < 10_000_000_000]
        assert np.all(np.diff(early) >= 0), "a loss"
    shares = np.array([flow.trace.snd_una[-1] for flow in flows], dtype=float)
    shares /= shares.sum()
    assert np.all((shares > 0.1) & (shares < 0.3))
    standard = run_of("standard", *ASTART, BUFFERS[500], *five)
    assert np.any(np.diff(standard.trace.cwnd) < 0)


# --- inflight limiting -----------------------------------------------------------------------------------------------


def limits(run: SlowStart, stab: int = 20) -> Any:
    """The limit in packets after every ACK, from the trace alone: FreeBSD's formula with a clock of 1 us."""
    trace = run.trace
    time_us, acked, mss = trace.time_ns // 1000, trace.una_after, trace.mss_bytes
    rtt, trusted = raw_rtt(trace)
    least_us = np.minimum.accumulate(np.where(trusted, rtt, np.iinfo(np.int64).max)) // 1000
    rate, last = 0.0, 0
    found = np.full(len(trace), np.inf)
    for i in range(1, len(trace)):
        if time_us[i] > time_us[last]:
            rate += ((acked[i] - acked[last]) * 1e6 / (time_us[i] - time_us[last]) - rate) / 16
            last = i
            srtt_us = trace.srtt_ns[min(i + 1, len(trace) - 1)] // 1000
            # The first ACKs of a window have no RTT of their own in the trace.
            least = min(least_us[i], 102_000)
            found[i] = max(rate * (srtt_us + least) / 2e6 + stab * mss / 10, 6144, 2 * mss) / mss
        else:
            found[i] = found[i - 1]
    return found


def check_inflight(run: SlowStart) -> None:
    """cwnd (after each ACK) is never above the limit, and comes close to it."""
    cwnd, limit = run.trace.cwnd[1:], limits(run)[:-1]
    assert np.all(cwnd <= limit * 1.02 + 1)
    full = run.trace.time_ns[1:] > 3_000_000_000
    assert np.median(cwnd[full] / limit[full]) > 0.95


def test_cwnd_is_never_above_the_limit(run_of: Shared) -> None:
    run = run_of("inflight-limit", tick_us=1)
    check_inflight(run)
    [event] = run.events
    assert (event["event"], event["reason"]) == ("phase", "inflight-limit")
    assert event["quantity"] < event["threshold"]
    # The queue counts half in the smoothed RTT: two segments are added, four are queued, and none is lost.
    assert run.trace.cwnd[-1] == pytest.approx(BDP_PACKETS + 4, abs=2)


def test_standard_slow_start_is_not_limited(run_of: Shared) -> None:
    with pytest.raises(AssertionError):
        check_inflight(run_of("standard"))


def test_stab_is_the_queue(run_of: Shared) -> None:
    """Twice what it adds: see above."""
    few, many = (run_of("inflight-limit", tick_us=1, stab=stab).trace.cwnd[-1] for stab in (20, 520))
    assert many - few == pytest.approx(100, abs=3)


def test_a_coarse_clock_ends_slow_start_early(run_of: Shared) -> None:
    """With ticks of 10 ms a burst of ACKs is one sample, and sixteen make an average: after 5 s next to nothing."""
    windows = {tick: run_of("inflight-limit", tick_us=tick).trace.cwnd for tick in (1, 1000, 10_000)}
    assert windows[10_000].max() < 0.1 * BDP_PACKETS < windows[1000].max()
    assert run_of("standard").trace.cwnd.max() > BDP_PACKETS


def test_the_limit_is_told_once(run_of: Shared) -> None:
    run = run_of("inflight-limit", tick_us=10_000)
    assert [row["event"] for row in run.events] == ["phase"]
