# SPDX-License-Identifier: Apache-2.0
"""The README's numbers are those of present code: the first repetition of each of its algorithms, run again."""

from __future__ import annotations

import json

import pytest

from howdah.profile import load
from howdah.record.result import load_run
from howdah.work.compiled import compile_plans
from tests.guest.guest_run import require_engine
from tests.guest.shared_run import shared_run
from tests.readme import GOLDEN, PROFILE, REMEDY, measures

pytestmark = pytest.mark.guest


@pytest.mark.parametrize("algorithm", ["cubic-no-hystart", "cubic", "reno", "bbr"])
def test_a_run_of_today_has_the_measures_behind_the_readme(algorithm: str) -> None:
    """To the last digit: virtual time knows no other."""
    plan = next(plan for plan in compile_plans(load(PROFILE)) if plan.run == f"{algorithm}-r0")
    directory, _ = shared_run(require_engine(), plan)
    again = json.loads(json.dumps(measures(load_run(directory.path, plan.profile))))
    assert again == json.loads(GOLDEN.read_text(encoding="utf-8"))[plan.run], REMEDY
