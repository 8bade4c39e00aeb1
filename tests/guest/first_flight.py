# SPDX-License-Identifier: Apache-2.0
"""The first flight of a connection, as a capture at the sender's interface saw it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tests.guest.signature import Sent, SlowStart

CAPTURE = "collect.pcap=[s1:s1-eth0]"
# The receiver connects, and offers 32 MB at once: a SYN-ACK cannot offer more than 64 KiB.
OPENED_BY_THE_RECEIVER = ("flows=[{opener: receiver}]", "host.tcp_rmem=4096 33554432 268435456")
RTT_US = 102_000
RTT_NS = RTT_US * 1000
NEVER_PACED = 10  # tcp_update_skb_after_send()
FRAME_NS = 1514 * 8  # at 1 Gbit/s, the rate of the sender's interface
# A user-mode kernel reads its clock in steps of 256 ns. Sending a packet reads it a few times: when the timer expires,
# for the packet's own time stamp, and in the capture.
GAP_TOLERANCE_NS = 8 * 256


def first_flight(seen: SlowStart) -> list[Sent]:
    """What left before the first ACK can have arrived."""
    return [packet for packet in seen.sent() if packet.time_ns < RTT_NS]


def gaps_ns(flight: list[Sent]) -> npt.NDArray[np.int64]:
    return np.diff([packet.time_ns for packet in flight])


def check_spread(seen: SlowStart, packets: int, pace_packets: int | None = None) -> None:
    """``packets`` in the first RTT; from the tenth on, evenly: ``pace_packets`` (as many) would fill it."""
    flight = first_flight(seen)
    assert len(flight) == packets
    assert [packet.sequence for packet in flight] == list(range(0, packets * 1448, 1448))
    gaps = gaps_ns(flight)
    gap = RTT_NS / (pace_packets or packets)
    np.testing.assert_allclose(gaps[: NEVER_PACED - 1], FRAME_NS, atol=FRAME_NS + GAP_TOLERANCE_NS)
    # The first paced packets queue up behind the unpaced ones, which the interface is still sending.
    paced = gaps[NEVER_PACED + math.ceil(NEVER_PACED * FRAME_NS / gap) :]
    np.testing.assert_allclose(paced, gap, atol=GAP_TOLERANCE_NS)
    # What is late by less than half a gap is made up for: no drift.
    np.testing.assert_allclose(paced.mean(), gap, rtol=2e-3)


def retransmissions(seen: SlowStart, begin_ns: int, end_ns: int) -> int:
    """Segments sent again between two times since the epoch."""
    assert seen.trace.connected_ns is not None
    highest, count = -1, 0
    for packet in seen.sent():
        again = packet.sequence <= highest
        highest = max(highest, packet.sequence)
        # The source writes at once when it is connected.
        if again and begin_ns <= seen.trace.connected_ns + packet.time_ns <= end_ns:
            count += 1
    return count
