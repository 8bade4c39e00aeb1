# SPDX-License-Identifier: Apache-2.0
"""Receiver behaviours by name: how a receiver acknowledges, and what it reports of out-of-order data.

All but ``linux`` are *emulated*: the kernel is Linux, with its receiver changed as the entry says. Behaviour of older
systems follows the HyStart paper (Ha and Rhee, sections 2, 3.2, 5.3 and 5.5), that of today's follows the ``sources``
of the entry. docs/receivers.md gives the source of every number, and says which are choices.

Profiles, plans and the judge all read this table, so it imports none of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

LINUX = "linux"
MOST_BACKLOG_BLOCKS = 65535  # modules/receiver/receiver.h
MOST_SACK_BLOCKS = 4  # RFC 2018, section 3: the option's capacity; three with time stamps


@dataclass(frozen=True)
class AckFilter:
    """What the module howdah_receiver does to the ACKs of a receiver that acknowledges every segment at once.

    The first ``quick_first`` segments in order are acknowledged one by one. After them, one ACK is sent for every
    ``acknowledge_every`` segments, or ``delay_us`` after the first unacknowledged one. ACKs of anything else are not
    delayed. An ACK reports at most ``sack_blocks`` blocks. Once ``backlog_blocks`` blocks are out of order (0: never),
    ACKs report none, and further out-of-order data are discarded, until nothing is out of order.
    """

    acknowledge_every: int = 1
    delay_us: int = 0
    quick_first: int = 0
    sack_blocks: int = MOST_SACK_BLOCKS
    backlog_blocks: int = 0


class BehaviourSource(NamedTuple):
    """A reference for a system's behaviour; ``address`` if it is on the web."""

    title: str
    address: str | None = None


@dataclass(frozen=True)
class Tuning:
    """The bounds of receive-window tuning; the growth between them is Linux' own.

    ``initial_bytes`` and ``largest_bytes`` are window sizes. With ``of_buffer``, for a system that is Linux itself,
    they are buffer sizes as in tcp_rmem, from which the kernel derives the windows.
    """

    initial_bytes: int
    largest_bytes: int
    of_buffer: bool = False


@dataclass(frozen=True)
class Receiver:
    """A receiver behaviour. ``quick_ack``: every segment is acknowledged at once. ``sack``, ``time_stamps``: whether
    they are negotiated. ``tuning``: the bounds of the receive window, None if it should never limit a flow."""

    name: str
    summary: str
    quick_ack: bool = False
    sack: bool = True
    ack_filter: AckFilter | None = None
    time_stamps: bool = True
    tuning: Tuning | None = None
    sources: tuple[BehaviourSource, ...] = ()

    @property
    def emulated(self) -> bool:
        """Whether Linux' own receiver is changed in any way."""
        return self.quick_ack or not self.sack or self.tuning is not None

    @property
    def stops_reporting(self) -> bool:
        """Whether it stops reporting SACK blocks at some backlog of out-of-order data."""
        return self.ack_filter is not None and self.ack_filter.backlog_blocks > 0

    @property
    def segments_per_ack(self) -> int:
        """The most segments in order that one ACK acknowledges; two for Linux' own receiver."""
        return max(self.ack_filter.acknowledge_every, 2) if self.ack_filter else 2

    @property
    def stretch_delay_us(self) -> int:
        """How long a stretch ACK may wait for segments that a small window does not supply; 0 without stretch ACKs."""
        chosen = self.ack_filter
        return chosen.delay_us if chosen and chosen.acknowledge_every > 2 else 0


_HYSTART = (BehaviourSource("Ha and Rhee, Taming the Elephants: New TCP Slow Start"),)
_RFC_9406 = (BehaviourSource("RFC 9406, HyStart++", "https://www.rfc-editor.org/rfc/rfc9406"),)
_WINDOWS = (
    BehaviourSource(
        "Microsoft, Performance tuning of network adapters",
        "https://learn.microsoft.com/en-us/windows-server/networking/technologies/network-subsystem/net-sub-performance-tuning-nics",
    ),
    BehaviourSource(
        "Microsoft, TCP templates for Windows Server 2019",
        "https://blogs.technet.microsoft.com/networking/2018/10/03/tcp-templates-for-windows/",
    ),
)
_XNU = tuple(
    BehaviourSource(
        f"xnu, bsd/netinet/{file}",
        f"https://github.com/apple-oss-distributions/xnu/blob/1031c584a5e37aff177559b9f69dbd3c8c3fd30a/bsd/netinet/{file}",
    )
    for file in ("tcp_input.c", "tcp_output.c", "tcp_cc.c", "tcp_timer.c", "tcp_subr.c")
)
_ANDROID = (
    BehaviourSource(
        "Android 10, DataConnection.java",
        "https://github.com/LineageOS/android_frameworks_opt_telephony/blob/0060160e5deedca2d2021301d50eac9d73f0c44f/src/java/com/android/internal/telephony/dataconnection/DataConnection.java",
    ),
)
_GRO = AckFilter(acknowledge_every=44, delay_us=1_000)  # 64 KiB of full segments; the delay is a choice

