# SPDX-License-Identifier: Apache-2.0
"""The baselines on the wire: standard, large initial window, limited, smooth and gradual slow start.

Each signature is a function that a run of the algorithm passes, and a run of standard slow start on the same path not.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.measure.rounds import rounds
from tests.guest.signature import SlowStart, slow_start

pytestmark = pytest.mark.guest

BDP_PACKETS = 842  # full frames of 100 Mbit/s and 102 ms
CAPTURE = "collect.pcap=[s1:s1-eth0]"
# What the receiver offers at once, and its buffer: enough for any first flight.
LARGE_OFFER = ("flows.1.initial_receive_window=45", "host.tcp_rmem=4096 4194304 67108864")
# A receiver acknowledges every segment as long as its window grows (tcp_grow_window() asks for quick ACKs), which in a
# buffer without bounds is all of a slow start. In one of 1 MB the window stops growing after some 60 segments, and ACKs
# are delayed from then on. This path loses before that window is full.
DELAYED_ACKS = ("path.rate=40 Mbit/s", "path.buffer=0.25 bdp", "host.tcp_rmem=4096 1048576 1048576")
DELAYED_FROM_PACKETS = 70
LONG = ("path.rate=400 Mbit/s", "path.rtt=200 ms", "flows.1.initial_window=1", "duration=23 s")


def before_exit(seen: SlowStart) -> npt.NDArray[np.int64]:
    """cwnd (packets) at the beginning of each round that ended within the first slow start."""
    begins = seen.trace.time_ns[rounds(seen.trace)]
    within = int(np.searchsorted(begins, seen.exits[0]["time_ns"] if seen.exits else np.iinfo(np.int64).max))
    return seen.round_windows()[:within]


def doubles(seen: SlowStart) -> None:
    """RFC 5681 with an unlimited count of packets for an ACK: a factor of 2.00 each round, until the buffer is full."""
    windows = before_exit(seen)
    assert len(windows) == 9
    np.testing.assert_allclose(windows[1:] / windows[:-1], 2.0, rtol=0.05)
    assert seen.exits[0]["reason"] == "loss"
    assert seen.exits[0]["cwnd_packets"] > 2 * BDP_PACKETS


def grows_by_half(seen: SlowStart) -> None:
    """One packet an ACK, one ACK for two segments."""
    windows = before_exit(seen)
    late = windows[windows >= DELAYED_FROM_PACKETS]
    assert len(late) >= 4
    np.testing.assert_allclose(late[1:] / late[:-1], 1.5, atol=0.05)


def adds_fifty(seen: SlowStart) -> None:
    """RFC 3742 with max_ssthresh 100: between 45 and 51 packets each round that begins above it."""
    windows = before_exit(seen)
    above = windows[windows > 100]
    assert len(above) > 20
    steps = np.diff(above)
    assert steps.min() >= 0.9 * 50
    assert steps.max() <= 51
    assert windows[:8].tolist() == [10, 20, 40, 80, 130, 180, 230, 280]
    crossed = next(row for row in seen.events if row["event"] == "phase")
    assert (crossed["quantity"], crossed["threshold"]) == (101, 100)


def takes_105_rounds(seen: SlowStart) -> None:
    """The HyStart paper: 105 rounds, 21 s, from one packet to 5000 at 200 ms."""
    windows = seen.round_windows()
    reached = int(np.argmax(windows >= 5000))
    assert reached == 105
    begins = seen.trace.time_ns[rounds(seen.trace)]
    assert (begins[reached] - begins[0]) / 1e9 == pytest.approx(21.0, rel=0.01)


def first_flight(segments: int, payload_bytes: int) -> Callable[[SlowStart], None]:
    def check(seen: SlowStart) -> None:
        flight = [each for each in seen.sent() if each.time_ns < 50_000_000]  # no ACK before 102 ms
        assert [each.payload_bytes for each in flight] == [payload_bytes] * segments
        assert seen.round_windows()[0] == segments

    return check


def flight_of_45_that_doubles(seen: SlowStart) -> None:
    first_flight(45, 1448)(seen)
    windows = before_exit(seen)
    np.testing.assert_allclose(windows[1:] / windows[:-1], 2.0, rtol=0.05)


def flight_of_45_then_one_a_round(seen: SlowStart) -> None:
    """The Adaptive Start paper's version: ssthresh is the initial window."""
    first_flight(45, 1448)(seen)
    windows = seen.round_windows()
    assert len(windows) > 40
    assert windows.tolist() == list(range(45, 45 + len(windows)))
    first = seen.exits[0]
    assert (first["reason"], first["quantity"], first["threshold"]) == ("initial-ssthresh", 45, 45)
    assert first["round"] == 0


def smooth_windows(cwnd: int, ssthresh: int, depth: int) -> list[int]:
    """The rule, packet by packet: 2^-k for each acknowledged, while cwnd is at least ssthresh * (1 - 2^-k)."""
    windows = [cwnd]
    window = Fraction(cwnd)
    while window < ssthresh:
        for _ in range(int(window)):
            whole = int(window)
            step = max(k for k in range(depth + 1) if whole >= ssthresh * (1 - Fraction(1, 2**k)))
            window = min(window + Fraction(1, 2**step), Fraction(ssthresh))
        windows.append(int(window))
    return windows


