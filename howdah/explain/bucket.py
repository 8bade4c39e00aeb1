# SPDX-License-Identifier: Apache-2.0
"""A policer's token bucket that explains which packets were dropped and which passed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from howdah.explain.delay import Reals
from howdah.explain.seen import AGAIN, FILLS, LATE, Flags, Seen
from howdah.ingest.source import Integers
from howdah.number import rate, roundest, significant, size

_FITS = 0.9  # share of the drops, and of the packets that passed, that a bucket must explain
_ROOM = 2  # packets by which a bucket's size may be misjudged
_LEAST_PACKETS = 6  # packets that a policer's bucket holds at least; smaller ones are queues of a few packets
_SLOWER = 0.8  # a policer's rate as a share of the link's, at most: one that is not slower never drops
_MOST_PACKETS = 200_000  # packets that are looked at
_FEW_DROPS, _FEWEST_DROPS = 5, 3  # drops that it takes to find a bucket, and to exclude one
_FASTER = tuple(1.25**step for step in range(1, 16))  # factors of further rates to exclude
_SPANS, _RATES = (0.03, 0.0006, 0.00003), 101  # relative widths of the searches for the best rate; rates in each
_MOST_REFINED, _HALVINGS = 20_000, 16  # packets that the search looks at; bisections towards a rate that does not fit


class Arrived(Protocol):
    """Packets in the order in which they reached a possible policer."""

    @property
    def near_ns(self) -> Integers: ...

    @property
    def size_bytes(self) -> Integers: ...

    @property
    def lost(self) -> Flags: ...


@dataclass(frozen=True)
class Departures:
    """The packets that a tap saw pass, in order, and which of them were lost.

    A packet was lost after the tap if it was sent again and needed to be; before the tap if it was missing when a later
    one passed.
    """

    near_ns: Integers
    size_bytes: Integers
    lost: Flags

    @classmethod
    def of(cls, seen: Seen) -> Departures | None:
        """Return None if segments were overtaken, or if it is not known which were retransmitted needlessly."""
        sent = seen.sent
        if seen.spurious > seen.needless.size or (sent.kind == LATE).any():
            return None
        again = np.flatnonzero(sent.kind == AGAIN)
        needless = set(seen.needless.tolist())
        lost = np.zeros(sent.begin.size, bool)
        latest: dict[int, int] = {}
        starts = set(sent.begin[again].tolist())
        for at, begin in enumerate(sent.begin.tolist()):
            if begin in starts:
                if begin in latest and at not in needless:
                    lost[latest[begin]] = True
                latest[begin] = at
        size = sent.end - sent.begin + sent.extra_bytes
        fills = np.flatnonzero(sent.kind == FILLS)
        if not fills.size:
            return cls(sent.time_ns, size, lost)
        behind = np.searchsorted(sent.top, sent.begin[fills], side="right")
        when = np.concatenate([sent.time_ns, sent.time_ns[behind] - 1])
        order = np.argsort(when, kind="stable")
        sizes, gone = np.concatenate([size, size[fills]]), np.concatenate([lost, np.ones(fills.size, bool)])
        return cls(when[order], sizes[order], gone[order])


@dataclass(frozen=True)
class Bucket:
    """A token bucket. ``agrees`` is the lesser of two shares: drops that find it empty, and passed packets that do
    not."""

    rate_bits_per_second: float
    burst_bytes: float
    agrees: float


def policer_of(data: Arrived, link_bits_per_second: float | None) -> Bucket | None:
    """Return the policer's bucket, None if none fits. Candidate rates are what passed between drops far apart, because
    the bucket was empty at each; the size is what passed beyond that rate before the first drop.

    A drop-tail queue passes the same packets as a bucket that fills at the link's rate. If such a bucket fits too, or
    one of a few packets, it may be a queue, and the result is None.
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
    return None if shallow_queue(data, link_bits_per_second) else packets.refined(best)


def no_bucket_fits(data: Arrived) -> bool:
    """Whether no bucket of any rate and size would have dropped these packets. Buckets of a few packets count as
    queues."""
    packets = _Arrivals.of(data, _FEWEST_DROPS)
    if packets is None:
        return False
    rates = packets.rates()
    # A bucket that was full between drops fills faster than what passed.
    rates += [max(rates, default=0.0) * factor for factor in _FASTER]
    least = _LEAST_PACKETS * packets.size.max()
    found = (packets.agreement(each) for each in rates)
    return all(each is None or each.burst_bytes < least or each.agrees < _FITS for each in found)


def policer_words(found: Bucket) -> str:
    return (
        f"where a bucket of {size(found.burst_bytes)} that fills at {rate(found.rate_bits_per_second)} "
        f"is empty, whatever the delay: {significant(100 * found.agrees, 3)} % of them"
    )


