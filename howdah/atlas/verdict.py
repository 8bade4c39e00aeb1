# SPDX-License-Identifier: Apache-2.0
"""What the claims of an entry say together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

# The order in which pages list them.
VERDICTS = ("fail", "invalid", "differs", "pass", "unsupported", "not run", "definition", "trace")


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