def slows_towards_ssthresh(seen: SlowStart) -> None:
    windows = before_exit(seen)
    expected = smooth_windows(10, 800, 3)
    assert windows.tolist() == expected[:-1]
    growth = windows[1:] / windows[:-1]
    assert np.all(np.diff(growth[growth < 1.99]) < 0)
    assert growth[-1] < 1.15
    first = seen.exits[0]
    assert (first["reason"], first["cwnd_packets"], first["threshold"]) == ("initial-ssthresh", 800, 800)


def slows_as_the_queue_grows(seen: SlowStart) -> None:
    windows = before_exit(seen)
    growth = windows[1:] / windows[:-1]
    assert growth[0] == 2.0
    assert np.all(np.diff(growth) <= 0.01)
    assert growth[-1] < 1.35
    phases = [row for row in seen.events if row["event"] == "phase"]
    assert phases
    assert all(row["quantity"] > row["threshold"] for row in phases)
    first = seen.exits[0]
    assert first["reason"] == "delay"
    assert first["quantity"] > first["threshold"]
    assert BDP_PACKETS < first["cwnd_packets"] < 2 * BDP_PACKETS
    assert len(seen.exits) == 1  # before anything was lost


# algorithm, overrides of the profile, parameters of the module, the signature
SIGNATURES: dict[str, tuple[str, tuple[str, ...], dict[str, str], Callable[[SlowStart], None]]] = {
    "abc-limit-1": ("standard", DELAYED_ACKS, {"abc_limit": "1"}, grows_by_half),
    "limited": ("limited", (), {}, adds_fifty),
    "limited-cubic": ("limited-cubic", (), {}, adds_fifty),
    "limited-long": ("limited", LONG, {}, takes_105_rounds),
    "liw": ("large-initial-window", (CAPTURE, *LARGE_OFFER), {}, flight_of_45_that_doubles),
    "liw-ca": ("large-initial-window-ca", (CAPTURE, *LARGE_OFFER), {}, flight_of_45_then_one_a_round),
    "liw-no-timestamps": (
        "large-initial-window",
        (CAPTURE, *LARGE_OFFER, "host.sysctls={net.ipv4.tcp_timestamps: 0}", "duration=2 s"),
        {},
        first_flight(44, 1460),
    ),
    "smooth": ("smooth", (), {"init_ssthresh": "800"}, slows_towards_ssthresh),
    "gradual": ("gradual", (), {}, slows_as_the_queue_grows),
    "gradual-cubic": ("gradual-cubic", (), {}, slows_as_the_queue_grows),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_signature(engine: UmlEngine, tmp_path: Path, name: str) -> None:
    algorithm, overrides, parameters, check = SIGNATURES[name]
    check(slow_start(engine, tmp_path / "run", algorithm, *overrides, parameters=parameters))


@pytest.mark.parametrize("name", SIGNATURES)
def test_standard_slow_start_does_not_have_it(engine: UmlEngine, tmp_path: Path, name: str) -> None:
    algorithm, overrides, _, check = SIGNATURES[name]
    standard = "standard-cubic" if algorithm.endswith("-cubic") else "standard"
    seen = slow_start(engine, tmp_path / "run", standard, *overrides)
    with pytest.raises(AssertionError):
        check(seen)


@pytest.mark.parametrize("algorithm", ["standard", "standard-cubic"])
def test_standard_slow_start_doubles(engine: UmlEngine, tmp_path: Path, algorithm: str) -> None:
    doubles(slow_start(engine, tmp_path / "run", algorithm))


def test_nothing_else_doubles(engine: UmlEngine, tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        doubles(slow_start(engine, tmp_path / "run", "limited"))


def test_standard_doubles_with_delayed_acks(engine: UmlEngine, tmp_path: Path) -> None:
    """Linux counts packets, not ACKs: the path on which a limit of one gives 1.5 gives 2.0 without it and with two."""
    for number, limit in enumerate(["0", "2"]):
        seen = slow_start(engine, tmp_path / f"{number}", "standard", *DELAYED_ACKS, parameters={"abc_limit": limit})
        windows = before_exit(seen)
        np.testing.assert_allclose(windows[1:] / windows[:-1], 2.0, rtol=0.05)


def test_initial_window_and_threshold_of_standard_slow_start(engine: UmlEngine, tmp_path: Path) -> None:
    """The Adaptive Start paper's Reno: one packet, ssthresh 32."""
    parameters = {"init_cwnd": "1", "init_ssthresh": "32"}
    seen = slow_start(engine, tmp_path / "run", "standard", parameters=parameters)
    windows = seen.round_windows()
    assert windows[:9].tolist() == [1, 2, 4, 8, 16, 32, 33, 34, 35]
    first = seen.exits[0]
    assert (first["reason"], first["cwnd_packets"], first["ssthresh_packets"]) == ("initial-ssthresh", 32, 32)
