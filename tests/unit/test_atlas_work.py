# SPDX-License-Identifier: Apache-2.0
"""What a sitting of the atlas is said to have made, however it ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from howdah.atlas import work
from howdah.atlas.work import begin
from howdah.profile import Profile
from howdah.profile.control import UNKNOWN_AXIS
from howdah.record.directory import RunDirectory, write_json
from howdah.work import prepared
from howdah.work.batch import Job, Outcome, Rest
from howdah.work.compiled import compile_plans
from howdah.work.display import Display
from howdah.work.experiment import ExperimentDirectory, PlannedRun
from tests.atlas_factory import PROFILE, make_atlas, measured
from tests.claim_factory import make_runs
from tests.unit.plan_factory import make_plan


def test_runs_of_an_interrupted_sitting_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(ExperimentDirectory(tmp_path / "exp"), PlannedRun(make_plan(), "a" * 64))
    run = RunDirectory(tmp_path / "exp" / job.cell.directory_name)
    run.path.mkdir(parents=True)
    stages = [{"stage": "engine", "wall_s": 4.0, "core_s": 2.0}, {"stage": "judge", "wall_s": 0.5}]
    write_json(run.provenance, {"status": "finished", "stages": stages})

    def interrupted(_jobs: Any, _workers: int, _again: bool, listen: Callable[..., None], **_more: Any) -> None:
        listen([], [Outcome(job, verdict="pass", wall_s=9.0), Outcome(job, verdict="pass", reused=True)], Rest(3))
        raise KeyboardInterrupt

    monkeypatch.setattr(prepared, "run_cells", interrupted)
    sitting = begin(quick=False, workers=1)
    with Display(quiet=True) as display, pytest.raises(KeyboardInterrupt):
        work.make([], 1, False, display, sitting)
    assert sitting.interrupted
    assert (sitting.made, sitting.found, sitting.core_s) == (1, 1, 2.5)
    assert sitting.simulated_s > 0


OPEN = "unknown: {fields: {path-rate: {what: not stated, field: path.rate, values: [9 Mbit/s]}}}\n"


@pytest.mark.parametrize(
    ("profile", "made"),
    [
        (PROFILE + OPEN, 0),  # no claim fails, so the grid tells nothing
        (PROFILE.replace("equals: 30", "equals: 60") + OPEN, 12),  # 4 points, 3 repetitions
        (PROFILE.replace("equals: 30", "equals: 60"), 0),  # nothing is left open
    ],
)
def test_the_grid_is_made_where_a_claim_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str, made: int
) -> None:
    found = make_atlas(tmp_path, profile=profile)
    asked: list[list[Job]] = []

    def pretend(_prepared: Any, _workers: int, _again: bool, _listen: Any, *, jobs: list[Job], **_more: Any) -> Any:
        if not asked:
            make_runs(tmp_path, found.profiles / "made.yaml", measured)
        asked.append(jobs)
        return []

    monkeypatch.setattr(work, "make_runs", pretend)
    monkeypatch.setattr(work, "_prepare", lambda chapter, _display, _locks: _Ready(chapter.profile))
    with Display(quiet=True) as display:
        work.make(found.chapters(), 1, False, display, begin(quick=False, workers=1))
    assert not any(UNKNOWN_AXIS in job.cell.plan.axes for job in asked[0])
    assert len(asked) == (2 if made else 1)
    if made:
        assert len(asked[1]) == made
        assert all(job.cell.plan.axes[UNKNOWN_AXIS] == "path-rate 9 Mbit/s" for job in asked[1])


class _Ready:
    """A prepared experiment without an engine."""

    def __init__(self, profile: Profile) -> None:
        self.cells = [PlannedRun(plan, "a" * 64) for plan in compile_plans(profile)]

    @property
    def jobs(self) -> list[Job]:
        return [Job(ExperimentDirectory(Path("nowhere")), cell) for cell in self.cells]
