# SPDX-License-Identifier: Apache-2.0
"""The variants that a report compares: algorithms, and in a comparison also the kernels and experiments that differ. An
algorithm has the same colour and dashes in every report."""

from __future__ import annotations

from dataclasses import dataclass

from howdah.assets import data
from howdah.record.result import Experiment, Run


@dataclass(frozen=True)
class Colour:
    """``#rrggbb`` for the light and for the dark page, and the index of the dash pattern used with it."""

    light: str
    dark: str
    dashes: int = 0


def colours(variants: list[tuple[str, str]]) -> dict[str, Colour]:
    """Choose a colour for each variant, given as (key, algorithm).

    The first variant of an algorithm gets the algorithm's colour; further variants and unknown algorithms take the
    spare colours in turn.
    """
    palette = data("palette.yaml")
    known = {name: Colour(**value) for name, value in palette["algorithms"].items()}
    spare = [Colour(**value) for value in palette["others"]]
    spare += [colour for name, colour in known.items() if name not in {algorithm for _, algorithm in variants}]
    chosen: dict[str, Colour] = {}
    taken = 0
    used: set[str] = set()
    for key, algorithm in variants:
        if algorithm in known and algorithm not in used:
            chosen[key] = known[algorithm]
            used.add(algorithm)
        else:
            chosen[key] = spare[taken % len(spare)]
            taken += 1
    return chosen


def dashes() -> list[list[int]]:
    """The dash patterns; the first is solid."""
    found: list[list[int]] = data("palette.yaml")["dashes"]
    return found


_BETWEEN = " · "


@dataclass(frozen=True)
class Variant:
    """One side of the comparison. ``label`` distinguishes it from the others; ``home`` is its kernel and experiment
    where those differ."""

    key: str
    label: str
    algorithm: str
    colour: Colour
    home: str = ""


class Variants:
    """The variants of some experiments, in the order of their runs."""

    def __init__(self, experiments: list[Experiment]) -> None:
        runs = [run for experiment in experiments for run in experiment.runs]
        self.with_kernel = len({run.kernel for run in runs}) > 1
        homes: dict[tuple[str, str, str], set[str]] = {}
        for run in runs:
            kernel = run.kernel if self.with_kernel else ""
            homes.setdefault((run.algorithm, kernel, run.point), set()).add(run.experiment)
        self.with_experiment = any(len(names) > 1 for names in homes.values())
        labels: dict[str, str] = {}
        for run in runs:
            labels.setdefault(self.key(run), run.algorithm)
        chosen = colours(list(labels.items()))
        self.all = [
            Variant(key, key, algorithm, chosen[key], key.removeprefix(algorithm).removeprefix(_BETWEEN))
            for key, algorithm in labels.items()
        ]

    def key(self, run: Run) -> str:
        """The key, which is also the label, of a run's variant."""
        return self.of(run.algorithm, run.kernel, run.experiment)

    def index(self, run: Run) -> int:
        """The index of a run's variant."""
        return [variant.key for variant in self.all].index(self.key(run))

    def of(self, algorithm: str, kernel: str, experiment: str) -> str:
        parts = [algorithm]
        if self.with_kernel:
            parts.append(kernel)
        if self.with_experiment:
            parts.append(experiment)
        return _BETWEEN.join(parts)
