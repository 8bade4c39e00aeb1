# SPDX-License-Identifier: Apache-2.0
"""Careful Resume and Rapid Start on the wire.

Each signature is a function that a run of the algorithm passes, and a run of standard slow start on the same path not.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.record import table as store
from tests.guest.first_flight import CAPTURE, GAP_TOLERANCE_NS, RTT_NS, check_spread
from tests.guest.signature import SlowStart, event, read, slow_start

pytestmark = pytest.mark.guest

BDP_PACKETS = 842
HELD_PACKETS = 2 * BDP_PACKETS  # the path and its buffer
# The receiver's window must grow as fast as these senders do; its autotuning only doubles.
LARGE_OFFER = "host.tcp_rmem=4096 33554432 268435456"
# One connection learns the path, the next one to the same host starts from what it learnt.
IN_TURN = "flows=[{sender: s1, receiver: r1, stop: 3 s}, {sender: s1, receiver: r1, start: 4 s}]"
# As the second one jumps, a third is in the last round of its own slow start and fills the queue.
INTO_A_QUEUE = (
    "flows=[{sender: s1, receiver: r1, stop: 2 s}, {sender: s1, receiver: r1, start: 2.55 s}, "
    "{sender: s2, receiver: r2, start: 2 s, algorithm: standard}]"
)


def second(first: SlowStart) -> SlowStart:
    return read(first.directory, first.verdict, flow=2)


def last_window(seen: SlowStart) -> int:
    """cwnd (packets) when everything was acknowledged; tcp_probe does not see a connection that is closing."""
    rows = store.read(seen.directory, "tcp_info").to_pylist()
    return int([row["cwnd_packets"] for row in rows if (row["flow"], row["end"]) == (1, "sender")][-1])


def resumes(first: SlowStart) -> None:
    """An initial window, then half of what the first connection had in an RTT, paced over one; then slow start."""
    seen = second(first)
    jump, jump_end, phase = event(seen, "jump"), event(seen, "jump-end"), event(seen, "phase")
    # In congestion avoidance, with always more to send, a window is acknowledged in an RTT.
    saved = last_window(first)
    assert saved > BDP_PACKETS
    assert 0.97 * saved / 2 <= jump["quantity"] <= saved / 2
    # Reconnaissance is standard slow start: the last ACK of the first ten finds a window of 19.
    assert jump["threshold"] == 19
    assert seen.round_windows()[0] == 10
    assert seen.trace.connected_ns is not None
    assert jump["time_ns"] - seen.trace.connected_ns == pytest.approx(RTT_NS, rel=0.02)
    # Paced: from the 29th packet, the first that reconnaissance would not have sent yet.
    packets = [item for item in seen.sent() if RTT_NS < item.time_ns < 2 * RTT_NS][20:]
    gaps = np.diff([item.time_ns for item in packets])
    np.testing.assert_allclose(gaps, RTT_NS / jump["quantity"], atol=GAP_TOLERANCE_NS)
    assert jump_end["quantity"] == jump["quantity"]
    assert jump_end["time_ns"] - jump["time_ns"] < RTT_NS
    # PipeSize: 18 in flight when the jump began, and every packet of it.
    assert phase["quantity"] == 18 + jump["quantity"]
    assert phase["threshold"] == 2 * jump["quantity"] - 1
    np.testing.assert_allclose(seen.growth()[1:3], 2.0, rtol=0.01)


def retreats(first: SlowStart) -> None:
    """Half of PipeSize at once, and no more than that until recovery ends."""
    seen = second(first)
    retreat = event(seen, "retreat")
    assert retreat["quantity"] == retreat["threshold"] // 2 == retreat["ssthresh_packets"]
    time = seen.trace.time_ns
    during = (time > retreat["time_ns"] + 10_000_000) & (time < retreat["time_ns"] + 1.5 * RTT_NS)
    assert set(seen.trace.cwnd[during]) == {retreat["quantity"]}
    # What arrived since the jump began is PipeSize; half of it is the new threshold, reached by slow start.
    jump = event(seen, "jump")
    (reached,) = [row for row in seen.exits if row["reason"] == "initial-ssthresh"]
    begin, end = seen.trace.acked_bytes(np.array([jump["time_ns"], retreat["time_ns"] + 3 * RTT_NS])) / 1448
    assert retreat["threshold"] / 2 < reached["threshold"] < 18 + end - begin


def triples(seen: SlowStart) -> None:
    """Twice the initial window over one RTT, then three times as much each round."""
    check_spread(seen, 20)
    assert seen.round_windows()[:5].tolist() == [20, 60, 180, 540, 1620]


def ends_with_what_got_through(seen: SlowStart) -> None:
    """beta times what path and buffer hold, at the end of a recovery that began with much more."""
    drained = event(seen, "drain-end")
    beta = 0.5 if seen.trace.flow.kernel_algorithm.endswith("reno") else 717 / 1024
    assert drained["threshold"] > 2 * HELD_PACKETS
    assert drained["quantity"] == pytest.approx(beta * HELD_PACKETS, abs=3)
    # It falls with each ACK from the first one on; a window that only ever falls.
    time, cwnd = seen.trace.time_ns, seen.trace.cwnd
    during = cwnd[(time > seen.exits[0]["time_ns"]) & (time < drained["time_ns"])]
    assert (np.diff(during) <= 0).all()
    assert during[1] < (beta + (1 - beta) * 2 / 3) * drained["threshold"]
    assert seen.cwnd_at(drained["time_ns"]) == pytest.approx(drained["quantity"], abs=1)


# name: (algorithm, module parameters, overrides, signature)
CASES: dict[str, tuple[str, dict[str, str], tuple[str, ...], Callable[[SlowStart], None]]] = {
    "resume": ("careful-resume", {}, (IN_TURN, "duration=7 s"), resumes),
    "resume, cubic": ("careful-resume-cubic", {}, (IN_TURN, "duration=7 s"), resumes),
    "retreat": (
        "careful-resume",
        {},
        (INTO_A_QUEUE, "topology.pairs=2", "path.buffer=0.2 bdp", "duration=7 s"),
        retreats,
    ),
    "triples": ("rapid-start", {}, (), triples),
    "recovers": ("rapid-start", {}, (), ends_with_what_got_through),
    "recovers, revision 1": ("rapid-start", {"revision": "1"}, (), ends_with_what_got_through),
    "recovers, cubic": ("rapid-start-cubic", {}, (), ends_with_what_got_through),
}


@pytest.mark.parametrize("case", CASES)
def test_signature(engine: UmlEngine, tmp_path: Path, case: str) -> None:
    algorithm, parameters, overrides, signature = CASES[case]
    signature(slow_start(engine, tmp_path / "run", algorithm, LARGE_OFFER, *overrides, CAPTURE, parameters=parameters))


@pytest.mark.parametrize("case", ["resume", "retreat", "triples", "recovers"])
def test_standard_slow_start_has_another_one(engine: UmlEngine, tmp_path: Path, case: str) -> None:
    _, _, overrides, signature = CASES[case]
    seen = slow_start(engine, tmp_path / "run", "standard", LARGE_OFFER, *overrides, CAPTURE)
    with pytest.raises((AssertionError, ValueError)):
        signature(seen)


def test_what_was_saved_expires(engine: UmlEngine, tmp_path: Path) -> None:
    first = slow_start(
        engine, tmp_path / "run", "careful-resume", LARGE_OFFER, IN_TURN, "duration=7 s", parameters={"lifetime_s": "0"}
    )
    assert second(first).round_windows()[:5].tolist() == [10, 20, 40, 80, 160]


def test_only_one_connection_jumps_at_a_time(engine: UmlEngine, tmp_path: Path) -> None:
    """Two connections open in the same instant, a second after another has left what it learnt."""
    together = IN_TURN.replace("]", ", {sender: s1, receiver: r1, start: 4 s}]")
    first = slow_start(engine, tmp_path / "run", "careful-resume", LARGE_OFFER, together, "duration=7 s")
    jumps = [
        [row for row in read(first.directory, first.verdict, flow=flow).events if row["event"] == "jump"]
        for flow in (2, 3)
    ]
    assert sorted(len(found) for found in jumps) == [0, 1]
