# SPDX-License-Identifier: Apache-2.0
"""Jump Start and Quick-Start on the wire.

Each signature is a function that a run of the algorithm passes, and a run of standard slow start on the same path not.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from howdah.engine.uml.engine import UmlEngine
from tests.guest.first_flight import (
    CAPTURE,
    FRAME_NS,
    GAP_TOLERANCE_NS,
    NEVER_PACED,
    OPENED_BY_THE_RECEIVER,
    RTT_NS,
    check_spread,
    first_flight,
    gaps_ns,
    retransmissions,
)
from tests.guest.guest_run import plan_of
from tests.guest.shared_run import shared_run
from tests.guest.signature import SIGNATURE, SlowStart, event, slow_start

pytestmark = pytest.mark.guest

HELD_PACKETS = 2 * 842  # the path and its buffer
CAP_PACKETS = 400
LOSSY_JUMP_PACKETS = 1500
# 81.92 Mbit/s, 40 kbit/s * 2^11, for 102 ms in packets of 1500 bytes.
GRANTED_PACKETS = 81_920 * 125 * 102 // 1000 // 1500
LOSSY_GRANT_PACKETS = 327_680 * 125 * 102 // 1000 // 1500


def jumps_to_the_offer_of_a_syn_ack(seen: SlowStart) -> None:
    """D is the 65 535 bytes that an active opener is offered; 45 packets over one RTT."""
    check_spread(seen, 65_535 // 1448)
    assert event(seen, "jump-end")["quantity"] == 45
    np.testing.assert_allclose(seen.round_windows()[:3], [45, 90, 180], rtol=0.2)


def paces_the_first_ten(seen: SlowStart) -> None:
    """pace_first=1: no two packets leave at once, and no gap is cut; sending takes 5 us once."""
    flight = first_flight(seen)
    assert len(flight) == 45
    np.testing.assert_allclose(gaps_ns(flight), RTT_NS / 45, rtol=4e-3)
    assert event(seen, "jump-end")["quantity"] == 45


def marks_the_jump(seen: SlowStart) -> None:
    """mark_dscp=14: the flight of the first RTT carries it, whatever follows does not."""
    check_spread(seen, CAP_PACKETS)
    marks = [packet.dscp for packet in seen.sent()]
    # The source writes by and by: what is queued first is no more than an initial window.
    begins = marks.index(14)
    assert begins <= NEVER_PACED
    assert set(marks[begins:CAP_PACKETS]) == {14}
    assert set(marks[:begins] + marks[CAP_PACKETS:]) == {0}


def jumps_to_the_cap(seen: SlowStart) -> None:
    check_spread(seen, CAP_PACKETS)
    assert seen.round_windows()[0] == CAP_PACKETS


def recovers_to_half_of_what_got_through(seen: SlowStart) -> None:
    """(D - R) / 2, with R counted in the capture; 1 for the rounding, and 1 for the retransmission at the very edge."""
    check_spread(seen, LOSSY_JUMP_PACKETS)
    retreat = event(seen, "retreat")
    again = retransmissions(seen, seen.exits[0]["time_ns"], retreat["time_ns"])
    assert again > 100
    assert retreat["quantity"] == pytest.approx((LOSSY_JUMP_PACKETS - again) / 2, abs=1)
    assert retreat["ssthresh_packets"] == retreat["quantity"]
    assert seen.cwnd_at(retreat["time_ns"]) == pytest.approx(retreat["quantity"], abs=1)


def spreads_the_grant(seen: SlowStart) -> None:
    """Exactly at the granted rate: the packets fill the RTT but for what is less than a packet."""
    check_spread(seen, GRANTED_PACKETS)
    assert seen.round_windows()[:2].tolist() == [GRANTED_PACKETS, 2 * GRANTED_PACKETS]


def bursts_the_grant(seen: SlowStart) -> None:
    """Back to back, at the rate of the interface."""
    flight = first_flight(seen)
    assert len(flight) == GRANTED_PACKETS
    np.testing.assert_allclose(gaps_ns(flight)[2:], FRAME_NS, atol=GAP_TOLERANCE_NS)
    # The application set its window: no slow start follows, and Reno adds a packet a round.
    assert seen.round_windows()[:4] == pytest.approx([GRANTED_PACKETS + number for number in range(4)], abs=1)


def reverts_when_a_packet_is_lost(seen: SlowStart) -> None:
    """The initial window at once; slow start then ends at half of what the path could hold."""
    check_spread(seen, LOSSY_GRANT_PACKETS)
    retreat = event(seen, "retreat")
    assert (retreat["quantity"], retreat["threshold"]) == (10, LOSSY_GRANT_PACKETS)
    # Silence for what was in flight: a whole RTT at the least.
    for after_ms in (10, 50, 100):
        assert seen.cwnd_at(retreat["time_ns"] + after_ms * 1_000_000) == 10
    final = seen.trace.ssthresh[-1]
    assert final == pytest.approx(HELD_PACKETS / 2, abs=3)


# name: (algorithm, module parameters, overrides, signature)
CASES: dict[str, tuple[str, dict[str, str], tuple[str, ...], Callable[[SlowStart], None]]] = {
    "active": ("jump-start", {}, (), jumps_to_the_offer_of_a_syn_ack),
    "capped": ("jump-start", {"cap_packets": f"{CAP_PACKETS}"}, OPENED_BY_THE_RECEIVER, jumps_to_the_cap),
    "marked": (
        "jump-start",
        {"cap_packets": f"{CAP_PACKETS}", "mark_dscp": "14"},
        OPENED_BY_THE_RECEIVER,
        marks_the_jump,
    ),
    "capped rate": (
        "jump-start-cubic",
        {"cap_kbps": f"{CAP_PACKETS * 1448 * 8 // 102 + 1}"},
        OPENED_BY_THE_RECEIVER,
        jumps_to_the_cap,
    ),
    "active, paced from the first": ("jump-start", {"pace_first": "1"}, (), paces_the_first_ten),
    "lossy": (
        "jump-start",
        {"cap_packets": f"{LOSSY_JUMP_PACKETS}"},
        (*OPENED_BY_THE_RECEIVER, "path.buffer=0.5 bdp"),
        recovers_to_half_of_what_got_through,
    ),
    "lossy, cubic": (
        "jump-start-cubic",
        {"cap_packets": f"{LOSSY_JUMP_PACKETS}"},
        (*OPENED_BY_THE_RECEIVER, "path.buffer=0.5 bdp"),
        recovers_to_half_of_what_got_through,
    ),
    "granted": ("quick-start", {}, OPENED_BY_THE_RECEIVER, spreads_the_grant),
    "granted, rounded down": ("quick-start-cubic", {"rate_kbps": "163839"}, OPENED_BY_THE_RECEIVER, spreads_the_grant),
    "application": ("quick-start-app", {}, OPENED_BY_THE_RECEIVER, bursts_the_grant),
    "lossy grant": ("quick-start", {"rate_kbps": "327680"}, OPENED_BY_THE_RECEIVER, reverts_when_a_packet_is_lost),
}


@pytest.mark.parametrize("case", CASES)
def test_signature(engine: UmlEngine, tmp_path: Path, case: str) -> None:
    algorithm, parameters, overrides, signature = CASES[case]
    signature(slow_start(engine, tmp_path / "run", algorithm, *overrides, CAPTURE, parameters=parameters))


@pytest.mark.parametrize("case", ["active", "capped", "lossy", "granted", "application", "lossy grant"])
def test_standard_slow_start_has_another_one(engine: UmlEngine, tmp_path: Path, case: str) -> None:
    _, _, overrides, signature = CASES[case]
    seen = slow_start(engine, tmp_path / "run", "standard", *overrides, CAPTURE)
    with pytest.raises((AssertionError, ValueError)):
        signature(seen)


RTT_OF_FIGURE_1_MS = 64


def duration_ms(engine: UmlEngine, algorithm: str, packets: int) -> float:
    """From the SYN to the last byte, on the path of the paper's Fig. 1.

    A transfer that is written at once and closed is not seen by tcp_probe, which looks at established connections only.
    """
    plan = plan_of(
        f"algorithm={algorithm}",
        "path.rate=5 Mbit/s",
        f"path.rtt={RTT_OF_FIGURE_1_MS} ms",
        "path.buffer=60 packets",
        "collect.tcp_probe=false",
        "duration=2 s",
        f"flows=[{{size: {packets * 1448} B}}]",
        profile=SIGNATURE,
    )
    if algorithm == "standard":
        plan = dataclasses.replace(plan, module_parameters={"ss_standard": {"init_cwnd": "3"}})
    directory, verdict = shared_run(engine, plan)
    assert verdict.verdict == "pass"
    (record,) = json.loads((directory.raw / "agent.json").read_text())["flows"]
    assert record["complete"]
    return float(record["end_ns"] - record["start_ns"]) / 1e6


# The paper's sender has an initial window of 3: rounds of 3, 6, 12 and the rest.
@pytest.mark.parametrize(("packets", "standard_rounds"), [(3, 1), (9, 2), (21, 3), (27, 4)])
def test_small_transfers_take_about_two_rtts(engine: UmlEngine, packets: int, standard_rounds: int) -> None:
    """The handshake, then at most one RTT of packets, then half an RTT: no later than 2.5 RTTs."""
    jump = duration_ms(engine, "jump-start", packets)
    standard = duration_ms(engine, "standard", packets)
    assert 1.5 * RTT_OF_FIGURE_1_MS < jump <= 2.5 * RTT_OF_FIGURE_1_MS
    assert standard > (standard_rounds + 0.5) * RTT_OF_FIGURE_1_MS
    assert jump <= standard
    if packets > 9:
        assert jump < 0.7 * standard  # "10-40+%"
