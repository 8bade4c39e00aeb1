# SPDX-License-Identifier: Apache-2.0
"""A claim that hangs on a place where its source contradicts itself."""

from __future__ import annotations

from howdah.claim.finding import FAIL, UNSUPPORTED
from howdah.profile.claim import ClaimSection


def decided(claim: ClaimSection, verdict: str, why: str) -> tuple[str, str]:
    """Verdict and why: what fails and hangs on a contradiction is *unsupported*, for no measurement can decide it."""
    if claim.contradiction is None or verdict != FAIL:
        return verdict, why
    return UNSUPPORTED, "; ".join(filter(None, (f"its source contradicts itself: {claim.contradiction}", why)))
