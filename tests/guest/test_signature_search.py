# SPDX-License-Identifier: Apache-2.0
"""SEARCH on the wire: its difference recomputed from the per-ACK trace, its exits, and a satellite."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.measure.exit import find_exit
from howdah.measure.rounds import raw_rtt
from tests.guest.guest_run import measures
from tests.guest.signature import Shared, SlowStart

pytestmark = pytest.mark.guest

RTT_NS = 102_000_000
BIN_NS = 0.35 * RTT_NS
WINDOW_NS = 3.5 * RTT_NS
BDP_PACKETS = 842  # frames of 1514 bytes at 100 Mbit/s for 102 ms
DEEP = "path.buffer=8000000 B"  # 6.3 BDP: the whole doubling fits
GEO = ["path.rate=144 Mbit/s", "path.rtt=600 ms", "path.buffer=36 MB", "duration=14 s"]
UNTIL_DECISION = "duration=12 s"  # of a run in which nothing is looked at that comes later
GEO_BITS_PER_SECOND = 144_000_000
NOISE = (
    "path.delay_variation={distribution: uniform, amplitude: 40 ms, correlation_time: 200 ms, interval: 20 ms, "
    "direction: reverse, source: a choice}"
)
FRAME, PAYLOAD = 1514, 1448


@pytest.fixture(scope="module")
def run_of(engine: UmlEngine, tmp_path_factory: pytest.TempPathFactory) -> Shared:
    return Shared(engine, tmp_path_factory)


def decision(run: SlowStart) -> dict[str, Any]:
    """The event in which SEARCH decided: the exit, or the beginning of the drain."""
    found = [row for row in run.events if row["reason"] == "delivery-rate"]
    assert found, f"no decision of SEARCH in {run.events}"
    return found[0]


def sent_bytes(run: SlowStart, time_ns: float) -> int:
    index = int(np.searchsorted(run.trace.time_ns, time_ns, side="right")) - 1
    return int(run.trace.snd_nxt[index]) if index >= 0 else 0


def acked_bytes(run: SlowStart, time_ns: float) -> int:
    return int(run.trace.acked_bytes(int(time_ns)))


def difference(run: SlowStart, time_ns: float, version: int) -> float:
    """The normalised difference without bins, with the RTT of the ACK that arrived last."""
    rtt, trusted = raw_rtt(run.trace)
    index = int(np.searchsorted(run.trace.time_ns, time_ns, side="right")) - 1
    while not trusted[index]:
        index -= 1
    then = time_ns - float(rtt[index])
    if version == 4:
        old = sent_bytes(run, then) - sent_bytes(run, then - WINDOW_NS)
    else:
        old = 2 * (acked_bytes(run, then) - acked_bytes(run, then - WINDOW_NS))
    now = acked_bytes(run, time_ns) - acked_bytes(run, time_ns - WINDOW_NS)
    return 1 - now / old


def check_decision(run: SlowStart, version: int, threshold: float) -> None:
    """The module's number is the trace's, and it decided at the first bin that was past the threshold."""
    event = decision(run)
    time_ns = event["time_ns"]
    assert event["threshold"] == round(threshold * 1000)
    assert event["quantity"] >= event["threshold"]
    # Bins are interpolated: where deliveries bend within one, a few hundredths.
    assert difference(run, time_ns, version) == pytest.approx(event["quantity"] / 1000, abs=0.03)
    assert difference(run, time_ns - BIN_NS, version) < threshold + 0.02


@pytest.mark.parametrize(
    ("algorithm", "version", "threshold"), [("search", 4, 0.26), ("search-2", 2, 0.35), ("search-3", 3, 0.35)]
)
def test_the_decision_is_that_of_the_trace(run_of: Shared, algorithm: str, version: int, threshold: float) -> None:
    run = run_of(algorithm, DEEP)
    check_decision(run, version, threshold)
    assert run.exits[0]["reason"] == "delivery-rate"
    # Until then it is standard slow start.
    assert np.all(np.isclose(run.growth()[:8], 2.0, atol=0.02))


@pytest.mark.parametrize(("version", "threshold"), [(4, 0.26), (2, 0.35)])
def test_standard_slow_start_has_no_such_decision(run_of: Shared, version: int, threshold: float) -> None:
    with pytest.raises(AssertionError, match="no decision of SEARCH"):
        check_decision(run_of("standard", DEEP), version, threshold)


def test_the_drain_ends_at_what_an_rtt_delivers(run_of: Shared) -> None:
    run = run_of("search", DEEP)
    begin, drained, left = run.events
    assert (begin["event"], drained["event"], left["event"]) == ("phase", "drain-end", "exit")
    # Three bins are 1.05 RTTs.
    assert left["ssthresh_packets"] == left["cwnd_packets"] == pytest.approx(1.05 * BDP_PACKETS, abs=3)
    acked = acked_bytes(run, left["time_ns"]) - acked_bytes(run, begin["time_ns"])
    sent = sent_bytes(run, left["time_ns"]) - sent_bytes(run, begin["time_ns"])
    assert sent / acked == pytest.approx(1 / 16, abs=0.002)
    assert run.trace.cwnd.max() == begin["cwnd_packets"]
    assert "loss" not in [row["reason"] for row in run.events]


def test_roll_back_takes_what_five_bins_delivered(run_of: Shared) -> None:
    """Versions 2 and 3 decide at the same ACK and window; only version 2 rolls back, by five bins: 1.75 RTTs."""
    rolled, stayed = run_of("search-2", DEEP), run_of("search-3", DEEP)
    exit_, back = rolled.events
    assert (exit_["event"], back["event"]) == ("exit", "roll-back")
    assert (exit_["time_ns"], exit_["cwnd_packets"]) == tuple(
        stayed.exits[0][name] for name in ("time_ns", "cwnd_packets")
    )
    taken = exit_["cwnd_packets"] - back["cwnd_packets"]
    assert taken == pytest.approx(1.75 * BDP_PACKETS, abs=5)
    assert measured(rolled, "exit_cwnd_packets", "decision_cwnd_packets", "rollback_packets") == [
        exit_["cwnd_packets"],
        exit_["cwnd_packets"],
        taken,
    ]
    assert measured(stayed, "rollback_packets") == [0]


def test_the_decision_of_a_drain_is_a_measure(run_of: Shared) -> None:
    run = run_of("search", DEEP)
    begin, drained, left = run.events
    assert measured(run, "exit_cwnd_packets", "drain_end_cwnd_packets", "rollback_packets") == [
        begin["cwnd_packets"],
        left["cwnd_packets"],
        begin["cwnd_packets"] - drained["cwnd_packets"],
    ]
    assert measured(run, "exit_cause", "drain_end_cause") == ["delivery-rate", "delivery-rate"]
    decided, over = measured(run, "exit_time_s", "drain_end_time_s")
    assert decided == pytest.approx((begin["time_ns"] - run.trace.start_ns) / 1e9)
    assert over - decided == pytest.approx((left["time_ns"] - begin["time_ns"]) / 1e9)


def test_a_loss_in_the_drain_decides_nothing(run_of: Shared) -> None:
    """A buffer of 3.5 BDP overflows in the round before the decision, and the loss is known in the drain. Until then
    the run is that of a buffer which holds all: the decision is the same ACK and window."""
    run, whole = run_of("search", "path.buffer=3.5 bdp"), run_of("search", DEEP)
    begin = whole.events[0]
    assert [row["reason"] for row in run.exits] == ["loss"], "the drain was not ended by a loss: nothing is tested"
    assert measured(run, "exit_time_s") == pytest.approx(measured(whole, "exit_time_s"), abs=1e-6)
    assert measured(run, "exit_cause") == measured(whole, "exit_cause") == ["delivery-rate"]
    assert measured(run, "exit_cwnd_packets", "drain_end_cause") == [begin["cwnd_packets"], "loss"]
    (last,) = measured(run, "drain_end_cwnd_packets")
    assert last == run.exits[0]["cwnd_packets"] < begin["cwnd_packets"]


def test_a_deep_buffer_blinds_it(run_of: Shared) -> None:
    """It decides when the RTT has grown to about 2.7 initial ones; with seven extra bins it sees 2.45."""
    seeing, blind = run_of("search", DEEP), run_of("search", DEEP, extra_bins=7)
    assert decision(seeing)
    assert [row["reason"] for row in blind.exits] == ["loss"]


def rate_before(run: SlowStart, time_ns: int, interval_ns: int) -> float:
    """Frames' bits a second delivered in the interval that ends there."""
    payload = acked_bytes(run, time_ns) - acked_bytes(run, time_ns - interval_ns)
    return payload * 8e9 / interval_ns * FRAME / PAYLOAD


