# SPDX-License-Identifier: Apache-2.0
"""Nights as series for Prometheus: how each measure of each cell moves against the baseline, night by night."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime

from howdah.nightly.comparison import CellResult
from howdah.nightly.night import Night
from howdah.publish.metric import Metric
from howdah.publish.openmetrics import Families, Samples

_CELL = ("suite", "experiment", "cell", "item", "kernel", "algorithm", "receiver")
_MEASURE = (*_CELL, "measure", "flow")

METRICS: tuple[Metric, ...] = (
    Metric("howdah_nightly_cells", "gauge", "Cells of the suite by state.", ("suite", "state")),
    Metric("howdah_nightly_comparisons", "gauge", "Comparisons tested in the night.", ("suite",)),
    Metric("howdah_nightly_duration_seconds", "gauge", "Wall time of the night.", ("suite",)),
    Metric("howdah_nightly_regressed", "gauge", "1 if the cell fails the night, else 0.", _CELL),
    Metric(
        "howdah_nightly_change_ratio",
        "gauge",
        "Mean of the measure tonight less that of the baseline, as a share of the latter.",
        _MEASURE,
    ),
    Metric("howdah_nightly_p_value", "gauge", "Corrected p-value of the measure's change.", _MEASURE),
)
_CELLS, _TESTS, _DURATION, _REGRESSED, _CHANGE, _P = METRICS


def families(night: Night) -> Families:
    """One sample of each series, at the end of the night."""
    at = [round(datetime.fromisoformat(night.ended).timestamp() * 1000)]
    suite = {"suite": night.suite.name}
    found: Families = {
        _CELLS: [Samples({**suite, "state": state}, at, [float(n)]) for state, n in sorted(night.states.items())],
        _TESTS: [Samples(suite, at, [float(night.tests)])],
        _DURATION: [Samples(suite, at, [night.wall_s])],
    }
    for cell in night.cells:
        labels = {**suite, **_labels(cell)}
        found.setdefault(_REGRESSED, []).append(Samples(labels, at, [float(cell.state == "regression")]))
        for metric, more, value in _values(cell):
            found.setdefault(metric, []).append(Samples({**labels, **more}, at, [value]))
    return found


def _labels(cell: CellResult) -> dict[str, str]:
    found = {"experiment": cell.experiment, "cell": cell.slug, "item": cell.item, "kernel": cell.kernel}
    return found | {"algorithm": cell.algorithm, "receiver": cell.receiver}


def _values(cell: CellResult) -> Iterator[tuple[Metric, dict[str, str], float]]:
    for each in cell.comparisons:
        labels = {"measure": each.metric} | ({"flow": each.flow} if each.flow else {})
        if isinstance(each.baseline, float) and each.difference is not None and each.baseline:
            change = each.difference / abs(each.baseline)
            if math.isfinite(change):
                yield _CHANGE, labels, change
        if each.adjusted is not None:
            yield _P, labels, each.adjusted
