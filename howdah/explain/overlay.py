# SPDX-License-Identifier: Apache-2.0
"""Compare a recorded flow with its twin's run: how far apart they are, and what the twin does not explain.

The distance of two curves is their mean difference divided by the mean of the recorded one, at the times of the
recording, which are closer together at the start. The distance of a flow is the largest of its curves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from howdah.explain.course import FlowPoints, run_points, section_points
from howdah.explain.delay import Reals
from howdah.explain.picture import ShownPicture, shown
from howdah.foreign import escape_controls
from howdah.held import HeldBy
from howdah.measure.measured import load
from howdah.number import counted, delay, duration, rate, significant
from howdah.place import REPORTS
from howdah.profile.experiment import RecordedSection
from howdah.record.result import Run
from howdah.report.page import write
from howdah.report.plot.canvas import Size
from howdah.report.plot.model import Panel, PlotAxis, PlotLine
from howdah.report.plot.style import token
from howdah.report.table import cause_text
from howdah.report.template import framed, templates_of

ALIKE = 0.1  # relative difference to the recording up to which a value is reproduced
_FEW_PACKETS = 3  # difference in retransmissions that does not count
_LASTS = 4  # points in a row from which on curves differ lastingly
CURVES = (
    ("in flight", "in_flight_packets"),
    ("acknowledged", "acknowledged_bytes"),
    ("round trip", "rtt_s"),
)

_WRITTEN: dict[str, Callable[[float], str]] = {
    "in_flight_packets": lambda value: f"{significant(value, 3)} packets",
    "acknowledged_bytes": lambda value: f"{significant(value / 1e6, 3)} MB",
    "rtt_s": lambda value: delay(1e6 * value),
}


@dataclass(frozen=True)
class Overlay:
    """One run compared with the recording. ``distances`` are shares by the names of :data:`CURVES`, empty without a
    course.

    ``unlike`` says in words how the run differs from the recorded flow.
    """

    run: str
    distances: dict[str, float]
    unlike: list[str]
    recorded: FlowPoints | None
    reproduced: FlowPoints | None

    @property
    def distance(self) -> float | None:
        return max(self.distances.values(), default=None)


def overlays(recorded: RecordedSection, runs: list[Run]) -> list[Overlay]:
    """Compare each run that counts; the nearest comes first."""
    found = [_overlay(recorded, run) for run in runs if run.counts and run.plan is not None]
    return sorted(found, key=lambda each: len(each.unlike) if each.distance is None else each.distance)


def _overlay(recorded: RecordedSection, run: Run) -> Overlay:
    assert run.plan is not None
    flow = run.plan.flows[0].id
    values = {row.metric: row.value for row in run.metrics if row.flow == flow}
    reproduced = None
    if recorded.course is not None and run.data_kept:
        trace = next(each for each in load(run.directory, run.plan).traces if each.flow.id == flow)
        reproduced = run_points(trace, section_points(recorded.course).time_s)
    return compared(run.name, recorded, values, reproduced)


def compared(
    run: str, recorded: RecordedSection, values: Mapping[str, object], reproduced: FlowPoints | None
) -> Overlay:
    """Compare one run. ``values`` are the measures of its flow by name, ``reproduced`` its course at the recorded
    times."""
    unlike = list(_measure_differences(recorded, values))
    if recorded.course is None:
        return Overlay(run, {}, unlike, None, None)
    mine = section_points(recorded.course)
    if reproduced is None:
        return Overlay(run, {}, [*unlike, "the run keeps no ACKs to compare its course with"], mine, None)
    distances = {name: _distance(getattr(mine, field), getattr(reproduced, field)) for name, field in CURVES}
    unlike += _curve_differences(mine, reproduced, distances)
    return Overlay(run, distances, unlike, mine, reproduced)


def _distance(mine: Reals, theirs: Reals) -> float:
    mine = mine[: theirs.size]
    mean = float(mine.mean())
    return float(np.abs(mine - theirs).mean()) / mean if mean > 0 else 0.0


def _measure_differences(recorded: RecordedSection, values: Mapping[str, object]) -> Iterator[str]:
    yield from _exit_differences(recorded, values)
    again, theirs = recorded.retransmitted_packets, values.get("retransmitted_packets")
    more = abs(theirs - again) if again is not None and isinstance(theirs, int | float) else 0
    if again is not None and more > max(_FEW_PACKETS, ALIKE * again):
        yield f"retransmissions: {counted(again, 'packet')} recorded, {theirs} in the twin"
    goodput = values.get("goodput_bits_per_second")
    # With a course, the curve of acknowledged bytes shows it.
    if recorded.course is None and isinstance(goodput, int | float):
        yield from _goodput_difference(recorded.goodput, float(goodput))
    held = values.get("held_back_by")
    if recorded.held_back_by not in (None, HeldBy.UNKNOWN.value, held):
        yield f"what held it back: {recorded.held_back_by} recorded, {held or 'nothing'} in the twin"


def _goodput_difference(mine: int | None, theirs: float) -> Iterator[str]:
    if mine is not None and abs(theirs - mine) > ALIKE * mine:
        yield f"goodput: {rate(mine)} recorded, {rate(theirs)} in the twin"


def _exit_differences(recorded: RecordedSection, values: Mapping[str, object]) -> Iterator[str]:
    mine, cause, turn = recorded.exit, values.get("exit_cause"), values.get("exit_round")
    if mine is None:
        if recorded.startup_left is False and cause is not None:
            yield f"exit: the twin left slow start by {cause_text(str(cause))}, the recorded flow did not"
        return
    if cause is None:
        yield "exit: the recorded flow left slow start, the twin did not"
        return
    if mine.round is not None and isinstance(turn, int | float) and abs(turn - mine.round) > 1:
        yield f"exit: in round {mine.round + 1} as recorded, in round {int(turn) + 1} in the twin"
    if mine.cause is not None and mine.cause != cause:
        yield f"why it left: by {cause_text(mine.cause)} as recorded, by {cause_text(str(cause))} in the twin"


def _curve_differences(mine: FlowPoints, theirs: FlowPoints, distances: dict[str, float]) -> Iterator[str]:
    for name, field in CURVES:
        if distances[name] <= ALIKE:
            continue
        ours, others = getattr(mine, field)[: theirs.time_s.size], getattr(theirs, field)
        at = _departure(ours, others)
        since = f"from {duration(1e6 * float(mine.time_s[at]))} on" if at is not None else "for moments"
        higher = "more" if float((others - ours)[at or 0 :].mean()) > 0 else "less"
        written = _WRITTEN[field]
        means = written(float(ours[at or 0 :].mean())), written(float(others[at or 0 :].mean()))
        yield (
            f"{name}: {significant(100 * distances[name], 2)} % apart; {since} the twin has {higher}, "
            f"{means[1]} on average against {means[0]} recorded"
        )


def _departure(mine: Reals, theirs: Reals) -> int | None:
    """The first of several points in a row that differ by more than :data:`ALIKE` to the same side; None without."""
    apart = np.sign(theirs - mine) * (np.abs(theirs - mine) > ALIKE * np.maximum(mine, float(mine.mean())))
    for at in range(apart.size - _LASTS + 1):
        if apart[at] and (apart[at : at + _LASTS] == apart[at]).all():
            return at
    return None


def overlay_lines(overlay: Overlay, others: int, open_fields: list[str]) -> list[str]:
    """Lines for a terminal; ``open_fields`` are the fields that the recording leaves open."""
    what = f"twin ({overlay.run}, the nearest of {others + 1})" if others else "twin"
    lines = []
    if overlay.distance is not None:
        parts = ", ".join(f"{name} {significant(100 * share, 2)} %" for name, share in overlay.distances.items())
        lines.append(f"{what}: {significant(100 * overlay.distance, 2)} % from the recorded flow ({parts})")
    else:
        lines.append(f"{what}: laid over what the recording says; it has no course")
    if overlay.unlike:
        lines += ["  the twin does not explain:", *(f"    {each}" for each in overlay.unlike)]
        if open_fields and not others:
            lines.append(f"  the recording leaves open {', '.join(open_fields)}: --unknowns tries their grid")
    else:
        lines.append("  nothing recorded is left unexplained: exit, cause, losses and goodput are the recorded ones")
    return lines


_PLACE = REPORTS / "explain"
_SHARED = ("tokens.css", "page.css", "chart.css", "table.css", "print.css")
_STYLES = (*(REPORTS / "css" / name for name in _SHARED), _PLACE / "css/explain.css")
_SIZES = (Size(1160, 260, "wide"), Size(400, 260, "narrow"))
_SCALES = {"in_flight_packets": (1.0, "packets"), "acknowledged_bytes": (1e-6, "MB"), "rtt_s": (1e3, "ms")}


@cache
def _template() -> Any:
    return templates_of(_PLACE / "templates").get_template("overlay.html.j2")


def write_overlay(name: str, found: list[Overlay], target: Path) -> Path:
    """Write the page of the nearest run at ``target``; its table lists all runs. Raise HowdahError if that fails."""
    nearest = found[0]
    page = _template().render(
        title=escape_controls(name),
        run=escape_controls(nearest.run),
        unlike=[escape_controls(each) for each in nearest.unlike],
        pictures=list(_pictures(nearest)),
        rows=[(escape_controls(each.run), *_cells(each), len(each.unlike)) for each in found],
        curves=[title for title, _ in CURVES],
        **framed(_STYLES),
    )
    return write(page, target)


def _cells(overlay: Overlay) -> Iterator[str]:
    for name, _ in CURVES:
        share = overlay.distances.get(name)
        yield "–" if share is None else f"{significant(100 * share, 2)} %"


def _pictures(overlay: Overlay) -> Iterator[ShownPicture]:
    mine, theirs = overlay.recorded, overlay.reproduced
    if mine is None:
        return
    both = [("recorded", token("ink"), mine)]
    if theirs is not None:
        both.append(("reproduced by the twin", token("focus", 6, 3), theirs))
    end = float(mine.time_s.max())
    for title, field in CURVES:
        factor, unit = _SCALES[field]
        lines = []
        for label, style, points in both:
            inside = points.time_s <= end
            values = getattr(points, field)[inside] * factor
            lines.append(PlotLine(label, style, points.time_s[inside].tolist(), values.tolist(), spoken=label))
        most = 1.05 * max(each for line in lines for each in line.y) or 1.0
        panel = Panel(
            f"{title}: recorded and reproduced over time",
            PlotAxis("seconds since it began to connect", (0.0, end)),
            PlotAxis(unit, (0.0, most)),
            lines,
            "time",
            words=f"{title} in {unit}",
        )
        yield shown(f"{title[0].upper()}{title[1:]}", panel, _SIZES)
