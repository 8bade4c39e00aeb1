# SPDX-License-Identifier: Apache-2.0
"""The claims of experiments as a page shows them."""

from __future__ import annotations

from dataclasses import dataclass

from howdah.record.claims import ClaimRow, read_claims
from howdah.record.result import Experiment

_HOLDS = ("pass", "implemented")
_MOST_NAMED = 2  # of claims that do not hold


@dataclass(frozen=True)
class Claims:
    """The claims of one experiment; ``experiment`` is its name where a page shows several."""

    experiment: str
    counts: str
    rows: list[ClaimRow]


def shown_claims(experiments: list[Experiment]) -> list[Claims]:
    """Those experiments that have a claims.json, in their order."""
    found = []
    for experiment in experiments:
        rows = read_claims(experiment.path)
        if rows:
            verdicts = [row.verdict for row in rows]
            counts = ", ".join(f"{verdicts.count(word)} {word}" for word in dict.fromkeys(verdicts))
            name = experiment.name if len(experiments) > 1 else ""
            found.append(Claims(name, counts, rows))
    return found


def answer(claims: list[Claims]) -> list[str]:
    """Whether what the profiles claim holds, in a sentence for each experiment."""
    sentences = []
    for each in claims:
        held = sum(row.verdict in _HOLDS for row in each.rows)
        others = [f"{row.says.rstrip('.')} ({row.verdict})" for row in each.rows if row.verdict not in _HOLDS]
        of = f" of {each.experiment}" if each.experiment else ""
        if len(each.rows) == 1:
            says = each.rows[0].says.rstrip(".")
            sentences.append(f"The claim{of} holds: {says}." if held else f"The claim{of} does not hold: {others[0]}.")
            continue
        number = f"All {held}" if not others else f"{held} of {len(each.rows)}" if held else f"None of {len(each.rows)}"
        rest = f"; not: {'; '.join(others[:_MOST_NAMED])}" if others else ""
        more = f"; and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        sentences.append(f"{number} claims{of} hold{rest}{more}.")
    return sentences
