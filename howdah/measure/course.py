# SPDX-License-Identifier: Apache-2.0
"""Rows of a flow's start-up beside its exit: growth, early downloads, decision against capacity, period of its RTT."""

from __future__ import annotations

from howdah.measure.crossing import crossing_rows
from howdah.measure.download import download_rows
from howdah.measure.exit_rows import Startup
from howdah.measure.growth import growth_rows
from howdah.measure.measured import Measured
from howdah.measure.period import period_rows
from howdah.measure.row import Sheet
from howdah.measure.trace import FlowTrace


def course_rows(
    sheet: Sheet,
    data: Measured,
    trace: FlowTrace,
    startup: Startup,
    goodput_bits_per_second: float | None,
    window_end_ns: int,
) -> None:
    """All of them; goodput and the end are those of the profile's measurement window, as far as the flow is active."""
    path = data.plan.path
    growth_rows(sheet, path, trace, startup.found, window_end_ns)
    download_rows(sheet, path, trace, goodput_bits_per_second)
    crossing_rows(sheet, trace, data.capacity, startup.found, data.events.get(trace.flow.id, []))
    period_rows(sheet, trace)
