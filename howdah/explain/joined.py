# SPDX-License-Identifier: Apache-2.0
"""Join recordings of one connection at several taps: where packets were lost, how long each leg took, and what dropped
packets on it.

Two taps on both sides of a loss show the delay of the packets next to it, without the rest of the path.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from howdah.explain.bucket import Bucket, policer_of, policer_words, shallow_queue
from howdah.explain.delay import RoundTrips
from howdah.explain.explained import Explained
from howdah.explain.loss import POLICER, QUEUE, RANDOM, LossBy
from howdah.explain.matched import Clocks, Matched, clocks_of, match_acks, match_data
from howdah.explain.seen import Seen
from howdah.number import counted, delay, significant

_MOST_TAPS = 8  # taps of one connection
_FEW_LOSSES = 5  # fewer losses may be chance
_FULL, _FLAT = 0.85, 0.2  # shares of the leg's longest queue: from the first on it is full, up to the other it is flat
_MOSTLY = 0.8  # least share of the losses at a full queue, if that drops them
_BY_CHANCE = 0.001  # probability that so few packets meet so full queues by chance, at most
_FLAT_LEAST_NS = 500_000.0  # shorter queues are flat delay
_CLOSEST = 90  # percentile of the rates of two neighbouring packets that is the link's rate
_FRAMES = 2.5  # frames in a queue that is flat delay
_USUAL = (0.2, 0.8)  # range of the median rank of the queues that losses by chance meet


@dataclass(frozen=True)
class Leg:
    """The path between two neighbouring taps, in the direction of the data. ``near`` and ``far`` name their files."""

    near: str
    far: str
    data: Matched
    acks: Matched | None
    clocks: Clocks
    loss_by: LossBy | None
    loss_words: str
    bucket: Bucket | None

    @property
    def lost(self) -> int:
        return int(self.data.lost.sum())

    @property
    def acks_lost(self) -> int | None:
        return int(self.acks.lost.sum()) if self.acks is not None else None


@dataclass(frozen=True)
class Joined:
    """One connection at several taps, in order from the sender."""

    name: str
    files: list[str]
    legs: list[Leg]


def join(files: list[list[Explained]]) -> list[Joined]:
    """Return the connections that several taps saw, given the flows of each file. What a leg shows about the cause of
    losses replaces what a single tap supposed."""
    left = [(number, flow) for number, flows in enumerate(files) for flow in flows if flow.parts is not None]
    found: list[Joined] = []
    while left:
        first = left.pop(0)
        others = [other for other in left if _is_same(first, other)][: _MOST_TAPS - 1]
        if not others:
            continue
        left = [each for each in left if all(each is not other for other in others)]
        same = [flow for _, flow in (first, *others)]
        joined = _joined(sorted(same, key=_distance_from_sender))
        if joined is not None:
            found.append(joined)
            _share_verdict(same, joined)
    return found


def _parts(flow: Explained) -> tuple[Seen, RoundTrips]:
    assert flow.parts is not None
    return flow.parts[0], flow.parts[1]


def _is_same(first: tuple[int, Explained], other: tuple[int, Explained]) -> bool:
    """Whether both are one connection at two taps. A hop may have rewritten the address of one end."""
    mine, theirs = _parts(first[1])[0], _parts(other[1])[0]
    if (first[0], mine.connection.tap) == (other[0], theirs.connection.tap):
        return False
    if not set(mine.connection.ends) & set(theirs.connection.ends):
        return False
    return match_data(mine, theirs) is not None


def _distance_from_sender(flow: Explained) -> float:
    trips = _parts(flow)[1]
    return float("inf") if trips.near_ns is None else float(trips.near_ns)


def _joined(flows: list[Explained]) -> Joined | None:
    legs = [leg for near, far in pairwise(flows) if (leg := _leg(near, far)) is not None]
    return Joined(flows[0].name, [flow.file for flow in flows], legs) if legs else None


def _leg(near: Explained, far: Explained) -> Leg | None:
    (ours, trips), (theirs, others) = _parts(near), _parts(far)
    data, acks = match_data(ours, theirs), match_acks(theirs, ours)
    if data is None:
        return None
    step = max(trips.clock_ns, others.clock_ns, 1)
    clocks = clocks_of(data, acks, step)
    by, words, bucket = _dropper(data, clocks, step)
    return Leg(near.file, far.file, data, acks, clocks, by, words, bucket)


def _dropper(data: Matched, clocks: Clocks, step_ns: int) -> tuple[LossBy | None, str, Bucket | None]:
    """What dropped packets between two taps: a queue if the leg's queue was at its longest; a policer if a token bucket
    was empty; chance if losses came at any delay and any rate."""
    lost = np.flatnonzero(data.lost)
    if not lost.size:
        return None, "", None
    there = np.flatnonzero(data.passed)
    before = np.searchsorted(there, lost) - 1
    levels = clocks.data_ns[np.maximum(before, 0)]
    most = float(np.percentile(clocks.data_ns, 99.5))
    level = float(np.median(levels))
    spacing = np.diff(data.far_ns[there])
    frame = float(np.median(spacing[spacing > 0])) if (spacing > 0).any() else 0.0
    flat = max(_FLAT_LEAST_NS, _FRAMES * frame, 3.0 * step_ns)
    link = _link_rate(data)
    bucket = policer_of(data, link)
    is_flat = level <= max(_FLAT * most, flat)
    if bucket is not None:
        return POLICER, policer_words(bucket), bucket
    ranks = np.searchsorted(np.sort(clocks.data_ns), levels) / clocks.data_ns.size
    rank = float(np.median(ranks))
    at_top = float((levels >= _FULL * most).mean())
    if most > flat and at_top >= _MOSTLY and (lost.size >= _FEW_LOSSES or (1 - ranks).prod() <= _BY_CHANCE):
        return QUEUE, f"while the leg's queue held {level / 1e6:.1f} ms of its {most / 1e6:.1f} ms", None
    if lost.size < _FEW_LOSSES:
        return None, "they are too few to tell", None
    if shallow_queue(data, link):
        return None, "a queue of few packets would have dropped them, and chance may have", None
    if is_flat or _USUAL[0] <= rank <= _USUAL[1]:
        return RANDOM, "at any delay and any rate: no queue and no bucket of tokens fits", None
    return None, f"at queues of {levels.min() / 1e6:.1f} to {levels.max() / 1e6:.1f} ms", None


def _link_rate(data: Matched) -> float | None:
    """The leg's rate in bits per second, by the spacing of packets that follow one another; None if they are too
    few."""
    there = np.flatnonzero(data.passed)
    spacing = np.diff(data.far_ns[there])
    good = (spacing > 0) & (np.diff(there) == 1)
    if good.sum() < _FEW_LOSSES:
        return None
    return float(np.percentile(data.size_bytes[there][1:][good] * 8e9 / spacing[good], _CLOSEST))


def _share(value: float) -> str:
    return f"{significant(100 * value, 3)} %"


def _share_verdict(flows: list[Explained], joined: Joined) -> None:
    """If exactly one leg lost packets and shows why, take its verdict for the flow of every tap."""
    lossy = [leg for leg in joined.legs if leg.lost]
    if len(lossy) != 1 or lossy[0].loss_by is None:
        return
    for flow in flows:
        flow.loss_by, flow.policer = lossy[0].loss_by, lossy[0].bucket
        flow.loss_words = f"between two of the captures, {lossy[0].loss_words}"


def leg_sentence(leg: Leg) -> str:
    total = counted(leg.data.near_ns.size, "packet")
    between = f"between {leg.near} and {leg.far}"
    if not leg.lost:
        return f"None of {total} was lost {between}."
    return f"{leg.lost} of {total} were lost {between}" + (f": {leg.loss_words}." if leg.loss_words else ".")


def leg_rows(leg: Leg) -> list[tuple[str, str]]:
    total = leg.data.near_ns.size
    lost = f"{leg.lost} of {total} packets" + (f": {leg.loss_words}" if leg.lost and leg.loss_words else "")
    rows = [("lost there", lost)]
    if leg.data.unseen:
        rows.append(("not seen", f"{counted(leg.data.unseen, 'packet')} that arrived: the far capture lacks them"))
    rows.append(("queue there", f"at most {delay(float(leg.clocks.data_ns.max()) / 1e3)} beyond the least delay"))
    if leg.acks is not None and leg.clocks.ack_ns.size:
        rows.append(("lost back", f"{leg.acks_lost} of {counted(leg.acks.near_ns.size, 'ACK')}"))
        rows.append(("queue back", f"at most {delay(float(leg.clocks.ack_ns.max()) / 1e3)} beyond the least delay"))
    offset, skew, one_way = leg.clocks.offset_ns, leg.clocks.skew_ppm, leg.clocks.data_least_ns
    if (
        offset.value is None
        or offset.low is None
        or offset.high is None
        or one_way.value is None
        or one_way.high is None
    ):
        rows.append(("clocks", f"not known: {offset.reason}"))
        return rows
    rows.append(("delay one way", f"{delay(one_way.value / 1e3)} (0 … {delay(one_way.high / 1e3)}): {one_way.how}"))
    ends = " … ".join(_signed(each) for each in (offset.low, offset.high))
    rows.append(("clock of the far", f"{_signed(offset.value)} ({ends}) from the near one: {offset.how}"))
    if skew.value is not None and skew.low is not None and skew.high is not None:
        ppm = f"{significant(skew.value, 3)} ppm ({significant(skew.low, 3)} … {significant(skew.high, 3)}): {skew.how}"
        rows.append(("clocks part by", ppm))
    else:
        rows.append(("clocks part by", f"not known: {skew.reason}"))
    return rows


def _signed(value_ns: float) -> str:
    return ("−" if value_ns < 0 else "+") + delay(abs(value_ns) / 1e3)
