# SPDX-License-Identifier: Apache-2.0
"""Measures of metrics.json as Prometheus metrics: name, unit and help of each come from the table of metrics."""

from __future__ import annotations

import re

from howdah.metric import UNITS, known_metrics, unit_by_suffix
from howdah.publish.metric import PREFIX, PublishedMetric


def summary_metric(measure: str, unit: str) -> tuple[PublishedMetric, float]:
    """The metric that holds a measure of metrics.json, and the factor from the measure's unit to the metric's.

    ``exit_time_s`` becomes ``howdah_exit_time_seconds``; a measure without a unit that is a ratio gains ``_ratio``;
    ``exit_quantity`` in microseconds becomes ``howdah_exit_quantity_seconds``.
    """
    known = known_metrics().get(measure)
    if known is not None and known.is_by_cause and unit:  # part of the name, since a metric has one unit
        suffixes = {each.name: each.suffix for each in UNITS}
        full = measure + suffixes.get(unit, f"_{unit}")
    else:
        full = measure
    name = re.sub(r"[^a-z0-9]+", "_", full.lower()).strip("_") or "measure"
    factor = 1.0
    dimension = unit_by_suffix(name)
    if dimension is not None:
        name, factor = name.removesuffix(dimension.suffix) + dimension.base_suffix, dimension.base_factor
    elif unit == "ratio" and not name.endswith("_ratio"):
        name += "_ratio"
    for reserved in ("_total", "_count", "_sum", "_bucket", "_info"):
        if name.endswith(reserved):
            name += "_value"
    text = f"{known.meaning[0].upper()}{known.meaning[1:]}." if known else f"The measure {name} of metrics.json."
    return PublishedMetric(f"{PREFIX}{name}", "gauge", text, ("run", "flow")), factor
