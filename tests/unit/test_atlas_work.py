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
from howdah.record.model import Scalar
from howdah.work import prepared
from howdah.work.batch import Job, Outcome, Rest
from howdah.work.compiled import compile_plans
from howdah.work.display import Display
from howdah.work.experiment import ExperimentDirectory, PlannedRun
from howdah.work.planned import Prepared, Runs
from howdah.work.sweep_memory import SweepMemory
from tests.atlas_factory import PROFILE, make_atlas, measured
from tests.claim_factory import make_runs
from tests.unit.plan_factory import make_plan


def test_runs_of_an_interrupted_sitting_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(ExperimentDirectory(tmp_path / "exp"), PlannedRun(make_plan(), "a" * 64))
    run = RunDirectory(tmp_path / "exp" / job.cell.directory_name)
    run.path.mkdir(parents=True)
    stages = [{"stage": "engine", "wall_s": 4.0, "core_s": 2.0}, {"stage": "judge", "wall_s": 0.5}]
    write_json(run.provenance, {"status": "finished", "stages": stages})

    def interrupted(_queue: Any, _place: Any, listen: Callable[..., None], **_more: Any) -> None:
        listen([], [Outcome(job, verdict="pass", wall_s=9.0), Outcome(job, verdict="pass", reused=True)], Rest(3))
        raise KeyboardInterrupt

    monkeypatch.setattr(prepared, "run_queue", interrupted)
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
    asked: list[list[dict[str, Scalar]]] = []

    def pretend(prepared: list[Prepared], _workers: int, _again: bool, _listen: Any, **_more: Any) -> Any:
        if not asked:
            make_runs(tmp_path, found.profiles / "made.yaml", measured)
        asked.append([each.cells.name(place)[1] for each in prepared for place in each.wanted.tolist()])
        return []

    monkeypatch.setattr(work, "make_runs", pretend)
    monkeypatch.setattr(work, "_prepare", lambda chapter, _display, _locks: _ready(chapter.profile))
    with Display(quiet=True) as display:
        work.make(found.chapters(), 1, False, display, begin(quick=False, workers=1))
    assert not any(UNKNOWN_AXIS in axes for axes in asked[0])
    assert len(asked) == (2 if made else 1)
    if made:
        assert len(asked[1]) == made
        assert all(axes[UNKNOWN_AXIS] == "path-rate 9 Mbit/s" for axes in asked[1])


def _ready(profile: Profile) -> Prepared:
    """A prepared experiment without an engine."""
    cells = Runs(compile_plans(profile), {"uml": {}})
    nowhere = ExperimentDirectory(Path("nowhere"))
    return Prepared(nowhere, profile, cells, True, cells.places, SweepMemory(nowhere.path))
