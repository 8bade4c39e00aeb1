# SPDX-License-Identifier: Apache-2.0
"""The measures of one flow or group in the runs that count, by repetition: the input of the sentences."""

from __future__ import annotations

from dataclasses import dataclass, field

from howdah.measure.statistics import Statistic, statistic
from howdah.metric import known_metrics
from howdah.number import between, significant
from howdah.record.metrics import MetricRow
from howdah.record.result import Run
from howdah.report.source import row_group

DIGITS = 3
EXIT, EXIT_PACKETS, CAUSE = "exit_cwnd_bdp", "exit_cwnd_packets", "exit_cause"
GROWN = "growth_end_bdp"  # of a sender whose window nobody sees
LOST, LOST_SHARE, GOODPUT = "retransmitted_packets", "retransmission_ratio", "goodput_bits_per_second"
NINETY, UTILISATION, QUEUE = "time_to_90_percent_s", "utilisation", "queue_peak_bytes"
DONE, DONE_MEDIAN, DONE_P95 = "completion_time_s", "completion_time_median_s", "completion_time_p95_s"
DONE_SHARE, CONNECTIONS, DETECTED = "completed_share", "connections", "detector_exits"
DONE_THOUGHT, DONE_THOUGHT_MEDIAN = "completion_without_think_s", "completion_without_think_median_s"
STARTUP_LEFT, STARTUP_GAIN = "startup_left", "startup_gain"
DRAINED, DRAINED_BY = "drain_end_cwnd_packets", "drain_end_cause"
HELD_BY, HELD_SHARE = "held_back_by", "held_back_share"
HELD_NUMBERS = (
    *("held_window_bytes", "idle_restart_before_packets", "idle_restart_after_packets"),
    "held_think_share",
)
# Beside the main measures nothing else is kept: there may be a hundred thousand runs.
_SAID = frozenset(
    {EXIT, EXIT_PACKETS, CAUSE, GROWN, LOST, LOST_SHARE, GOODPUT, NINETY, UTILISATION, QUEUE, DONE}
    | {DONE_MEDIAN, DONE_P95, DONE_SHARE, CONNECTIONS, DETECTED, HELD_BY, HELD_SHARE, *HELD_NUMBERS}
    | {DONE_THOUGHT, DONE_THOUGHT_MEDIAN, STARTUP_LEFT, STARTUP_GAIN, DRAINED, DRAINED_BY}
)


@dataclass
class Repeated:
    """Values by measure and repetition: numbers in the units of metrics.json, texts, and reasons for absent values;
    ``runs`` has the names of the runs by repetition."""

    numbers: dict[str, dict[int, float]] = field(default_factory=dict)
    texts: dict[str, dict[int, str]] = field(default_factory=dict)
    absent: dict[str, dict[int, str]] = field(default_factory=dict)
    runs: dict[int, str] = field(default_factory=dict)

    def add(self, repetition: int, row: MetricRow) -> None:
        name, value = row.metric, row.value
        if value is None:
            self.absent.setdefault(name, {})[repetition] = row.why or ""
        elif isinstance(value, str):
            self.texts.setdefault(name, {})[repetition] = value
        else:
            self.numbers.setdefault(name, {})[repetition] = float(value)

    def has(self, *names: str) -> bool:
        """Whether one of these measures has a number or a text in some repetition."""
        return any(name in self.numbers or name in self.texts for name in names)

    def statistic(self, name: str) -> Statistic | None:
        values = self.numbers.get(name)
        return statistic(list(values.values())) if values else None

    def median(self, name: str) -> float | None:
        found = self.statistic(name)
        return None if found is None else found.median

    def is_zero(self, name: str) -> bool:
        """Whether the measure is 0 in every repetition, not only in the median."""
        return name in self.numbers and not any(self.numbers[name].values())

    def quantity(self, name: str, *, spread: bool = True) -> str:
        """``1.15 BDP (1.12 … 1.18)``; empty if the measure has no number."""
        found = self.statistic(name)
        if found is None:
            return ""
        metric = known_metrics().get(name)
        factor, unit = (metric.factor, metric.shown) if metric else (1.0, "")
        number = significant(found.median * factor, DIGITS)
        text = f"{number} {unit.removesuffix('s') if number == '1' and unit == 'packets' else unit}".rstrip()
        about = found.about_median
        return f"{text} ({between(about.low * factor, about.high * factor, DIGITS)})" if spread and about else text

    def reasons(self, name: str) -> list[str]:
        """The distinct reasons why the measure is absent."""
        return list(dict.fromkeys(why for why in self.absent.get(name, {}).values() if why))


def repeated(runs: list[Run]) -> dict[str, Repeated]:
    """Collect the values of those runs of one variant at one point that count: by flow id, by group name, and under ""
    for the whole run."""
    found: dict[str, Repeated] = {}
    seen: set[int] = set()
    said = _SAID | {metric.name for metric in known_metrics().values() if metric.table == "main"}
    for run in runs:
        if not run.counts:
            continue
        number = run.repetition if run.repetition not in seen else max(seen) + 1  # one of another experiment
        seen.add(number)
        for row in run.metrics:
            if row.metric in said:
                of = found.setdefault(row_group(run, row).flow, Repeated())
                of.runs[number] = run.name
                of.add(number, row)
    return found
