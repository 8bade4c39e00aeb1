# SPDX-License-Identifier: Apache-2.0
"""Compares tonight's cells with the baseline's, measure by measure, in pairs of the same repetition; and claims as
cells, each judged over all runs of its experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from howdah.claim.finding import DEPENDS, DIFFERS, FAIL, IMPLEMENTED, PASS
from howdah.errors import HowdahError
from howdah.nightly.change import LEAST_PAIRS, CellResult, Comparison, Outcome, compare_exactly, compare_measure
from howdah.nightly.sheet import CellSheet, ClaimSheet, NightSheet, Repetition, empty_sheet
from howdah.nightly.significance import Measures, is_left_out, is_processor_time
from howdah.nightly.suite import SuiteExperiment
from howdah.work.results import judged_claims, read_results

Pair = tuple[Repetition, Repetition]  # baseline, tonight


def compare_sheets(
    baseline: NightSheet | None, tonight: NightSheet, slugs: list[str], measures: Measures | None = None
) -> list[CellResult]:
    """Return the results of the suite's cells of an experiment.

    Comparisons with a p-value have no outcome yet, because it depends on all cells' p-values.
    """
    found = []
    of_baseline = baseline.cells if baseline is not None else {}
    units = {**(baseline.units if baseline is not None else {}), **tonight.units}
    was_built = baseline is not None and baseline.problem is None
    for slug in slugs:
        before, after = of_baseline.get(slug), tonight.cells.get(slug)
        cell = after or before or CellSheet({}, "", "")
        result = CellResult(
            tonight.experiment, slug, tonight.item, tonight.kernel, cell.algorithm, cell.receiver, cell.axes
        )
        result.problem, result.was_built = tonight.problem, was_built
        if tonight.problem is None:
            result.wall_s = sum(each.wall_s for each in after.repetitions.values()) if after is not None else 0.0
            _compare_cell(before, after, units, measures or Measures(), result)
        else:
            result.wall_s = tonight.prepare_s / len(slugs)
        found.append(result)
    return found


def gone_cells(baseline: NightSheet, slugs: list[str]) -> list[CellResult]:
    """Cells of the baseline that are no longer in the suite."""
    return [
        CellResult(
            *(baseline.experiment, slug, baseline.item, baseline.kernel, cell.algorithm, cell.receiver, cell.axes),
            is_gone=True,
        )
        for slug, cell in baseline.cells.items()
        if slug not in slugs
    ]


def _compare_cell(
    before: CellSheet | None, after: CellSheet | None, units: dict[str, str], measures: Measures, result: CellResult
) -> None:
    there = after.repetitions if after is not None else {}
    if before is None:
        result.is_new = True
        bad = [
            f"repetition {number} is {each.verdict}: {each.why}" for number, each in there.items() if not each.counts
        ]
        result.notes += bad
        return
    for number, each in sorted(before.repetitions.items()):
        now = there.get(number)
        if each.counts and (now is None or not now.counts):
            what = f"is {now.verdict}: {now.why}" if now is not None else "was not made"
            result.broken.append(f"repetition {number} {what}")
    pairs = [
        (each, there[number])
        for number, each in sorted(before.repetitions.items())
        if number in there and each.counts and there[number].counts and each.seed == there[number].seed
    ]
    result.pairs = len(pairs)
    if after is None or len(pairs) < LEAST_PAIRS:
        result.untold = f"only {len(pairs)} repetitions are in both nights with the same seed: too few to compare"
        return
    relation = relate(before, after, pairs)
    result.notes += relation.notes
    for name in dict.fromkeys(name for pair in pairs for each in pair for name in each.metrics):
        result.comparisons += _compare(name, pairs, units, measures, relation)


@dataclass(frozen=True)
class Relation:
    """How two nights of a cell are related. ``otherwise`` is the meaning of a difference if there must be none; None if
    another kernel, another plan or real time may cause differences."""

    otherwise: Outcome | None
    notes: list[str]


def relate(before: CellSheet, after: CellSheet, pairs: list[Pair]) -> Relation:
    """Compare what produced the runs.

    Runs with the same key, on a virtual clock, have equal tables. Runs of the same plan in the same guest differ only
    if howdah's code in that guest does, and measures of equal tables differ only if the analysis does.
    """
    then, now = before.origin, after.origin
    same_key = all(left.key and left.key == right.key for left, right in pairs)
    same_plan = all(left.plan and left.plan == right.plan for left, right in pairs)
    same_guest = bool(then.guest) and then.guest == now.guest and then.engine == now.engine
    parts = (("the analysis", then.analysis, now.analysis), ("the agent in the guest", then.agent, now.agent))
    changed = [part for part, old, new in parts if old and new and old != new]
    notes = []
    if changed:
        what = " and ".join(changed)
        notes.append(f"howdah itself has changed since the baseline ({what}): it may be the cause of differences")
    if any(left.plan and right.plan and left.plan != right.plan for left, right in pairs):
        notes.append("the plan differs from the baseline's: it was run with other settings")
    is_virtual = then.virtual_clock and now.virtual_clock
    agent_alone = same_guest and same_plan and then.agent != now.agent
    if not is_virtual or not (same_key or agent_alone):
        return Relation(None, notes)
    return Relation("howdah changed" if changed else "not repeatable", notes)


def _compare(
    name: str, pairs: list[Pair], units: dict[str, str], measures: Measures, relation: Relation
) -> list[Comparison]:
    metric = name.partition("@")[0]
    if is_left_out(metric) or not measures.compares(metric):
        return []
    unit = units.get(metric, "")
    values = [(left.metrics.get(name), right.metrics.get(name)) for left, right in pairs]
    if relation.otherwise is None or is_processor_time(metric):
        found = compare_measure(name, unit, values)
    else:
        unknown_before = not any(name in left.metrics for left, _ in pairs)
        is_added = relation.otherwise == "howdah changed" and unknown_before
        found = compare_exactly(name, unit, values, "appeared" if is_added else relation.otherwise)
    for each in found:
        each.is_primary = measures.is_primary(metric)
    return found


# Verdicts from the worst to the best; others cannot be ranked. DIFFERS passes once a known kernel change is undone.
_ORDER = (FAIL, DEPENDS, DIFFERS, IMPLEMENTED, PASS)


def read_claims(series: SuiteExperiment, directory: Path) -> NightSheet:
    """Return the sheet of an experiment whose claims are compared. Raises HowdahError if they cannot be judged."""
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
    """Return a cell for each claim in ``wanted``."""
    then = before.claims if before is not None else {}
    return [_compare_claim(before, after, name, then.get(name)) for name in wanted]


def gone_claims(baseline: NightSheet, asked: Sequence[str]) -> list[CellResult]:
    """Claims of the baseline that are no longer in the suite."""
    return [_cell(baseline, name, is_gone=True) for name in baseline.claims if name not in asked]


def _compare_claim(before: NightSheet | None, after: NightSheet, name: str, then: ClaimSheet | None) -> CellResult:
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
