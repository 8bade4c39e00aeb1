# SPDX-License-Identifier: Apache-2.0
"""What a sitting of the atlas is said to have made, however it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from howdah.atlas import work
from howdah.atlas.record import begin
from howdah.work import prepared
from howdah.work.batch import Job, Outcome, Rest
from howdah.work.display import Display
from howdah.work.experiment import Cell, Experiment
from tests.unit.plan_factory import make_plan


def test_runs_of_an_interrupted_sitting_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(Experiment(tmp_path / "exp"), Cell(make_plan(), "a" * 64))

    def interrupted(_jobs: Any, _workers: int, _again: bool, listen: Callable[..., None], **_more: Any) -> None:
        listen([], [Outcome(job, verdict="pass", wall_s=2.5), Outcome(job, verdict="pass", reused=True)], Rest(3))
        raise KeyboardInterrupt

    monkeypatch.setattr(prepared, "run_cells", interrupted)
    sitting = begin(quick=False, workers=1)
    with Display(quiet=True) as display, pytest.raises(KeyboardInterrupt):
        work.make([], 1, False, display, sitting)
    assert sitting.interrupted
    assert (sitting.made, sitting.found, sitting.core_s) == (1, 1, 2.5)
    assert sitting.simulated_s > 0
