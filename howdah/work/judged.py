# SPDX-License-Identifier: Apache-2.0
"""The claims of an experiment over results that are up to date."""

from __future__ import annotations

from pathlib import Path

from howdah.claim.claims import judge_claims, judged_with
from howdah.record.claims import CLAIMS_NAME, ClaimsFile
from howdah.work.results import Tell, bring_up_to_date, say


def judged_claims(path: Path, profile: Path | None = None, tell: Tell = say) -> ClaimsFile | None:
    """Judge the claims of an experiment and write claims.json; its content, or None without claims.

    The claims are those of ``profile``, by default of the profile with which the experiment was run.
    """
    bring_up_to_date(path, tell)
    return judge_claims(path, profile)


def renew_claims(path: Path) -> None:
    """Judge an experiment's claims again where claims.json is there, so that what is shown of them is not stale."""
    if (path / CLAIMS_NAME).exists():
        judge_claims(path, judged_with(path))
