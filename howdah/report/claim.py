# SPDX-License-Identifier: Apache-2.0
"""The claims of experiments as a page shows them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from howdah.record.claims import read_claims
from howdah.record.result import Experiment


@dataclass(frozen=True)
class Claims:
    """The claims of one experiment; ``experiment`` is its name where a page shows several."""

    experiment: str
    counts: str
    rows: list[dict[str, Any]]


def shown_claims(experiments: list[Experiment]) -> list[Claims]:
    """Those experiments that have a claims.json, in their order."""
    found = []
    for experiment in experiments:
        rows = read_claims(experiment.path)
        if rows:
            verdicts = [row["verdict"] for row in rows]
            counts = ", ".join(f"{verdicts.count(word)} {word}" for word in dict.fromkeys(verdicts))
            name = experiment.name if len(experiments) > 1 else ""
            found.append(Claims(name, counts, rows))
    return found
