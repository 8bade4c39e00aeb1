# SPDX-License-Identifier: Apache-2.0
"""What a report compares: algorithms, and in a comparison also the kernels and experiments that differ."""

from __future__ import annotations

from dataclasses import dataclass

from howdah.record.result import Experiment, Run
from howdah.report.palette import Colour, colours

_BETWEEN = " · "


@dataclass(frozen=True)
class Variant:
    """One column of the comparison. ``label`` names what tells it from the others, ``home`` the kernel and the
    experiment of it."""

    key: str
    label: str
    algorithm: str
    colour: Colour
    home: str = ""


class Variants:
    """The variants of some experiments, in the order in which their runs come."""

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
        """The key and label of the variant a run belongs to."""
        return self.of(run.algorithm, run.kernel, run.experiment)

    def of(self, algorithm: str, kernel: str, experiment: str) -> str:
        parts = [algorithm]
        if self.with_kernel:
            parts.append(kernel)
        if self.with_experiment:
            parts.append(experiment)
        return _BETWEEN.join(parts)
