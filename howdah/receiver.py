# SPDX-License-Identifier: Apache-2.0
"""Receiver behaviours by their names: how a receiver acknowledges, and what it says of data out of order.

All but ``linux`` are *emulated*: the kernel that runs is Linux, its receiver is changed as the entry says. What the
systems did is as the HyStart paper tells it (Ha and Rhee, sections 2, 3.2, 5.3 and 5.5); docs/receivers.md has sources
of every number, and says what is a choice.

Profiles, plans and the judge all read this table, so it imports none of them.
"""

from __future__ import annotations

from dataclasses import dataclass

LINUX = "linux"
MOST_SACK_BLOCKS = 4  # RFC 2018, section 3: what the option has room for; three beside time stamps


@dataclass(frozen=True)
class AckFilter:
    """What the module howdah_receiver does with the ACKs of a receiver that acknowledges every segment at once.

    The first ``quick_first`` segments in order are acknowledged one by one; of those after them, one ACK for each
    ``acknowledge_every``, or ``delay_us`` after the first that waits for one. ACKs of anything else are not delayed.
    An ACK reports at most ``sack_blocks`` blocks. Once ``backlog_blocks`` blocks of data lie out of order (0: never) no
    ACK reports any, and further data out of order are discarded, until nothing is out of order.
    """

    acknowledge_every: int = 1
    delay_us: int = 0
    quick_first: int = 0
    sack_blocks: int = MOST_SACK_BLOCKS
    backlog_blocks: int = 0


@dataclass(frozen=True)
class Receiver:
    """``quick_ack``: every segment is acknowledged at once; ``sack``: whether selective ACKs are negotiated."""

    name: str
    summary: str
    quick_ack: bool = False
    sack: bool = True
    ack_filter: AckFilter | None = None

    @property
    def emulated(self) -> bool:
        """Whether anything is done to Linux' own receiver."""
        return self.quick_ack or not self.sack

    @property
    def most_segments_an_ack(self) -> int:
        """Segments in order that wait for one ACK; that of Linux acknowledges two."""
        return max(self.ack_filter.acknowledge_every, 2) if self.ack_filter else 2

    @property
    def stretched_us(self) -> int:
        """How long an ACK may wait for segments of which a small window has too few, whenever it comes."""
        chosen = self.ack_filter
        return chosen.delay_us if chosen and chosen.acknowledge_every > 2 else 0


_KNOWN = [
    Receiver(LINUX, "the kernel's own receiver, nothing is changed"),
    Receiver("quick-ack", "an ACK for every segment, at once (Fig. 10 a: Linux 2.4)", quick_ack=True),
    Receiver(
        "quick-then-delayed",
        "the first 16 segments at once, then one ACK for two, or after 40 ms (Fig. 10 b: Linux 2.6)",
        quick_ack=True,
        ack_filter=AckFilter(acknowledge_every=2, delay_us=40_000, quick_first=16),
    ),
    Receiver(
        "delayed-ack",
        "from the start one ACK for two segments, or after 200 ms (Fig. 10 c)",
        quick_ack=True,
        ack_filter=AckFilter(acknowledge_every=2, delay_us=200_000),
    ),
    Receiver(
        "stretch-ack",
        "one ACK for 8 segments, or after 40 ms: ACKs thinned, not the kernel's GRO",
        quick_ack=True,
        ack_filter=AckFilter(acknowledge_every=8, delay_us=40_000),
    ),
    Receiver("no-sack", "Linux' ACKs without selective ones: the sender is a NewReno", sack=False),
    Receiver(
        "windows-xp",
        "delayed ACKs; beyond 100 blocks out of order no SACK and no further data out of order (section 3.2)",
        quick_ack=True,
        ack_filter=AckFilter(acknowledge_every=2, delay_us=200_000, sack_blocks=3, backlog_blocks=100),
    ),
    Receiver(
        "freebsd-7",
        "delayed ACKs (100 ms); SACK is negotiated and no block is ever reported (footnote on Fig. 5)",
        quick_ack=True,
        ack_filter=AckFilter(acknowledge_every=2, delay_us=100_000, sack_blocks=0),
    ),
    Receiver(
        "freebsd-7-no-sack",
        "the same, and SACK is not negotiated: the sender is a NewReno, as section 5.5 says it behaves",
        quick_ack=True,
        sack=False,
        ack_filter=AckFilter(acknowledge_every=2, delay_us=100_000),
    ),
]

RECEIVERS: dict[str, Receiver] = {receiver.name: receiver for receiver in _KNOWN}
