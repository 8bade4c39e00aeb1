# SPDX-License-Identifier: Apache-2.0
"""Which metrics a profile cannot measure, whatever its runs show: what they come from is not recorded, or not there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from howdah.errors import nearest
from howdah.metric import Metric, known_metrics
from howdah.profile.model import Scenario


@dataclass(frozen=True)
class _Need:
    """What metrics of a module below howdah/measure/ come from: whether a scenario has it, and what to say if not."""

    module: str
    has: Callable[[Scenario], bool]
    lacks: str


def _has_processors(scenario: Scenario) -> bool:
    return any(end.processor.is_there for end in (scenario.sender, scenario.receiver))


def _has_background(scenario: Scenario) -> bool:
    return bool(scenario.background) or any(group.role == "background" for group in scenario.groups)


_NEEDS = (
    _Need("receiver", lambda scenario: bool(scenario.collect.pcap), "collect.pcap names no interface of a receiver"),
    _Need("cpu", lambda scenario: scenario.collect.cpu, "collect.cpu is off"),
    _Need("processor", lambda scenario: scenario.collect.cpu, "collect.cpu is off"),
    _Need("host_processor", _has_processors, "no host of the profile has a processor"),
    _Need("group", lambda scenario: bool(scenario.groups), "the profile has no group"),
    _Need("transaction", lambda scenario: bool(scenario.groups), "the profile has no group"),
    _Need("role", _has_background, "the profile has no background"),
)
# What says nearly the same, and is always measured.
_INSTEAD = {
    "autotuning_lag_s": "held_autotuning_share",
    "offered_window_most_bdp": "receive_window_peak_bytes",
    "completion_without_think_s": "completion_time_s",
    "completion_time_median_s": "completion_time_s",
}


def not_measurable(metric: Metric, scenarios: Sequence[Scenario]) -> tuple[str, str | None] | None:
    """Why no run of the scenarios has the metric, and the nearest one that they have; None if one may have it.

    A metric of several modules is there if one of them has what it needs.
    """
    lacking = [need for need in _NEEDS if not any(need.has(scenario) for scenario in scenarios)]
    missing = {f"howdah.measure.{need.module}": need.lacks for need in lacking}
    if not metric.modules or any(module not in missing for module in metric.modules):
        return None
    there = [name for name, each in known_metrics().items() if any(module not in missing for module in each.modules)]
    return missing[metric.modules[0]], _INSTEAD.get(metric.name) or nearest(metric.name, there)
