# SPDX-License-Identifier: Apache-2.0
"""Whether what tells the compared algorithms apart ever acted: a detector that ended no start-up explains nothing."""

from __future__ import annotations

from howdah.algorithm import ALGORITHMS
from howdah.report.repeated import CAUSE, DETECTED, EXIT_PACKETS
from howdah.report.subject import Subject, places


def acted(said: list[Subject]) -> list[str]:
    """A sentence for each detector that some of the compared algorithms have and others lack, and that did not act."""
    algorithms = dict.fromkeys(each.algorithm for each in said)
    detectors = {name: entry.detector for name in algorithms if (entry := ALGORITHMS.get(name))}
    sentences = []
    for detector in dict.fromkeys(name for name in detectors.values() if name):
        having = {name for name, own in detectors.items() if own == detector}
        if len(having) == len(algorithms):
            continue
        mine = [each for each in said if each.algorithm in having]
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
    """None where nothing says it."""
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
