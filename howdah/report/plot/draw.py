# SPDX-License-Identifier: Apache-2.0
"""A declared figure as HTML with inline SVG and without scripts, or the reason why there is nothing to draw."""

from __future__ import annotations

from collections.abc import Callable

from markupsafe import escape

from howdah.errors import HowdahError
from howdah.number import counted, duration
from howdah.profile.figure import PLACES, FigureSection
from howdah.report.drawing import spread
from howdah.report.plot.cdf import distributions, draw_cdf
from howdah.report.plot.grid import draw_grid
from howdah.report.plot.kept import stored_distributions, stored_lines
from howdah.report.plot.model import Picture
from howdah.report.plot.sample import AnyExperiment, NoNumberError, left_out
from howdah.report.plot.stored import StoredExperiment
from howdah.report.plot.svg import panels_svg
from howdah.report.plot.table import draw_table
from howdah.report.plot.timeline import draw_time, time_lines


def _time(figure: FigureSection, experiment: AnyExperiment) -> Picture:
    if isinstance(experiment, StoredExperiment):
        return draw_time(figure, stored_lines(figure, experiment))
    return draw_time(figure, time_lines(figure, experiment))


def _cdf(figure: FigureSection, experiment: AnyExperiment) -> Picture:
    if isinstance(experiment, StoredExperiment):
        return draw_cdf(figure, stored_distributions(figure, experiment))
    return draw_cdf(figure, distributions(figure, experiment))


_KINDS: dict[str, Callable[[FigureSection, AnyExperiment], Picture]] = {
    "sweep": draw_grid,
    "bars": draw_grid,
    "cdf": _cdf,
    "time": _time,
    "table": draw_table,
}
_MOST_MISSING = 12


def draw(figure: FigureSection, experiment: AnyExperiment) -> str:
    """A ``<figure>`` with title, legend, one SVG per panel (or a table), and a caption with n and everything that is
    missing.

    Its colours come from reports/css/chart.css. If nothing can be drawn, the figure says why; missing data never
    raises.
    """
    title = title_of(figure, experiment)
    opening = f'<figure class="declared {figure.kind}" data-figure="{escape(figure.id)}">'
    heading = f"<h3>{escape(title)}</h3>"
    try:
        drawn = picture_of(figure, experiment)
    except HowdahError as error:
        words = f"Nothing to draw: {error.what}."
        look = "aside" if isinstance(error, NoNumberError) else "missing"
        return f'{opening}{heading}<p class="{look}" role="status">{escape(words)}</p></figure>'
    return f"{opening}{heading}{_legend(drawn)}{_panels(drawn)}{_caption(figure, drawn, experiment)}</figure>"


def picture_of(figure: FigureSection, experiment: AnyExperiment) -> Picture:
    """The contents of a figure. Raises HowdahError if there is nothing to draw."""
    figure = figure.model_copy(update={"title": title_of(figure, experiment)})
    picture = _KINDS[figure.kind](figure, experiment)
    picture.title = figure.title
    picture.missing += left_out(figure, experiment)
    return picture


def title_of(figure: FigureSection, experiment: AnyExperiment) -> str:
    """The title, with placeholders for duration and measurement window filled in from the runs that were made."""
    if isinstance(experiment, StoredExperiment):
        if title := experiment.stored(figure).get("title"):
            return str(title)
        found = [each.times_us for each in experiment.runs if each.times_us]
        times = {name: [each[name] for each in found] for name in ("duration", "window")}
    else:
        plans = [run.plan for run in experiment.runs if run.plan]
        times = {
            "duration": [plan.duration_us for plan in plans],
            "window": [plan.measure_window_us[1] - plan.measure_window_us[0] for plan in plans],
        }
    return PLACES.sub(lambda place: spread(times[place[1]], duration) if times[place[1]] else "the run", figure.title)


def _legend(drawn: Picture) -> str:
    if len(drawn.legend) < 2 and not drawn.panels:
        return ""
    items = "".join(f"<li>{item.sample}<span>{escape(item.label)}</span></li>" for item in drawn.legend)
    return f'<ul class="chart-legend" aria-label="Legend">{items}</ul>' if items else ""


def _panels(drawn: Picture) -> str:
    if drawn.html:
        return drawn.html
    parts = []
    for title, svg in panels_svg(drawn):
        parts.append(f'<div class="panel">{f"<h4>{escape(title)}</h4>" if title else ""}{svg}</div>')
    many = " many" if len(drawn.panels) > 1 else ""
    return f'<div class="panels{many}">{"".join(parts)}</div>'


def _caption(figure: FigureSection, drawn: Picture, experiment: AnyExperiment) -> str:
    source = experiment.source if isinstance(experiment, StoredExperiment) else ""
    sentences = [figure.note, *drawn.caption, source]
    if experiment.pending:
        have = "has" if len(experiment.pending) == 1 else "have"
        sentences.append(f"{counted(len(experiment.pending), 'run')} of this experiment {have} not been made.")
    text = f"<p>{escape(' '.join(filter(None, sentences)))}</p>" if any(sentences) else ""
    if drawn.missing:
        shown = drawn.missing[:_MOST_MISSING]
        more = len(drawn.missing) - len(shown)
        items = "".join(f"<li>{escape(each)}</li>" for each in shown)
        items += f"<li>and {more} more</li>" if more else ""
        text += f'<details class="absences"><summary>{len(drawn.missing)} missing</summary><ul>{items}</ul></details>'
    return f"<figcaption>{text}</figcaption>"
