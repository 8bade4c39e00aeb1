# SPDX-License-Identifier: Apache-2.0
"""Claims as cells of a night: a claim is judged over all runs of its experiment, and its verdict compared."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from howdah.claim.finding import DEPENDS, DIFFERS, FAIL, IMPLEMENTED, PASS
from howdah.errors import HowdahError
from howdah.nightly.cell import CellResult
from howdah.nightly.change import Comparison, Outcome
from howdah.nightly.sheet import ClaimSheet, NightSheet, empty_sheet
from howdah.nightly.suite import SuiteExperiment
from howdah.work.judged import judged_claims
from howdah.work.results import read_results

# From the worst. What differs fails, but passes with what the kernel does otherwise undone. Others tell nothing.
_ORDER = (FAIL, DEPENDS, DIFFERS, IMPLEMENTED, PASS)


def read_claims(series: SuiteExperiment, directory: Path) -> NightSheet:
    """The sheet of an experiment whose claims are asked for. Raises HowdahError where they cannot be judged."""
    judged = judged_claims(directory)
    if judged is None:
        raise HowdahError("the profile of this experiment makes no claims", where=str(directory))
    runs = {run.name: run for run in read_results(directory).runs}
    sheet = empty_sheet(series)
    for run in runs.values():
        kernel = run.provenance.kernel
        sheet.release = kernel.release or sheet.release
        sheet.image = kernel.image_sha256 or sheet.image
    for claim in judged.claims:
        if claim.id not in (series.claims or ()):
            continue
        wall_s = sum(float(runs[name].provenance.wall_s or 0.0) for name in claim.runs if name in runs)
        measured = claim.measured.text if claim.measured else ""
        sheet.claims[claim.id] = ClaimSheet(claim.verdict, claim.says, measured, claim.why, wall_s)
    return sheet


def compare_claims(before: NightSheet | None, after: NightSheet, wanted: Sequence[str]) -> list[CellResult]:
    """A cell for each claim that is asked for."""
    then = before.claims if before is not None else {}
    return [_compare(before, after, name, then.get(name)) for name in wanted]


def gone_claims(baseline: NightSheet, asked: Sequence[str]) -> list[CellResult]:
    """Claims of the baseline that the suite does not ask for any more."""
    return [_cell(baseline, name, is_gone=True) for name in baseline.claims if name not in asked]


def _compare(before: NightSheet | None, after: NightSheet, name: str, then: ClaimSheet | None) -> CellResult:
    result = _cell(after, name)
    result.problem = after.problem
    result.was_built = before is not None and before.problem is None
    now = after.claims.get(name)
    if after.problem is not None or now is None:
        if after.problem is None:
            result.untold = "the claim was not judged"
        return result
    result.wall_s = now.wall_s
    if then is None:
        result.is_new = True
        result.notes.append(f"{now.verdict}: {now.measured or now.why}")
        return result
    if now.verdict not in _ORDER or then.verdict not in _ORDER:
        if now.verdict != then.verdict:
            result.untold = f"the claim is {now.verdict}, and was {then.verdict}: {now.why or then.why}"
            return result
        result.notes.append(f"{now.verdict}, as in the baseline: {now.why}")
    outcome: Outcome = "equal"
    if now.verdict != then.verdict:
        outcome = "regression" if _ORDER.index(now.verdict) < _ORDER.index(then.verdict) else "improvement"
    elif now.measured != then.measured:
        outcome = "unchanged"
    old, new = (f"{each.verdict} ({each.measured})" if each.measured else each.verdict for each in (then, now))
    result.comparisons.append(Comparison("claim", "", "", 1, old, new, is_primary=True, outcome=outcome))
    return result


def _cell(sheet: NightSheet, name: str, *, is_gone: bool = False) -> CellResult:
    return CellResult(sheet.experiment, name, sheet.item, sheet.kernel, "", "", is_gone=is_gone, is_claim=True)
