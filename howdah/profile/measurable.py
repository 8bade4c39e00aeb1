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
    """What some metrics come from: whether a scenario has it, and what to say if not. They are those of a module below
    howdah/measure/, or the ``named`` ones."""

    module: str
    has: Callable[[Scenario], bool]
    lacks: str
    named: frozenset[str] = frozenset()


def _has_processors(scenario: Scenario) -> bool:
    return any(end.processor.is_there for end in (scenario.sender, scenario.receiver))


def _has_background(scenario: Scenario) -> bool:
    return bool(scenario.background) or any(group.role == "background" for group in scenario.groups)


def _has_flows(scenario: Scenario) -> bool:
    return bool(scenario.flows)


def _has_size(scenario: Scenario) -> bool:
    measured = [group for group in scenario.groups if group.role == "measured"]
    drawn = any(group.http or group.web or group.mix or group.sizes for group in measured)
    sizes = [*(flow.size for flow in scenario.flows), *(group.size for group in measured)]
    return drawn or any(size is not None for size in sizes)


_GROUPS_ALONE = "it is of flows, and the profile has groups alone"
_OF_A_FLOW = frozenset(
    {"overshoot_packets", "peak_cwnd_packets", "dropped_packets", "first_loss_retransmitted_packets", "blackout_s"}
    | {"time_to_90_percent_s", "min_rtt_us", "max_rtt_us", "receive_window_limited_s", "window_cuts"}
    | {"time_to_cwnd_s", "rounds_to_cwnd", "window_open_time_s", "window_open_sent_bytes"}
)
_OF_A_SIZE = frozenset(
    {"completion_time_s", "transfer_time_s", "completed_share"}
    | {f"completion_time_{share}_s" for share in ("p10", "p25", "median", "p75", "p90", "p95", "p99")}
)
_NEEDS = (
    _Need("receiver", lambda scenario: bool(scenario.collect.pcap), "collect.pcap names no interface of a receiver"),
    _Need("cpu", lambda scenario: scenario.collect.cpu, "collect.cpu is off"),
    _Need("processor", lambda scenario: scenario.collect.cpu, "collect.cpu is off"),
    _Need("host_processor", _has_processors, "no host of the profile has a processor"),
    _Need("group", lambda scenario: bool(scenario.groups), "the profile has no group"),
    _Need("transaction", lambda scenario: bool(scenario.groups), "the profile has no group"),
    _Need("exit_rows", _has_flows, _GROUPS_ALONE, _OF_A_FLOW),
    _Need("course", _has_flows, _GROUPS_ALONE),
    _Need("recovery", _has_flows, _GROUPS_ALONE),
    _Need("limit", _has_flows, _GROUPS_ALONE),
    _Need("", _has_size, "no flow or group of the profile has a size", _OF_A_SIZE),
    _Need("role", _has_background, "the profile has no background"),
)
# What says nearly the same, and is always measured.
_INSTEAD = {
    "autotuning_lag_s": "held_autotuning_share",
    "offered_window_most_bdp": "receive_window_peak_bytes",
    "completion_without_think_s": "completion_time_s",
    "completion_time_median_s": "completion_time_s",
    "completion_time_s": "goodput_bits_per_second",
    "transfer_time_s": "goodput_bits_per_second",
}


def not_measurable(metric: Metric, scenarios: Sequence[Scenario]) -> tuple[str, str | None] | None:
    """Why no run of the scenarios has the metric, and the nearest one that they have; None if one may have it.

    A metric of several modules is there if one of them has what it needs.
    """
    lacking = [need for need in _NEEDS if not any(need.has(scenario) for scenario in scenarios)]
    why = _lacks(metric, lacking)
    if why is None:
        return None
    there = [name for name, each in known_metrics().items() if _lacks(each, lacking) is None]
    instead = _INSTEAD.get(metric.name)
    return why, instead if instead in there else nearest(metric.name, there)


def _lacks(metric: Metric, lacking: Sequence[_Need]) -> str | None:
    missing = {f"howdah.measure.{need.module}": need.lacks for need in lacking}
    if metric.modules and all(module in missing for module in metric.modules):
        return missing[metric.modules[0]]
    return next((need.lacks for need in lacking if metric.name in need.named), None)
