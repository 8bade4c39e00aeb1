# SPDX-License-Identifier: Apache-2.0
"""The bucket of tokens that explains which packets a policer dropped and which it let pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from howdah.explain.delay import Reals
from howdah.explain.seen import AGAIN, NEW, Flags, Seen
from howdah.ingest.source import Integers
from howdah.number import rate, significant, size

_FITS = 0.9  # of the drops, and of the packets that passed
_ROOM = 2  # packets
_LEAST_PACKETS = 6  # less is a queue of few packets
_SLOWER = 0.8  # than the link behind it: a policer that is not slower never drops
_MOST_PACKETS = 200_000
_FEW_DROPS = 5


class Arrived(Protocol):
    """Packets in the order in which they came to a policer, if there is one."""

    @property
    def near_ns(self) -> Integers: ...

    @property
    def size_bytes(self) -> Integers: ...

    @property
    def lost(self) -> Flags: ...


@dataclass(frozen=True)
class Departures:
    """What a tap saw leave; ``lost`` was sent again later, for a reason."""

    near_ns: Integers
    size_bytes: Integers
    lost: Flags

    @classmethod
    def of(cls, seen: Seen) -> Departures | None:
        """None where the tap is behind losses, or segments were sent again for nothing: which ones does not show."""
        sent = seen.sent
        if seen.spurious or not np.isin(sent.kind, (NEW, AGAIN)).all():
            return None
        again = np.flatnonzero(sent.kind == AGAIN)
        lost = np.zeros(sent.begin.size, bool)
        latest: dict[int, int] = {}
        starts = set(sent.begin[again].tolist())
        for at, begin in enumerate(sent.begin.tolist()):
            if begin in starts:
                if begin in latest:
                    lost[latest[begin]] = True
                latest[begin] = at
        return cls(sent.time_ns, sent.end - sent.begin + sent.extra_bytes, lost)


@dataclass(frozen=True)
class Bucket:
    """``agrees``: the share of the drops that find it empty, or of the packets that find it not empty, the lesser."""

    rate_bits_per_second: float
    burst_bytes: float
    agrees: float


def policer_of(data: Arrived, link_bits_per_second: float | None) -> Bucket | None:
    """The bucket of a policer; None where none fits. Its rate is what passed between drops far apart: at each it was
    empty. Its size is what passed beyond that rate before the first drop.

    A queue that drops at its end lets pass what a bucket does that fills at the rate of the link. Where such a bucket
    fits too, or one of few packets, nothing tells a policer from it.
    """
    packets = _Arrivals.of(data)
    if packets is None:
        return None
    found = [packets.agreement(rate) for rate in packets.rates()]
    best = max((each for each in found if each is not None), key=lambda each: each.agrees, default=None)
    if best is None or best.agrees < _FITS or best.burst_bytes < _LEAST_PACKETS * packets.size.max():
        return None
    if link_bits_per_second is None or best.rate_bits_per_second > _SLOWER * link_bits_per_second:
        return None
    return None if shallow_queue(data, link_bits_per_second) else best


def policer_words(found: Bucket) -> str:
    return (
        f"they were lost where a bucket of {size(found.burst_bytes)} that fills at {rate(found.rate_bits_per_second)} "
        f"is empty, whatever the delay: {significant(100 * found.agrees, 3)} % of them"
    )


def shallow_queue(data: Arrived, link_bits_per_second: float | None) -> bool:
    """Whether a queue of the link that drops at its end would have dropped these packets."""
    packets = _Arrivals.of(data)
    if packets is None or link_bits_per_second is None:
        return False
    link = packets.agreement(link_bits_per_second / 8)
    return link is not None and link.agrees >= _FITS


@dataclass(frozen=True)
class _Arrivals:
    """In the order in which they came; ``passed`` are the bytes that passed, up to and with each."""

    time: Reals
    size: Reals
    lost: Flags
    passed: Reals

    @classmethod
    def of(cls, data: Arrived) -> _Arrivals | None:
        time = (data.near_ns[:_MOST_PACKETS] - data.near_ns[0]) / 1e9
        lost, size = data.lost[:_MOST_PACKETS], data.size_bytes[:_MOST_PACKETS].astype(np.float64)
        if lost.sum() < _FEW_DROPS:
            return None
        return cls(time, size, lost, np.cumsum(np.where(lost, 0.0, size)))

    def rates(self) -> list[float]:
        """Candidates in bytes a second: what passed between drops, some apart."""
        drops = np.flatnonzero(self.lost)
        found = []
        for step in {max(drops.size // 8, 1), max(drops.size // 3, 1), drops.size - 1}:
            took = self.time[drops[step:]] - self.time[drops[:-step]]
            got = self.passed[drops[step:]] - self.passed[drops[:-step]]
            good = took > 0
            if good.any():
                found += [float(each) for each in np.percentile(got[good] / took[good], [50, 75, 95, 100])]
        return [each for each in found if each > 0]

    def agreement(self, rate: float) -> Bucket | None:
        """Run a bucket over the packets, full at first. None where it would hold no packet."""
        first = int(np.argmax(self.lost))
        excess = self.passed[: first + 1] - rate * self.time[: first + 1]
        burst = float(excess[-1] - min(float(excess.min()), 0.0))
        if burst < self.size.max():
            return None
        tokens, last = burst, 0.0
        room = _ROOM * float(self.size.max())
        rightly, wrongly = 0, 0
        for when, needs, gone in zip(self.time.tolist(), self.size.tolist(), self.lost.tolist(), strict=True):
            tokens, last = min(burst, tokens + rate * (when - last)), when
            if gone:
                rightly += tokens < needs + room
            else:
                wrongly += tokens < needs - room
                tokens = max(tokens - needs, -room)
        drops = int(self.lost.sum())
        return Bucket(rate * 8, burst, min(rightly / drops, 1 - wrongly / max(self.lost.size - drops, 1)))
