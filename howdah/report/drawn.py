# SPDX-License-Identifier: Apache-2.0
"""The figures of a report: the series, limits and marks that each draws."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from howdah.codec import OCCASIONAL
from howdah.report.pathlimit import LIMITS
from howdah.report.sequence import ACKED, MOST_OVERLAID, RETRANSMITTED, SENT, SERIES, SequencePart
from howdah.series import drawn_series

_SERIES = drawn_series()
DECADE = 10  # by which the peaks of windows differ where their axis is logarithmic
BEYOND_EXIT = 0.35  # of the time to the last exit: what a figure of the start-up shows behind it
# Titles of the axes across.
ACROSS = {"time": "seconds from the start of the experiment", "exit": "seconds from the slow-start exit"}


@dataclass(frozen=True, kw_only=True)
class PageFigure:
    """One figure of the page. It draws ``series``. A single run or flow has all of them, styled by ``parts``; several
    have the first ``over`` of them. ``whole``: one curve per run instead of per flow. ``needs`` names the source data.
    """

    id: str
    title: str
    unit: str
    series: list[str]
    parts: list[SequencePart] | None = field(default=None, metadata=OCCASIONAL)
    over: int | None = field(default=None, metadata=OCCASIONAL)
    axis: Literal["time", "exit"] = "time"
    limits: list[str]
    height: int = 200
    exits: bool = field(default=False, metadata=OCCASIONAL)
    events: bool = field(default=False, metadata=OCCASIONAL)
    whole: bool = field(default=False, metadata=OCCASIONAL)
    needs: str
    note: str | None = field(default=None, metadata=OCCASIONAL)


_NEEDS = "tcp_probe or tcp_info records"
_NEEDS_EXIT = "tcp_probe records around an exit"


def _figure(series: list[str], needs: str, **more: Any) -> PageFigure:
    """A figure with title and unit of the first series."""
    first = _SERIES[series[0]]
    named = {"id": first.id, "title": first.title, **more}
    limits = [each.name for each in LIMITS.values() if each.series == first.id]
    return PageFigure(unit=first.unit, series=series, limits=limits, needs=needs, **named)


FIGURES = [
    _figure(["cwnd", "ssthresh"], _NEEDS, height=320, exits=True, events=True),
    _figure(["rtt"], _NEEDS),
    _figure(["goodput"], _NEEDS),
    _figure(["queue"], "qdisc records of the bottleneck", whole=True),
    PageFigure(
        id="sequence",
        title="Time and sequence",
        unit="MB",
        series=list(SERIES),
        parts=list(SERIES.values()),
        over=MOST_OVERLAID,
        limits=[],
        height=320,
        needs="tcp_probe records",
        note="From the first byte of data. A point is a segment that was sent again or is lost, where packets were "
        "captured, else a reading of the counters that say so. A bar is a SACK block of a captured ACK. Windows begin "
        "at what is acknowledged; a receive window far above it is not drawn. Of several runs or flows, "
        f"{SENT}, {ACKED} and {RETRANSMITTED} are drawn.",
    ),
    _figure(
        *(["cwnd", "ssthresh"], _NEEDS_EXIT),
        id="exit-cwnd",
        title="Slow-start exit, every ACK: congestion window",
        axis="exit",
        height=280,
        events=True,
    ),
    _figure(
        *(["rtt"], _NEEDS_EXIT),
        id="exit-rtt",
        title="Slow-start exit, every ACK: smoothed round-trip time",
        axis="exit",
    ),
]

# Of experiments in which a sender has a processor.
PROCESSOR_FIGURES = [_figure([name], "readings of the sender's processor") for name in ("processor", "waiting")]
