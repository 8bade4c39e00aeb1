# SPDX-License-Identifier: Apache-2.0
"""What held a flow back, as a clause of a sentence, from the measures of held-back time."""

from __future__ import annotations

from collections import Counter

from howdah.held import NOTABLE_SHARE, ORDINARY, HeldBy, held_words
from howdah.number import significant
from howdah.report.repeated import EXIT_PACKETS, HELD_BY, HELD_NUMBERS, HELD_SHARE, Repeated
from howdah.report.subject import Subject

# Limits named in the reason for an absent exit, for runs without the measures.
_LIMITS = {
    "receive window": "the receive window held it back",
    "send buffer": "the send buffer held it back",
    "application": "the application had nothing to send",
}


def held_clause(subject: Subject, *, left: bool) -> str:
    """``the receive window held it at 64 KiB for 94 % of the time``; empty if nothing notable held the flow back.

    If the flow ``left`` its start-up or its transfer ended, the path's rate and the growing window are not mentioned.
    """
    of = subject.of
    kind = _main_limit(of)
    if kind is None:
        return "" if left else _limit_from_reason(of)
    share = of.median(HELD_SHARE)
    if share is None or share <= NOTABLE_SHARE or kind not in list(HeldBy) or (left and kind in ORDINARY):
        return ""
    return held_words(kind, share, {name: of.median(name) for name in HELD_NUMBERS})


def held_sentences(subjects: list[Subject], *, left: bool | None = None) -> list[str]:
    """A sentence for each kind of limit that held some of the flows or groups back: where it did so most, and in how
    many cases.

    ``left`` as in :func:`held_clause`; by default a flow left its start-up if it has an exit.
    """
    by_kind: dict[str, list[tuple[float, Subject, str]]] = {}
    for each in subjects:
        kind, share = _main_limit(each.of), each.of.median(HELD_SHARE)
        words = held_clause(each, left=each.of.has(EXIT_PACKETS) if left is None else left)
        if words and kind is not None and share is not None:
            by_kind.setdefault(kind, []).append((share, each, words))
    return [_sentence(found, subjects) for found in by_kind.values()]


def _sentence(found: list[tuple[float, Subject, str]], subjects: list[Subject]) -> str:
    least, (_, most, words) = min(share for share, _, _ in found), max(found, key=lambda each: each[0])
    several = {
        "side": len({each.side for each in subjects}) > 1,
        "place": len({each.place for each in subjects}) > 1,
        "name": len({each.name for each in subjects}) > 1,
    }
    where = [getattr(most, part) for part, differs in several.items() if differs and getattr(most, part)]
    if len(found) > 1:
        where.append(f"{significant(100 * least, 2)} % or more in {len(found)} of {len(subjects)} cases")
    clause = f" ({'; '.join(where)})" if where else ""
    return f"{words[0].upper()}{words[1:]}{clause}."


def _main_limit(of: Repeated) -> str | None:
    found = of.texts.get(HELD_BY)
    return Counter(found.values()).most_common(1)[0][0] if found else None


def _limit_from_reason(of: Repeated) -> str:
    for reason in of.reasons(EXIT_PACKETS):
        for limit, words in _LIMITS.items():
            if reason.endswith(f"held back by the {limit}"):
                return words
    return ""
