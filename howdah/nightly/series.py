# SPDX-License-Identifier: Apache-2.0
"""Nights as series for Prometheus: how each measure of each cell moves against the baseline, night by night."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from howdah.nightly.cell import CellResult
from howdah.nightly.night import Night
from howdah.profile import Profile
from howdah.publish.metric import Families, MetricSamples, PublishedMetric

_CELL = ("suite", "experiment", "cell", "item", "kernel", "algorithm", "receiver")
_MEASURE = (*_CELL, "measure", "flow", "number")

METRICS: tuple[PublishedMetric, ...] = (
    PublishedMetric("howdah_nightly_cells", "gauge", "Cells of the suite by state.", ("suite", "state")),
    PublishedMetric("howdah_nightly_comparisons", "gauge", "Comparisons tested in the night.", ("suite",)),
    PublishedMetric("howdah_nightly_duration_seconds", "gauge", "Wall time of the night.", ("suite",)),
    PublishedMetric(
        "howdah_nightly_end_timestamp_seconds", "gauge", "When the night ended, in seconds since 1970.", ("suite",)
    ),
    PublishedMetric("howdah_nightly_regressed", "gauge", "1 if the cell fails the night, else 0.", _CELL),
    PublishedMetric("howdah_nightly_state", "gauge", "1 for the state of the cell.", (*_CELL, "state")),
    PublishedMetric(
        "howdah_nightly_cell_duration_seconds", "gauge", "Wall time that the runs of the cell took.", _CELL
    ),
    PublishedMetric("howdah_nightly_measures", "gauge", "Comparisons of the cell by outcome.", (*_CELL, "outcome")),
    PublishedMetric(
        "howdah_nightly_change_ratio",
        "gauge",
        "Mean of the measure tonight less that of the baseline, as a share of the latter.",
        _MEASURE,
    ),
    PublishedMetric("howdah_nightly_p_value", "gauge", "Corrected p-value of the measure's change.", _MEASURE),
)
_CELLS, _TESTS, _DURATION, _END, _REGRESSED, _STATE, _TIME, _MEASURES, _CHANGE, _P = METRICS


def families(night: Night) -> Families:
    """One sample of each series, at the end of the night."""
    at = [round(datetime.fromisoformat(night.ended).timestamp() * 1000)]
    suite = {"suite": night.suite.name}
    found: Families = {
        _CELLS: [MetricSamples({**suite, "state": state}, at, [float(n)]) for state, n in sorted(night.states.items())],
        _TESTS: [MetricSamples(suite, at, [float(night.tests)])],
        _DURATION: [MetricSamples(suite, at, [night.wall_s])],
        _END: [MetricSamples(suite, at, [at[0] / 1000])],
    }
    names = {one.name: _flow_names(one.profile) for one in night.suite.series}
    for cell in night.cells:
        labels = {**suite, **_labels(cell)}
        values = [(_REGRESSED, {}, float(night.fails(cell))), *_values(cell, names.get(cell.experiment, {}))]
        for metric, more, value in values:
            found.setdefault(metric, []).append(MetricSamples({**labels, **more}, at, [value]))
    return found


def _labels(cell: CellResult) -> dict[str, str]:
    found = {"experiment": cell.experiment, "cell": cell.slug, "item": cell.item, "kernel": cell.kernel}
    return found | {"algorithm": cell.algorithm, "receiver": cell.receiver}


def _flow_names(profile: Profile) -> dict[str, str]:
    """Names of a profile's flows by their numbers, as a night writes them."""
    flows = profile.points[0].scenario.flows
    return {str(number): flow.name or f"flow{number}" for number, flow in enumerate(flows, start=1)}


def _flow_labels(flow: str, names: dict[str, str]) -> dict[str, str]:
    """Those that runs have: a flow's name and number, or the name of a group, or none for the whole run."""
    if flow in names:
        return {"flow": names[flow], "number": flow}
    return {"flow": flow} if flow else {}


def _values(cell: CellResult, names: dict[str, str]) -> Iterator[tuple[PublishedMetric, dict[str, str], float]]:
    yield _STATE, {"state": cell.state}, 1.0
    yield _TIME, {}, cell.wall_s
    for outcome, count in sorted(Counter(each.outcome for each in cell.comparisons).items()):
        yield _MEASURES, {"outcome": outcome}, float(count)
    least: dict[tuple[str, str], float] = {}  # a measure that is missing here and there is compared twice
    for each in cell.comparisons:
        labels = {"measure": each.metric} | _flow_labels(each.flow, names)
        if isinstance(each.baseline, float) and each.difference is not None and each.baseline:
            change = each.difference / abs(each.baseline)
            if math.isfinite(change):
                yield _CHANGE, labels, change
        if each.adjusted is not None:
            name = (each.metric, each.flow)
            least[name] = min(each.adjusted, least.get(name, 1.0))
    for (measure, flow), p in least.items():
        yield _P, {"measure": measure} | _flow_labels(flow, names), p