def measured(run: SlowStart, *metrics: str) -> list[Any]:
    rows = measures(run.directory, 1, None)
    return [rows[metric] for metric in metrics]


def retransmitted_packets(run: SlowStart) -> int:
    return int(measured(run, "retransmitted_packets")[0])


@pytest.mark.parametrize("algorithm", ["search", "search-2", "search-3", "search-cubic"])
def test_over_a_satellite_it_stays_until_the_capacity_and_loses_less(run_of: Shared, algorithm: str) -> None:
    """144 Mbit/s, 600 ms and a buffer of 3.3 BDP, the path of the slides."""
    run = run_of(algorithm, *GEO)
    event = decision(run)
    assert rate_before(run, event["time_ns"], 600_000_000) >= 0.9 * GEO_BITS_PER_SECOND
    without = retransmitted_packets(run_of("cubic-no-hystart", *GEO))
    assert 0 < retransmitted_packets(run) < 0.5 * without


def test_standard_slow_start_loses_as_much_as_cubic_without_hystart(run_of: Shared) -> None:
    without = retransmitted_packets(run_of("cubic-no-hystart", *GEO))
    assert retransmitted_packets(run_of("standard", *GEO)) > 0.5 * without


@pytest.mark.parametrize("algorithm", ["search", "search-2", "search-3"])
def test_noise_that_misleads_hystart_does_not_mislead_it(run_of: Shared, algorithm: str) -> None:
    """The RTT varies by 40 ms: +-20 ms around its mean."""
    hystart = find_exit(run_of("cubic", *GEO, NOISE, UNTIL_DECISION).trace)
    bdp_packets = GEO_BITS_PER_SECOND * 0.6 / 8 / FRAME
    assert hystart is not None
    assert hystart.cwnd_packets < 0.5 * bdp_packets
    run = run_of(algorithm, *GEO, NOISE, UNTIL_DECISION)
    event = decision(run)
    assert event["cwnd_packets"] > bdp_packets
    assert rate_before(run, event["time_ns"], 600_000_000) >= 0.9 * GEO_BITS_PER_SECOND
