# SPDX-License-Identifier: Apache-2.0
"""The verdict of an entry from those of its claims, and the words for verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from howdah.number import counted


@dataclass(frozen=True)
class Word:
    """The name of a verdict for readers, and its meaning."""

    word: str
    meaning: str


_NOT_MEASURABLE = "not measurable here"

# The words for all states of claims.json, in the order of every list: those that hold come first.
WORDS: dict[str, Word] = {
    "pass": Word("reproduced", "what is claimed was measured"),
    "implemented": Word("implemented", "a definition that the implementation has, as it says of itself"),
    "differs": Word(
        "differs (mechanism shown)",
        "it was not measured, and it is when the mechanism named is switched off, with the algorithm of the period, "
        "or where what the paper leaves open has another value that decides it",
    ),
    "depends": Word(
        "depends on what is left open",
        "it was not measured, and it is at some value of what the paper leaves open; no value decides it, or its "
        "reverse is measured at as many",
    ),
    "fail": Word("not reproduced", "it was not measured; why, or that nothing explains it, stands beside it"),
    "invalid": Word("invalid", "too few of the runs it needs passed their checks"),
    "unsupported": Word(_NOT_MEASURABLE, "for the reason given"),
    "not run": Word("not run", "its runs have not been made"),
    "definition": Word(_NOT_MEASURABLE, "a map, a drawing or pseudo-code"),
    "trace": Word(_NOT_MEASURABLE, "drawn from a recording that was not published"),
}
VERDICTS = tuple(WORDS)


def word(verdict: str) -> str:
    """Return the word of the pages for a state of claims.json, or of an entry."""
    known = WORDS.get(verdict)
    return known.word if known is not None else verdict


def sentence(text: str) -> str:
    """Return the text with a capital first letter."""
    return f"{text[:1].upper()}{text[1:]}"


def count_words(verdicts: Iterable[str]) -> dict[str, int]:
    """Return how often each word occurs, in the order of WORDS."""
    found: dict[str, int] = {}
    for verdict, number in count(verdicts).items():
        found[word(verdict)] = found.get(word(verdict), 0) + number
    return found


def words_text(verdicts: Iterable[str]) -> str:
    """``5 reproduced, 1 not reproduced``."""
    return ", ".join(f"{number} {called}" for called, number in count_words(verdicts).items())


def claims_text(verdicts: Collection[str]) -> str:
    """Return ``6 claims: 5 reproduced, 1 not reproduced``, the sentence used wherever claims are counted."""
    return f"{counted(len(verdicts), 'claim')}: {words_text(verdicts) or 'none judged'}"


_WORST_FIRST = ("fail", "invalid", "not run", "depends", "differs", "unsupported", "implemented", "pass")


def entry_verdict(kind: str, central: Sequence[str]) -> str:
    """Return the verdict of an entry: the worst of the verdicts of its ``central`` claims.

    A definition or a trace without claims has its kind as verdict.
    """
    return next(
        (verdict for verdict in _WORST_FIRST if verdict in central), kind if kind != "experiment" else "not run"
    )


def count(verdicts: Iterable[str]) -> dict[str, int]:
    """Return how often each verdict occurs, in the order of VERDICTS, unknown ones last."""
    counted = Counter(verdicts)
    known = {verdict: counted.pop(verdict) for verdict in VERDICTS if verdict in counted}
    return known | dict(counted.most_common())
