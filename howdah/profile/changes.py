# SPDX-License-Identifier: Apache-2.0
"""How often a path changes during a run, counted before anything is drawn: a plan holds every change."""

from __future__ import annotations

from collections.abc import Iterable

from howdah.errors import ProfileError
from howdah.profile.dotted import dotted
from howdah.profile.model import Scenario
from howdah.profile.source import Document, Path_
from howdah.profile.varying import JITTER_INTERVAL_US, MOST_CHANGES

MOST_CHANGES_TOGETHER = 2_000_000


def count_changes(scenario: Scenario) -> dict[Path_, int]:
    """The changes that each field asks for at the most, by the field's place. A trace counts its own."""
    path = scenario.path
    counts: dict[Path_, int] = {("path", "schedule"): len(path.schedule)}
    if path.delay_variation is not None:
        directions = 2 if path.delay_variation.direction == "both" else 1
        counts["path", "delay_variation"] = directions * _times(scenario, path.delay_variation.interval)
    if path.rate_variation is not None:
        counts["path", "rate_variation"] = _times(scenario, path.rate_variation.interval)
    if path.handover is not None:
        each = 6 if path.handover.outage else 2  # the delay both ways; loss both ways, begun and ended
        counts["path", "handover"] = each * _times(scenario, path.handover.every)
    if scenario.perturbation.jitter.amount and scenario.repetitions > 1:
        counts["perturbation", "jitter"] = _times(scenario, JITTER_INTERVAL_US)
    return counts


def _times(scenario: Scenario, interval_us: int) -> int:
    return -(-scenario.duration // interval_us)


def check_changes(scenario: Scenario, document: Document) -> None:
    """Refuse a run whose path changes very often. Raises ProfileError at the field that asks for most of it."""
    counts = count_changes(scenario)
    total = sum(counts.values())
    if total <= MOST_CHANGES:
        return
    place = max(counts, key=lambda each: counts[each])
    what = f"{dotted(place)}: the path would change {total} times in a run, more than {MOST_CHANGES}"
    hint = "make the time between changes longer, or duration shorter"
    raise ProfileError(what, where=document.place(place), hint=hint)


def check_changes_together(runs: Iterable[tuple[Scenario, int]], document: Document) -> None:
    """Refuse a sweep whose plans would not fit into memory together; ``runs`` are scenarios and how often each is run.

    Raises ProfileError.
    """
    total = sum(sum(count_changes(scenario).values()) * count for scenario, count in runs)
    if total > MOST_CHANGES_TOGETHER:
        what = f"in all runs together the path would change {total} times, more than {MOST_CHANGES_TOGETHER}"
        hint = "split the profile, make the time between changes longer, or duration shorter"
        raise ProfileError(what, where=document.place(("path",)), hint=hint)
