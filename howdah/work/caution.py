# SPDX-License-Identifier: Apache-2.0
"""What a profile's runs will not show, or show of something else: said before they are made."""

from __future__ import annotations

from collections.abc import Sequence

from howdah.measure.presence import unmeasured_claims
from howdah.plan.caution import plan_cautions
from howdah.plan.plan import Plan
from howdah.profile import Profile


def cautions(profile: Profile, plans: Sequence[Plan]) -> list[str]:
    """Sentences, from the plans; of a long sweep from those that are compiled."""
    known = plans
    if not isinstance(plans, list):
        from howdah.work.long import LongPlans  # and numpy

        known = list(plans.some.values()) if isinstance(plans, LongPlans) else plans
    return [*plan_cautions(known), *unmeasured_claims(profile.claims, known)]
