# SPDX-License-Identifier: Apache-2.0
"""What the claims of an entry say together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """A verdict as a reader meets it: what it is called, and what that means."""

    word: str
    meaning: str


_NOT_MEASURABLE = "not measurable here"

# The one table of them, in the order in which pages list them. The states on the left are those of claims.json.
WORDS: dict[str, Word] = {
    "fail": Word("not reproduced", "it was not measured; why, or that nothing explains it, stands beside it"),
    "invalid": Word("invalid", "too few of the runs it needs passed their checks"),
    "differs": Word(
        "differs (mechanism shown)",
        "it was not measured, and it is when the mechanism named is switched off, with the algorithm of the period, "
        "or at another value of what the paper leaves open",
    ),
    "pass": Word("reproduced", "what is claimed was measured"),
    "unsupported": Word(_NOT_MEASURABLE, "for the reason given"),
    "not run": Word("not run", "its runs have not been made"),
    "definition": Word(_NOT_MEASURABLE, "a map, a drawing or pseudo-code"),
    "trace": Word(_NOT_MEASURABLE, "drawn from a recording that was not published"),
}
VERDICTS = tuple(WORDS)


def word(verdict: str) -> str:
    """A state of claims.json, or of an entry, as pages call it."""
    known = WORDS.get(verdict)
    return known.word if known is not None else verdict


def sentence(text: str) -> str:
    """With a capital letter."""
    return f"{text[:1].upper()}{text[1:]}"


def count_words(verdicts: Iterable[str]) -> dict[str, int]:
    """How often each word occurs, in the order of WORDS."""
    found: dict[str, int] = {}
    for verdict, number in count(verdicts).items():
        found[word(verdict)] = found.get(word(verdict), 0) + number
    return found


def words_text(verdicts: Iterable[str]) -> str:
    """``5 reproduced, 1 not reproduced``."""
    return ", ".join(f"{number} {called}" for called, number in count_words(verdicts).items())


def entry_verdict(kind: str, claims: Sequence[str]) -> str:
    """The verdict of an entry: one claim that fails makes it *fail*, one that is *invalid* leaves it undecided.

    ``claims`` are the verdicts of its claims. An entry whose judged claims all pass is *pass*, even where others are
    unsupported: their count stands beside it. A definition or a trace has no claims, and its kind is its verdict.
    """
    if kind != "experiment":
        return kind
    for verdict in ("fail", "invalid", "not run", "differs", "pass"):
        if verdict in claims:
            return verdict
    return "unsupported"


def count(verdicts: Iterable[str]) -> dict[str, int]:
    """How often each occurs, in the order of VERDICTS, unknown ones last."""
    counted = Counter(verdicts)
    known = {verdict: counted.pop(verdict) for verdict in VERDICTS if verdict in counted}
    return known | dict(counted.most_common())
