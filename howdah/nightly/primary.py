# SPDX-License-Identifier: Apache-2.0
"""Primary measures: the few that a night must be able to decide on, and how many comparisons they make in a cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from howdah.profile.model import Scenario


def _flows(scenario: Scenario) -> int:
    return len(scenario.flows)


def _sized_flows(scenario: Scenario) -> int:
    return sum(flow.size is not None for flow in scenario.flows)


def _groups(scenario: Scenario) -> int:
    return len(scenario.groups)


def _run(_scenario: Scenario) -> int:
    return 1


def _any(scenario: Scenario) -> int:
    return max(1, _flows(scenario) + _groups(scenario))


# The primary measures of a suite that names none, and how often each is there in a run.
PRIMARY: dict[str, Callable[[Scenario], int]] = {
    "exit_time_s": _flows,
    "exit_cwnd_packets": _flows,
    "exit_cause": _flows,
    "retransmitted_packets": _flows,
    "time_to_90_percent_s": _flows,
    "completion_time_s": _sized_flows,
    "utilisation": _run,
    "completion_time_median_s": _groups,
    "retransmission_ratio": _groups,
}


@dataclass(frozen=True)
class Measures:
    """Which measures of a cell are compared (``only`` these, or None for all), and which of them are primary."""

    primary: frozenset[str] = frozenset(PRIMARY)
    only: frozenset[str] | None = None

    @staticmethod
    def of(primary: Sequence[str] | None, only: Sequence[str] | None) -> Measures:
        """Of what a suite says. Whoever names the measures to compare names few: all of them are primary."""
        named = primary if primary is not None else only
        return Measures(
            frozenset(PRIMARY if named is None else named),
            frozenset(only) if only is not None else None,
        )

    def compares(self, metric: str) -> bool:
        return self.only is None or metric in self.only

    def is_primary(self, metric: str) -> bool:
        return metric in self.primary and self.compares(metric)

    def most_comparisons(self, scenario: Scenario) -> int:
        """Primary comparisons of a cell, at most, as far as its profile tells."""
        return sum(PRIMARY.get(metric, _any)(scenario) for metric in self.primary if self.compares(metric))
