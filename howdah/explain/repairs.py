# SPDX-License-Identifier: Apache-2.0
"""What a sender sent again: how far it reduces its window for that, by what is in flight (cubic keeps 0.7 of it, reno
0.5); and what the receiver had, and threw away, so that it was sent again without a loss.

The receiver's own ACKs show the latter. One that reports bytes by SACK and later asks for them has reneged (RFC 2018,
section 8). One that answers what came out of order by duplicate ACKs, and then moves on only by what is sent again,
keeps none of that.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.explain.course import SenderCourse
from howdah.explain.delay import Reals, RoundTrips
from howdah.explain.seen import AGAIN, FILLS, Seen
from howdah.ingest.source import Integers
from howdah.number import counted

CUBIC, RENO = "cubic", "reno"
_KEEPS = {CUBIC: (0.6, 0.77), RENO: (0.42, 0.56)}
_LEAST_TIMEOUT_NS = 200_000_000  # TCP_RTO_MIN
_ACKS, _CLEAN_ACKS, _LEAST_PACKETS = 8, 4, 12


@dataclass(frozen=True)
class Repairs:
    """``kept``: what was in flight when each repair was over, of what was when it began. ``reduces_like``: as most of
    them do, None if none does or as many do otherwise."""

    kept: Reals
    reduces_like: str | None

    @property
    def words(self) -> str:
        return f"after a repair {float(np.median(self.kept)):.2f} of what was in flight was left"


def repairs_of(course: SenderCourse, trips: RoundTrips) -> Repairs:
    """Of repairs without a timeout, behind which some ACKs came before the next."""
    again = np.unique(np.maximum(course.again, 0))
    longest_ns = int(trips.base_ns.value or 0) + _LEAST_TIMEOUT_NS
    found: list[float] = []
    at = 0
    while at < again.size:
        first = int(again[at])
        end = int(np.searchsorted(course.una, course.nxt[first]))
        at = max(int(np.searchsorted(again, end)), at + 1)
        clean = course.flight[end : min(end + _ACKS, int(again[at]) if at < again.size else len(course))]
        waited = int(np.diff(course.time_ns[first : end + 1]).max(initial=0))
        if (
            clean.size >= _CLEAN_ACKS
            and course.flight[first] >= _LEAST_PACKETS * course.mss_bytes
            and waited < longest_ns
        ):
            found.append(float(np.median(clean) / course.flight[first]))
    kept = np.array(found)
    votes = {name: int(((kept >= low) & (kept <= high)).sum()) for name, (low, high) in _KEEPS.items()}
    like = max(votes, key=lambda name: votes[name])
    return Repairs(kept, like if len(set(votes.values())) > 1 else None)


_FEW, _SHARE = 4, 0.2  # of what was sent again: duplicates of another origin are fewer
_STEP = 2  # segments: an ACK of what a receiver kept goes further


@dataclass(frozen=True)
class Discarded:
    """How many segments were sent again that the receiver had had; ``words`` say how that shows, empty where none."""

    segments: int
    words: str


def discarded_by_receiver(seen: Seen) -> Discarded:
    if seen.reneged_bytes.size:
        count = _within(seen, seen.reneged_bytes)
        what = f"the receiver reported by SACK what it later threw away: {counted(count, 'segment')} were sent again"
        return Discarded(count, f"{what} that had arrived")
    if seen.connection.sack.size:
        return Discarded(0, "")
    count = _not_kept(seen)
    if not count:
        return Discarded(0, "")
    what = f"duplicate ACKs answered {counted(count, 'segment')} of those sent again"
    return Discarded(count, f"{what}: they had arrived, and the receiver kept none of them")


def _within(seen: Seen, blocks: Integers) -> int:
    """Segments sent again that are in such blocks, which are sorted and apart."""
    again = np.flatnonzero(np.isin(seen.sent.kind, (AGAIN, FILLS)))
    at = np.searchsorted(blocks[:, 0], seen.sent.begin[again], side="right") - 1
    inside = (at >= 0) & (seen.sent.end[again] <= blocks[np.maximum(at, 0), 1])
    return int(inside.sum())


def _not_kept(seen: Seen) -> int:
    """Of a receiver without SACK: segments of each repair that duplicates answered, where no ACK of it went further
    than what was sent again; else a hole that was filled would have let it go on to what it kept."""
    sent, acks = seen.sent, seen.acks
    again = np.flatnonzero(sent.kind == AGAIN)
    found, done = 0, 0
    for first in again.tolist():
        if sent.begin[first] < done:
            continue
        edge = done = int(sent.top[first])
        mine = again[(again >= first) & (sent.begin[again] < edge)]
        begin = int(np.searchsorted(acks.una, sent.begin[first]))
        end = int(np.searchsorted(acks.una, edge))
        repeats = int(acks.repeats[begin : end + 1].sum())
        outstanding = (edge - int(sent.begin[first])) / seen.mss_bytes
        steps = np.diff(acks.una[begin : end + 1])
        kept = bool(steps.size) and int(steps.max()) > _STEP * seen.mss_bytes
        had = round(mine.size - max(outstanding - repeats, 0))
        if not kept and had >= max(_FEW, _SHARE * mine.size):
            found += min(had, int(mine.size))
    return found
