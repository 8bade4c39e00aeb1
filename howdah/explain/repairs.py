# SPDX-License-Identifier: Apache-2.0
"""How far a sender reduces its window when it repairs losses, by what is in flight: cubic keeps 0.7 of it, reno 0.5."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.explain.course import SenderCourse
from howdah.explain.delay import Reals, RoundTrips

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


def repairs_of(way: SenderCourse, trips: RoundTrips) -> Repairs:
    """Of repairs without a timeout, behind which some ACKs came before the next."""
    again = np.unique(np.maximum(way.again, 0))
    longest_ns = int(trips.base_ns.value or 0) + _LEAST_TIMEOUT_NS
    found: list[float] = []
    at = 0
    while at < again.size:
        first = int(again[at])
        end = int(np.searchsorted(way.una, way.nxt[first]))
        at = max(int(np.searchsorted(again, end)), at + 1)
        clean = way.flight[end : min(end + _ACKS, int(again[at]) if at < again.size else len(way))]
        waited = int(np.diff(way.time_ns[first : end + 1]).max(initial=0))
        if clean.size >= _CLEAN_ACKS and way.flight[first] >= _LEAST_PACKETS * way.mss_bytes and waited < longest_ns:
            found.append(float(np.median(clean) / way.flight[first]))
    kept = np.array(found)
    votes = {name: int(((kept >= low) & (kept <= high)).sum()) for name, (low, high) in _KEEPS.items()}
    like = max(votes, key=lambda name: votes[name])
    return Repairs(kept, like if len(set(votes.values())) > 1 else None)
