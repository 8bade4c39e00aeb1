# SPDX-License-Identifier: Apache-2.0
"""What a sender sent again: how far it reduces its window in a repair, by what is in flight (cubic keeps 0.7 of it,
reno 0.5); and what was sent again without a loss because the receiver had discarded it.

The receiver's ACKs show that it discards data. If it reports bytes by SACK and later asks for them, it has reneged (RFC
2018, section 8). If it answers data out of order by duplicate ACKs, and then advances only by what is sent again, it
keeps nothing out of order.
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
_KEEPS = {CUBIC: (0.6, 0.77), RENO: (0.42, 0.56)}  # range of the share of the flight that is left
_LEAST_TIMEOUT_NS = 200_000_000  # TCP_RTO_MIN
_ACKS, _CLEAN_ACKS = 8, 4  # ACKs after a repair that show the flight, at most and at least
_LEAST_PACKETS = 12  # flight at its start, at least


@dataclass(frozen=True)
class Repairs:
    """``kept`` is the share of the flight that was left after each repair. ``reduces_like`` is the algorithm that most
    of them fit, None if none does or two do equally."""

    kept: Reals
    reduces_like: str | None

    @property
    def words(self) -> str:
        return f"after a repair {float(np.median(self.kept)):.2f} of what was in flight was left"


def repairs_of(course: SenderCourse, trips: RoundTrips) -> Repairs:
    """Return the repairs without a timeout that are followed by some ACKs before the next repair."""
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


_FEW, _SHARE = 4, 0.2  # segments, and share of those sent again: fewer duplicates may have another origin
_STEP = 2  # segments that an ACK advances, at most, if the receiver kept nothing beyond


@dataclass(frozen=True)
class Discarded:
    """How many segments were sent again although they had arrived; ``words`` say what shows it, empty if there are
    none."""

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
    """The number of retransmitted segments inside these blocks, which are sorted and disjoint."""
    again = np.flatnonzero(np.isin(seen.sent.kind, (AGAIN, FILLS)))
    at = np.searchsorted(blocks[:, 0], seen.sent.begin[again], side="right") - 1
    inside = (at >= 0) & (seen.sent.end[again] <= blocks[np.maximum(at, 0), 1])
    return int(inside.sum())


def _not_kept(seen: Seen) -> int:
    """Segments that a receiver without SACK had received and not kept: in each repair, those that duplicate ACKs
    answered, if no ACK went further than what was sent again. Otherwise filling a hole would have advanced it past what
    it kept."""
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
