# SPDX-License-Identifier: Apache-2.0
"""What held a flow back, as a clause of a sentence: from the measures that say it, where the runs have them."""

from __future__ import annotations

from collections import Counter

from howdah.held import NOTABLE_SHARE, ORDINARY, HeldBy, held_words
from howdah.report.repeated import EXIT_PACKETS, HELD_BY, HELD_NUMBERS, HELD_SHARE, Repeated
from howdah.report.subject import Subject

# What the reason of an absent exit says where nothing measured the shares.
_LIMITS = {
    "receive window": "the receive window held it back",
    "send buffer": "the send buffer held it back",
    "application": "the application had nothing to send",
}


def held(subject: Subject, *, left: bool) -> str:
    """``the receive window held it at 64 KiB for 94 % of the time``; empty where nothing noteworthy did.

    Of a flow that ``left`` its start-up, or whose transfer ended, the path's rate and the growing window are not worth
    a word.
    """
    of = subject.of
    kind = _most(of)
    if kind is None:
        return "" if left else _limit(of)
    share = of.median(HELD_SHARE)
    if share is None or share <= NOTABLE_SHARE or kind not in list(HeldBy) or (left and kind in ORDINARY):
        return ""
    return held_words(kind, share, {name: of.median(name) for name in HELD_NUMBERS})


def _most(of: Repeated) -> str | None:
    """What held back most of the repetitions."""
    found = of.texts.get(HELD_BY)
    return Counter(found.values()).most_common(1)[0][0] if found else None


def _limit(of: Repeated) -> str:
    for reason in of.reasons(EXIT_PACKETS):
        for limit, words in _LIMITS.items():
            if reason.endswith(f"held back by the {limit}"):
                return words
    return ""
