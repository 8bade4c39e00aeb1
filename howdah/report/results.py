# SPDX-License-Identifier: Apache-2.0
"""The results in directories, as far as a page or the end of a command shows them."""

from __future__ import annotations

from pathlib import Path

from howdah.record.brief import brief
from howdah.record.result import Experiment
from howdah.report.many import are_many
from howdah.work.results import read_results, runs_of


def read_shown(path: Path) -> Experiment:
    """The results in a directory, as far as a page shows them."""
    return read_all_shown([path])[0]


def read_all_shown(paths: list[Path]) -> list[Experiment]:
    """The same of directories that one page shows."""
    many = are_many(sum(len(runs_of(path)) for path in paths))
    return [read_results(path, kept=brief if many else None) for path in paths]
