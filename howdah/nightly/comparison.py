# SPDX-License-Identifier: Apache-2.0
"""A cell of tonight against the same cell of the baseline, measure by measure, in pairs of equal repetitions."""

from __future__ import annotations

from dataclasses import dataclass

from howdah.nightly.cell import CellResult
from howdah.nightly.change import LEAST_PAIRS, Comparison, Outcome, compare_exactly, compare_measure
from howdah.nightly.effect import is_left_out, is_processor_time
from howdah.nightly.primary import Measures
from howdah.nightly.sheet import CellSheet, NightSheet, Repetition

Pair = tuple[Repetition, Repetition]  # baseline, tonight


def compare_sheets(
    baseline: NightSheet | None, tonight: NightSheet, slugs: list[str], measures: Measures | None = None
) -> list[CellResult]:
    """The cells that the suite asks of an experiment.

    Comparisons have no outcome yet where they have a p-value: that takes those of all cells.
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
    """Cells of the baseline that the suite does not ask for any more."""
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
        result.untold = f"only {len(pairs)} repetitions are in both nights with the same seed: nothing to compare"
        return
    relation = relate(before, after, pairs)
    result.notes += relation.notes
    for name in dict.fromkeys(name for pair in pairs for each in pair for name in each.metrics):
        result.comparisons += _compare(name, pairs, units, measures, relation)


@dataclass(frozen=True)
class Relation:
    """How two nights of a cell are related. ``otherwise`` is what a difference means where there must be none, None
    where another kernel or plan, or time that is not simulated, may make one."""

    otherwise: Outcome | None
    notes: list[str]


def relate(before: CellSheet, after: CellSheet, pairs: list[Pair]) -> Relation:
    """Compare what the runs were made of.

    Runs of the same key, on a virtual clock, have equal tables. Runs of the same plan in the same guest differ only
    where howdah's own code in that guest does, and measures of equal tables only where the analysis does.
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
        notes.append(f"howdah itself has changed since the baseline ({what}): a difference may be its own")
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