def shallow_queue(data: Arrived, link_bits_per_second: float | None) -> bool:
    """Whether a drop-tail queue at the link's rate would have dropped these packets."""
    packets = _Arrivals.of(data)
    if packets is None or link_bits_per_second is None:
        return False
    link = packets.agreement(link_bits_per_second / 8)
    return link is not None and link.agrees >= _FITS


@dataclass(frozen=True)
class _Arrivals:
    """Packets in order of arrival; ``passed`` is the number of bytes that have passed, including this packet."""

    time: Reals
    size: Reals
    lost: Flags
    passed: Reals

    @classmethod
    def of(cls, data: Arrived, fewest: int = _FEW_DROPS) -> _Arrivals | None:
        time = (data.near_ns[:_MOST_PACKETS] - data.near_ns[0]) / 1e9
        lost, size = data.lost[:_MOST_PACKETS], data.size_bytes[:_MOST_PACKETS].astype(np.float64)
        if lost.sum() < fewest:
            return None
        return cls(time, size, lost, np.cumsum(np.where(lost, 0.0, size)))

    def rates(self) -> list[float]:
        """Candidate rates in bytes per second: what passed between drops that are some drops apart."""
        drops = np.flatnonzero(self.lost)
        found = []
        for step in {max(drops.size // 8, 1), max(drops.size // 3, 1), drops.size - 1}:
            took = self.time[drops[step:]] - self.time[drops[:-step]]
            got = self.passed[drops[step:]] - self.passed[drops[:-step]]
            good = took > 0
            if good.any():
                found += [float(each) for each in np.percentile(got[good] / took[good], [50, 75, 95, 100])]
        return [each for each in found if each > 0]

    def needs(self, rate: float) -> Reals:
        """For each packet, the size in bytes of the smallest bucket of this rate that passes it, if the packets before
        it fared as recorded. The bucket starts full and never holds more than its size."""
        taken = np.concatenate([[0.0], self.passed[:-1]]) - rate * self.time
        return np.asarray(self.size + taken - np.minimum.accumulate(taken))

    def agreement(self, rate: float) -> Bucket | None:
        """Return the bucket of this rate whose size misjudges the fewest packets, None if it would hold no packet."""
        needs = self.needs(rate)
        _, low, high = self._fewest_errors(needs)
        burst = (low + high) / 2
        if burst < self.size.max():
            return None
        room = _ROOM * float(self.size.max())
        rightly = float((needs[self.lost] > burst - room).mean())
        wrongly = float((needs[~self.lost] > burst + room).sum()) / max(int((~self.lost).sum()), 1)
        return Bucket(rate * 8, burst, min(rightly, 1 - wrongly))

    def _fewest_errors(self, needs: Reals) -> tuple[int, float, float]:
        """How many packets the best size misjudges, and the range of that size. A bucket drops exactly the packets that
        need more."""
        edges = np.sort(needs)
        lost = np.cumsum(self.lost[np.argsort(needs, kind="stable")])
        wrong = lost + (self.lost.size - int(lost[-1])) - (np.arange(1, edges.size + 1) - lost)
        best = int(np.argmin(wrong))
        return int(wrong[best]), float(edges[best]), float(edges[min(best + 1, edges.size - 1)])

    def refined(self, found: Bucket) -> Bucket:
        """Return the bucket near ``found`` that misjudges the fewest packets. A bucket drops to the byte, so each
        packet bounds rate and size. Among equals choose the roundest numbers, because people configure round numbers.
        """
        most = slice(_MOST_REFINED)
        part = _Arrivals(self.time[most], self.size[most], self.lost[most], self.passed[most])
        if not part.lost.any():
            return found
        speed = found.rate_bits_per_second
        for span in _SPANS:
            speeds = speed * np.linspace(1 - span, 1 + span, _RATES)
            errors = np.array([part._errors(each) for each in speeds.tolist()])
            good = np.flatnonzero(errors == errors.min())
            speed = float(speeds[good[good.size // 2]])
        fewest = part._errors(speed)
        ends = [part._edge(speed, speed * (1 + sign * _SPANS[0]), fewest) for sign in (-1, 1)]
        chosen = roundest(*ends)
        speed = chosen if part._errors(chosen) <= fewest else speed
        _, low, high = part._fewest_errors(part.needs(speed / 8))
        return Bucket(speed, roundest(low, high), found.agrees)

    def _errors(self, speed: float) -> int:
        return self._fewest_errors(self.needs(speed / 8))[0]

    def _edge(self, within: float, beyond: float, fewest: int) -> float:
        """The speed farthest from ``within`` towards ``beyond`` that makes no more than ``fewest`` errors, by
        bisection."""
        for _ in range(_HALVINGS):
            middle = (within + beyond) / 2
            if self._errors(middle) <= fewest:
                within = middle
            else:
                beyond = middle
        return within
