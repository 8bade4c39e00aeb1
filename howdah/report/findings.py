# SPDX-License-Identifier: Apache-2.0
"""The findings in a few sentences, for the top of a page and the end of a command.

The sentences answer the profile: how long transfers take if they have a size (completion.py), else where flows left
their start-up (startup.py). Sides are compared at the same place of the sweep (ratio.py). Then come sentences on
detectors that never acted, and on swept fields and variants that made no difference.
"""

from __future__ import annotations

from collections import Counter

from howdah.algorithm import ALGORITHMS
from howdah.number import listed
from howdah.report.completion import completion, is_transfer
from howdah.report.heldback import held_over
from howdah.report.plot.swept import field_name
from howdah.report.repeated import CAUSE, DETECTED, EXIT_PACKETS
from howdah.report.startup import has_exit, has_start, startup
from howdah.report.subject import Subject, places, subjects_of
from howdah.report.table import Block, Table


def findings(table: Table) -> list[str]:
    """Return the sentences, at least one: what the runs show, then what limits it."""
    subjects = subjects_of(table)
    transfers = [each for each in subjects if is_transfer(each)]
    flows = [each for each in subjects if has_start(each)]
    if transfers and not any(has_exit(each) for each in flows):
        flows = [each for each in flows if not is_transfer(each)]
    told = {id(each) for each in flows}
    held = held_over([each for each in transfers if id(each) not in told], left=True)
    others = [each for each in subjects if not is_transfer(each)]
    sentences = [*completion(transfers, others), *held, *startup(flows), *acted(subjects), *without_effect(subjects)]
    if any(" … " in sentence for sentence in sentences):
        sentences.append(f"In brackets: {table.spread_words}.")
    sentences += [*table.cautions, *_modelled(table), *_left_out(table)]
    return list(dict.fromkeys(sentences)) or ["No run has a number that says how the flows started."]


def _modelled(table: Table) -> list[str]:
    """Say which numbers come from a simulator."""
    if not table.models:
        return []
    names = listed(list(table.models))
    if table.all_modelled:
        return [f"No kernel ran: the numbers are those of a {names}."]
    return [f"Some of the numbers are those of a {names}, where no kernel ran."]


def _left_out(table: Table) -> list[str]:
    """Say how many runs do not count, and why."""
    blocks: list[Block] = [block for _, blocks in table.points for block in blocks]
    out = [each for block in blocks for each in block.excluded]
    if not out:
        return []
    total = sum(block.total for block in blocks)
    verdicts = Counter(verdict for _, verdict, _ in out)
    counts = listed([f"{count} {verdict}" for verdict, count in verdicts.most_common()])
    reasons = list(dict.fromkeys(why for _, _, why in out if why))
    why = f" ({reasons[0]}{' and others' if len(reasons) > 1 else ''})" if reasons else ""
    if len(out) == total:
        return [f"No run counts, so nothing is said of the algorithms: {counts}{why}."]
    return [f"{len(out)} of {total} runs do not count: {counts}{why}."]


def acted(subjects: list[Subject]) -> list[str]:
    """A sentence for each detector that some but not all of the compared algorithms have, and that never acted."""
    algorithms = dict.fromkeys(each.algorithm for each in subjects)
    detectors = {name: entry.detector for name in algorithms if (entry := ALGORITHMS.get(name))}
    sentences = []
    for detector in dict.fromkeys(name for name in detectors.values() if name):
        having = {name for name, own in detectors.items() if own == detector}
        if len(having) == len(algorithms):
            continue
        mine = [each for each in subjects if each.algorithm in having]
        known = {place: _acted([each for each in mine if each.place == place]) for place in places(mine)}
        never = [place for place, ended in known.items() if ended is False]
        if not never:
            continue
        here = ""
        if len(never) < len(known):
            few = ", ".join(never[:2]) + (" and others" if len(never) > 2 else "")
            here = f" at {len(never)} of {len(known)} sweep points ({few})"
        sentences.append(f"{detector} ended no start-up of a measured flow{here or ' here'}.")
    return sentences


def _acted(mine: list[Subject]) -> bool | None:
    """Whether a detector of these subjects acted; None if the runs do not say."""
    told = False
    for each in mine:
        ends_by = ALGORITHMS[each.algorithm].ends_by
        if any(cause in ends_by for cause in each.of.texts.get(CAUSE, {}).values()):
            return True
        if any(each.whole.numbers.get(DETECTED, {}).values()):
            return True
        told |= DETECTED in each.whole.numbers or CAUSE in each.of.texts or _stayed(each)
    return False if told else None


def _stayed(each: Subject) -> bool:
    """Whether its runs looked for an exit and found none."""
    return EXIT_PACKETS in each.of.absent


_Same = tuple[object, ...]


def without_effect(subjects: list[Subject]) -> list[str]:
    """A sentence for each swept field, and one for the variants, if all of its values gave the same numbers."""
    sentences = []
    for name in dict.fromkeys(name for each in subjects for name in each.axes):
        values = _if_equal([(_rest(each, name), each.axes.get(name, ""), each) for each in subjects])
        if values:
            what = field_name(name)
            what = what if "_" in what or "." in what else f"{what[0].upper()}{what[1:]}"  # a name stays as it is
            sentences.append(f"{what} made no difference: {listed(values)} give the same numbers.")
    variants = _if_equal([((each.name, *each.axes.items()), each.variant, each) for each in subjects])
    if variants:
        sentences.append(f"{listed(variants)} give the same numbers{' at every point' if subjects[0].axes else ''}.")
    return sentences


def _rest(each: Subject, name: str) -> _Same:
    return (each.variant, each.name, *(item for item in each.axes.items() if item[0] != name))


def _if_equal(cases: list[tuple[_Same, str, Subject]]) -> list[str]:
    """Return the values if there are several and each gives the same results whenever everything else is equal; else
    nothing."""
    rows: dict[_Same, dict[str, object]] = {}
    for rest, value, each in cases:
        whole = {name: numbers for name, numbers in each.whole.numbers.items() if name != DETECTED}  # no outcome
        rows.setdefault(rest, {})[value] = (each.of.numbers, each.of.texts, whole)
    values = list(dict.fromkeys(value for row in rows.values() for value in row))
    if len(values) < 2 or not any(each.of.numbers for _, _, each in cases):
        return []
    equal = all(len(row) == len(values) and all(one == row[values[0]] for one in row.values()) for row in rows.values())
    return values if equal else []
