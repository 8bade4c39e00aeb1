# SPDX-License-Identifier: Apache-2.0
"""Starting from what other connections have learnt: fast start, a remembered ssthresh, and shares of running ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.record import table as store
from tests.guest.guest_run import plan_of
from tests.guest.shared_run import counting_run
from tests.guest.signature import SIGNATURE, SlowStart, read, with_parameters

pytestmark = pytest.mark.guest

# The sender accepts, so that the receiver can offer more than 64 KB at once.
FLOW = "opener: receiver, initial_receive_window: 2000, sender: s1, receiver: r1"
OTHER = "opener: receiver, initial_receive_window: 2000, sender: s2, receiver: r2"
OFFER = "host.tcp_rmem=4096 8388608 67108864"
CONSECUTIVE = f"flows=[{{{FLOW}, stop: 5 s}}, {{{FLOW}, start: 7 s}}]"
TOGETHER = f"flows=[{{{FLOW}}}, {{{FLOW}, start: 5 s}}]"
# What the first connection learnt no longer holds: another sender has filled the buffer since.
OCCUPIED = f"flows=[{{{FLOW}, stop: 5 s}}, {{{FLOW}, start: 9 s}}, {{{OTHER}, start: 6 s}}]"
RTT_NS = 102_000_000


def flows(
    engine: UmlEngine, algorithm: str, *overrides: str, parameters: dict[str, str] | None = None
) -> list[SlowStart]:
    """Every flow of a run of 12 s with an algorithm for all of them."""
    pairs = 2 if OCCUPIED in overrides else 1
    plan = plan_of(
        f"algorithm={algorithm}", f"topology.pairs={pairs}", "duration=12 s", OFFER, *overrides, profile=SIGNATURE
    )
    plan = with_parameters(plan, parameters)
    directory, verdict = counting_run(engine, plan)
    return [read(directory, verdict, number) for number in range(1, len(plan.flows) + 1)]


def told(seen: SlowStart, event: str) -> list[dict[str, Any]]:
    return [row for row in seen.events if row["event"] == event]


def learnt(seen: SlowStart) -> dict[str, Any]:
    """The sender's tcp_info when all was acknowledged: after the FIN, of which tcp_probe sees nothing."""
    rows: list[dict[str, Any]] = store.read(seen.directory, "tcp_info").to_pylist()
    return [row for row in rows if row["flow"] == seen.trace.flow.id and row["end"] == "sender"][-1]


def starts_fast(first: SlowStart, second: SlowStart) -> None:
    """The second connection starts with the window and ssthresh of the first, spread over a round trip."""
    (jump,) = told(second, "jump")
    assert jump["quantity"] == learnt(first)["cwnd_packets"]
    assert int(second.trace.cwnd[0]) == jump["quantity"]
    assert second.trace.ssthresh[0] == first.trace.ssthresh[-1]
    assert second.exits[0]["reason"] == "initial-ssthresh"
    # In congestion avoidance from the beginning, and nothing of it is lost.
    assert np.all(np.diff(second.round_windows()) <= 1)
    assert np.all(np.diff(second.round_windows()) >= 0)


def test_fast_start(engine: UmlEngine) -> None:
    first, second = flows(engine, "cached", CONSECUTIVE, "collect.pcap=[s1:s1-eth0]")
    starts_fast(first, second)
    # The kernel does not pace a connection's first ten segments.
    times = np.array([each.time_ns for each in second.sent()])
    flight = times[10 : int(second.trace.cwnd[0])]
    # At the rate of the first connection: its window over its smoothed round-trip time, which held a queue.
    gap_ns = learnt(first)["rtt_us"] * 1000 / int(second.trace.cwnd[0])
    assert np.mean(np.diff(flight)) == pytest.approx(gap_ns, rel=0.05)


def test_fast_start_over_cubic(engine: UmlEngine) -> None:
    first, second = flows(engine, "cached-cubic", CONSECUTIVE)
    (jump,) = told(second, "jump")
    assert jump["quantity"] == learnt(first)["cwnd_packets"]


@pytest.mark.parametrize(
    ("algorithm", "parameters"),
    [("standard", {}), ("cached", {"window": "0"}), ("cached", {"lifetime_s": "1"})],
    ids=["standard", "only-ssthresh", "expired"],
)
def test_no_fast_start_without_a_memory(engine: UmlEngine, algorithm: str, parameters: dict[str, str]) -> None:
    """Of standard slow start, of the variant that takes ssthresh alone, and after the lifetime."""
    first, second = flows(engine, algorithm, CONSECUTIVE, parameters=parameters)
    with pytest.raises((AssertionError, ValueError)):
        starts_fast(first, second)
    assert second.round_windows()[:4].tolist() == [10, 20, 40, 80]


def leaves_at_the_remembered_threshold(first: SlowStart, second: SlowStart) -> None:
    threshold = first.trace.ssthresh[-1]
    (left,) = second.exits
    assert (left["reason"], left["cwnd_packets"], left["threshold"]) == ("initial-ssthresh", threshold, threshold)
    assert second.trace.cwnd.max() < first.trace.cwnd.max() / 2  # the first one overshot, the second did not


def test_a_remembered_threshold(engine: UmlEngine) -> None:
    first, second = flows(engine, "cached", CONSECUTIVE, parameters={"window": "0"})
    leaves_at_the_remembered_threshold(first, second)


def test_standard_slow_start_remembers_no_threshold(engine: UmlEngine) -> None:
    first, second = flows(engine, "standard", CONSECUTIVE)
    with pytest.raises(AssertionError):
        leaves_at_the_remembered_threshold(first, second)


def test_a_loss_in_the_first_flight_begins_slow_start_anew(engine: UmlEngine) -> None:
    _, second, _ = flows(engine, "cached", OCCUPIED)
    (jump,), (retreat,) = told(second, "jump"), told(second, "retreat")
    half = jump["quantity"] // 2
    assert retreat["threshold"] == 10
    after = second.trace.time_ns > retreat["time_ns"]
    windows = second.trace.cwnd[after]
    lowest = int(np.argmin(windows))
    assert windows[lowest] == 10
    assert second.trace.ssthresh[after][lowest + 1 :].max() == half
    # Slow start: it doubles from there, and is not in congestion avoidance, which would take 430 rounds.
    assert windows[lowest:].max() > 40


def shares(first: SlowStart, second: SlowStart) -> None:
    """The newer connection takes half of the window of the older, which gives it up at its next ACK: the sum stays."""
    (jump,), (share,) = told(second, "jump"), told(first, "share")
    before = share["threshold"]
    taken = share["quantity"]
    assert taken == jump["quantity"] == before // 2
    assert share["cwnd_packets"] == before - taken
    assert 0 <= share["time_ns"] - jump["time_ns"] < RTT_NS
    assert int(second.trace.cwnd[0]) == taken


def test_a_share_of_a_running_connection(engine: UmlEngine) -> None:
    first, second = flows(engine, "cached", TOGETHER, parameters={"share": "1"})
    shares(first, second)


@pytest.mark.parametrize(("algorithm", "parameters"), [("standard", {}), ("cached", {"share": "0"})])
def test_nothing_is_shared_otherwise(engine: UmlEngine, algorithm: str, parameters: dict[str, str]) -> None:
    first, second = flows(engine, algorithm, TOGETHER, parameters=parameters)
    with pytest.raises((AssertionError, ValueError)):
        shares(first, second)
    assert int(second.trace.cwnd[0]) == 10
