# SPDX-License-Identifier: Apache-2.0
"""The README's numbers and its picture are those of present code: first repetitions of its algorithms, run again."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.profile import load
from howdah.record.digest import seal
from howdah.record.directory import RunDirectory
from howdah.record.provenance import analysis_sha256, first_record
from howdah.record.result import load_run
from howdah.work.compiled import compile_plans
from tests.browser.conftest import MISSING, browser_program
from tests.browser.picture import differs, take
from tests.guest.guest_run import require_engine
from tests.guest.shared_run import shared_run
from tests.readme import GOLDEN, PROFILE, REMEDY, ROOT, measures

pytestmark = pytest.mark.guest

PICTURE = ROOT / "docs/figures/start-up.png"


@pytest.mark.parametrize("algorithm", ["cubic-no-hystart", "cubic", "reno", "bbr"])
def test_a_run_of_today_has_the_measures_behind_the_readme(algorithm: str) -> None:
    """To the last digit: virtual time knows no other."""
    plan = next(plan for plan in compile_plans(load(PROFILE)) if plan.run == f"{algorithm}-r0")
    directory, _ = shared_run(require_engine(), plan)
    again = json.loads(json.dumps(measures(load_run(directory.path, plan.profile))))
    assert again == json.loads(GOLDEN.read_text(encoding="utf-8"))[plan.run], REMEDY


def test_the_readmes_picture_is_what_the_runs_of_today_show(tmp_path: Path) -> None:
    if browser_program() is None:
        pytest.skip(MISSING)
    plans = {plan.run: plan for plan in compile_plans(load(PROFILE))}
    engine = require_engine()
    runs = [shared_run(engine, plans[f"{algorithm}-r0"])[0] for algorithm in ("cubic", "cubic-no-hystart")]
    places = []
    for run, name in zip(runs, ("cubic-r0", "cubic-no-hystart-r0"), strict=True):
        copy = RunDirectory(shutil.copytree(run.path, tmp_path / "runs" / name))
        record = first_record(copy.plan.read_text(encoding="utf-8"), "k")
        seal(copy, record.replaced(status="finished", analysis_sha256=analysis_sha256()))
        places.append(str(copy.path))
    page, picture = tmp_path / "start-up.html", tmp_path / "start-up.png"
    assert main(["compare", *places, "--without-prometheus", "--output", str(page)]) == 0
    take(page, picture)
    assert differs(PICTURE, picture) == [], REMEDY