_KNOWN = [
    Receiver(LINUX, "the kernel's own receiver, nothing is changed"),
    Receiver("quick-ack", "an ACK for every segment, at once (Fig. 10 a: Linux 2.4)", quick_ack=True, sources=_HYSTART),
    Receiver(
        "quick-then-delayed",
        "the first 16 segments at once, then one ACK for two, or after 40 ms (Fig. 10 b: Linux 2.6)",
        quick_ack=True,
        ack_filter=AckFilter(acknowledge_every=2, delay_us=40_000, quick_first=16),
        sources=_HYSTART,
    ),
    Receiver(
        "delayed-ack",
        "from the start one ACK for two segments, or after 200 ms (Fig. 10 c)",
        quick_ack=True,
        ack_filter=AckFilter(acknowledge_every=2, delay_us=200_000),
        sources=_HYSTART,
    ),
    Receiver(
        "stretch-ack",
        "one ACK for 8 segments, or after 40 ms: ACKs thinned, not the kernel's GRO",
        quick_ack=True,
        ack_filter=AckFilter(acknowledge_every=8, delay_us=40_000),
        sources=_RFC_9406,
    ),
    Receiver("no-sack", "Linux' ACKs without selective ones: the sender is a NewReno", sack=False),
    Receiver(
        "windows-xp",
        "delayed ACKs; beyond 100 blocks out of order no SACK and no further data out of order (section 3.2)",
        quick_ack=True,
        ack_filter=AckFilter(acknowledge_every=2, delay_us=200_000, sack_blocks=3, backlog_blocks=100),
        sources=_HYSTART,
    ),
    Receiver(
        "windows-xp-no-sack",
        "Windows XP's delayed ACKs (200 ms), and SACK is not negotiated: the third receiver of Fig. 4",
        quick_ack=True,
        sack=False,
        ack_filter=AckFilter(acknowledge_every=2, delay_us=200_000),
        sources=_HYSTART,
    ),
    Receiver(
        "freebsd-7",
        "delayed ACKs (100 ms); SACK is negotiated and no block is ever reported (footnote on Fig. 5)",
        quick_ack=True,
        ack_filter=AckFilter(acknowledge_every=2, delay_us=100_000, sack_blocks=0),
        sources=_HYSTART,
    ),
    Receiver(
        "freebsd-7-no-sack",
        "the same, and SACK is not negotiated: the sender is a NewReno, as section 5.5 says it behaves",
        quick_ack=True,
        sack=False,
        ack_filter=AckFilter(acknowledge_every=2, delay_us=100_000),
        sources=_HYSTART,
    ),
    Receiver(
        "windows-10",
        "Windows 10 and Server 2019: one ACK for two segments, or after 40 ms; no time stamps; window up to 16 MiB",
        quick_ack=True,
        ack_filter=AckFilter(acknowledge_every=2, delay_us=40_000),
        time_stamps=False,
        tuning=Tuning(65_535, 65_535 << 8),
        sources=_WINDOWS,
    ),
    Receiver(
        "macos",
        "macOS and iOS with 4 GB of memory: one ACK for two segments, or after 100 ms; window from 128 KiB to 4 MiB",
        quick_ack=True,
        ack_filter=AckFilter(acknowledge_every=2, delay_us=100_000),
        tuning=Tuning(128 << 10, 4 << 20),
        sources=_XNU,
    ),
    Receiver(
        "macos-stretch",
        "the same with net.inet.tcp.ack_strategy legacy: one ACK for 8 segments once 512 have come",
        quick_ack=True,
        ack_filter=AckFilter(acknowledge_every=8, delay_us=100_000, quick_first=512),
        tuning=Tuning(128 << 10, 4 << 20),
        sources=_XNU,
    ),
    Receiver(
        "android-lte",
        "Android on LTE with GRO: one ACK for what comes within 1 ms, 44 segments at most; receive buffer up to 2 MiB",
        quick_ack=True,
        ack_filter=_GRO,
        tuning=Tuning(1 << 20, 2 << 20, of_buffer=True),
        sources=_ANDROID,
    ),
    Receiver(
        "android-5g",
        "the same on 5G: receive buffer up to 16 MiB",
        quick_ack=True,
        ack_filter=_GRO,
        tuning=Tuning(6 << 20, 16 << 20, of_buffer=True),
        sources=_ANDROID,
    ),
]

RECEIVERS: dict[str, Receiver] = {receiver.name: receiver for receiver in _KNOWN}
