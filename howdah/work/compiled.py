# SPDX-License-Identifier: Apache-2.0
"""Compiles the plans of all runs of a profile. Imports only what plans need, so that ``howdah plan`` starts quickly."""

from __future__ import annotations

from collections.abc import Sequence

from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.profile import Profile
from howdah.profile.profile import LongCells


def compile_plans(profile: Profile, *, engine: str | None = None, kernel: str | None = None) -> Sequence[Plan]:
    """Compile the plan of every run of a profile; ``engine`` and ``kernel`` replace the profile's own.

    Plans of a long sweep are compiled when they are asked for.
    """
    cells = profile.cells()
    if isinstance(cells, LongCells):
        from howdah.work.long import LongPlans  # and numpy

        return LongPlans(profile, cells, engine, kernel)
    return [compile_plan(cell, engine=engine, kernel=kernel) for cell in cells]


def stand_for_all(plans: Sequence[Plan]) -> Sequence[Plan]:
    """The plans; of a long sweep, those of the representative points."""
    if isinstance(plans, list):
        return plans
    from howdah.work.long import LongPlans  # and numpy

    return list(plans.some.values()) if isinstance(plans, LongPlans) else plans
