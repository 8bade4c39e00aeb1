# SPDX-License-Identifier: Apache-2.0
"""The report page: one self-contained HTML file that loads nothing from elsewhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Template
from markupsafe import Markup

from howdah import __version__
from howdah.assets import UPLOT_VERSION, scripts, style
from howdah.build.cache import Progress
from howdah.codec import encoded
from howdah.errors import HowdahError
from howdah.number import duration, significant
from howdah.place import REPORTS
from howdah.record.directory import write_whole
from howdah.record.result import Experiment, Run, without_controls
from howdah.record.table import point_text
from howdah.report.ackwindow import without_exit
from howdah.report.axis import ABSENT, RunAxis, axes
from howdah.report.difference import HEADERS, difference_rows, differences
from howdah.report.distribution import distribution_drawing, distributions
from howdah.report.dotplot import DotPlot, dot_plot
from howdah.report.drawing import dumbbell
from howdah.report.event import event_tables
from howdah.report.exitstrip import ExitStrip, StripScale, arrangements, exit_strip, scale_of
from howdah.report.figure import PageData, page_data
from howdah.report.findings import findings
from howdah.report.origin import origins, value_text
from howdah.report.overview import overview
from howdah.report.pathfacts import first_point, path_facts, path_notes
from howdah.report.plot.style import key
from howdah.report.plot.swept import place_title, place_words
from howdah.report.receiverstrip import ReceiverStrip, receiver_drawing, receiver_strips, what_differs
from howdah.report.results import is_many, sample, with_main_measures
from howdah.report.section import Claims, answer, declared_figures, kernel_messages, shown_claims, without_data
from howdah.report.source import Source, Summary
from howdah.report.subject import CHECKING, subjects_of
from howdah.report.table import Table, table
from howdah.report.template import script_json, templates_of
from howdah.report.transfer import completion_table
from howdah.report.variant import Variants, dashes

_MOST_REASONS = 4
_MOST_DIFFERENCES = 600  # rows of the table of differences
_FEWEST_TRANSFERS = 10  # transfers of a size class in the table of completion times
_MOST_SEPARATE_STRIPS = 3  # up to this number each strip has its own axis


@dataclass(frozen=True)
class Strip:
    """A drawing that needs no script, in a wide and a narrow form; ``point`` is its heading."""

    point: str
    wide: Markup
    narrow: Markup


@dataclass(frozen=True)
class AnswerPicture:
    """The picture for the sentences at the top of the page; ``legend`` pairs colour samples with names."""

    title: str
    note: str
    wide: Markup
    narrow: list[Markup]
    legend: list[tuple[Markup, str]]


@dataclass(frozen=True)
class Strips:
    """All exits, with the values of one axis as rows; ``label`` names that axis.

    ``receivers`` has the receivers' measures in the same rows, and ``differs`` says in which of them the runs differ.
    """

    label: str
    strips: list[Strip]
    receivers: list[Strip]
    differs: str


@cache
def _template() -> Template:
    """The page's template, compiled once per process: compiling takes a tenth of the time of a process that writes many
    reports."""
    return templates_of(REPORTS / "templates").get_template("report.html.j2")


def render(
    title: str,
    description: str,
    experiments: list[Experiment],
    source: Source,
    note: str,
    tell: Progress | None = None,
) -> str:
    """Return the page as text. ``note`` goes into the footer, e.g. why Prometheus was not used."""
    variants = Variants(experiments)
    many = is_many(experiments)
    ordinary = without_controls(experiments)
    summed = with_main_measures(experiments) if many else experiments
    summaries: list[Summary] = [source.summary(experiment) for experiment in summed]
    drawn = sample(ordinary) if many else ordinary
    across = axes(drawn, variants)
    data = page_data(drawn, source, variants, across, tell)
    shown = [run for experiment in ordinary for run in experiment.runs]
    labelled = [(run, variants.key(run)) for experiment in drawn for run in experiment.runs]
    return _template().render(
        title=title,
        description=description,
        headline=_headline(shown, variants),
        **_answer_section(table(ordinary, summaries, variants), shown_claims(experiments), data),
        **_path_section([run for run in shown if run.plan]),
        **_run_sections(experiments, variants, many=many),
        exit_strips=[] if many else _exit_strips(ordinary, variants, across),
        no_exit_reasons=_no_exit_reasons(shown),
        groups=[] if many else _group_distributions(ordinary, variants),
        completion=completion_table([] if many else ordinary, least=_FEWEST_TRANSFERS).used(),
        many=overview(summed, variants) if many else None,
        declared=declared_figures(experiments),
        event_tables=event_tables(labelled),
        kernel_messages=kernel_messages(labelled),
        variants=variants.all,
        dashes=dashes(),
        source=source.name,
        note=note,
        **_frame(),
    )


def _answer_section(results: Table, claims: list[Claims], data: PageData) -> dict[str, Any]:
    """The findings, the result table, the claims, and the curves that the answer's dots link to."""
    subjects = subjects_of(results)
    return {
        "found": [*answer(claims), *findings(results)],
        "answer": _answer(dot_plot(subjects, frozenset(run.name for run in data.runs))),
        "differences": difference_rows(differences(subjects)[:_MOST_DIFFERENCES]),
        "difference_headers": HEADERS,
        "table": results,
        "claims": claims,
        "curves_of": len(data.runs),
        "figures": data.figures,
        "data": script_json(encoded(data)),
    }


def _path_section(planned: list[Run]) -> dict[str, Any]:
    return {
        "drawings": [Markup(drawing) for drawing in dumbbell(first_point(planned))] if planned else [],
        "facts": path_facts(planned),
        "path_notes": path_notes(planned),
    }


def _run_sections(experiments: list[Experiment], variants: Variants, *, many: bool) -> dict[str, Any]:
    """Verdicts, checks and provenance of the runs, controls included; many runs are not listed one by one."""
    runs = [run for experiment in experiments for run in experiment.runs]
    provenance = origins(runs)
    return {
        "verdicts": _verdicts(runs),
        "pending": [name for experiment in experiments for name in experiment.pending],
        "without_data": without_data(experiments),
        "runs": [] if many else [(run, variants.key(run)) for run in runs],
        "origins": replace(provenance, own=[]) if many else provenance,
        "profiles": [(experiment.name, experiment.profile, experiment.created) for experiment in experiments],
    }


def _frame() -> dict[str, Any]:
    """Scripts, styles and functions of the templates, the same on every page."""
    return {
        "policy": " ".join(f"'{script.policy}'" for script in scripts()),
        "scripts": [Markup(script.text) for script in scripts()],
        "style": Markup(style()),
        "version": __version__,
        "uplot": UPLOT_VERSION,
        "at_text": point_text,
        "place_words": place_words,
        "amount_text": _amount_text,
        "value_text": value_text,
    }


def _answer(plot: DotPlot | None) -> AnswerPicture | None:
    if plot is None:
        return None
    legend = [(Markup(key(style, "mark")), name) for style, name in plot.legend]
    return AnswerPicture(plot.title, plot.note, Markup(plot.wide), [Markup(each) for each in plot.narrow], legend)


def write(page: str, target: Path) -> Path:
    """Write the page atomically: a reader sees the old file or the whole new one. Create its directory."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_whole(target, page)
    except OSError as error:
        raise HowdahError(f"the report cannot be written: {error.strerror}", where=str(target)) from error
    return target


def _headline(runs: list[Run], variants: Variants) -> str:
    plans = [run.plan for run in runs if run.plan]
    if not plans:
        return "No run has a plan: there is nothing to draw."
    swept = [run for run in runs if CHECKING not in run.axes] or runs
    counts = Counter((run.point, variants.key(run)) for run in swept).values()
    points = len({run.point for run in swept})
    noun = "algorithms" if all(each.label == each.algorithm for each in variants.all) else "variants"
    parts = [f"{len(variants.all)} {noun}" if len(variants.all) > 1 else variants.all[0].label]
    if points > 1:
        parts.append(f"{points} sweep points")
    each = " each" if len(counts) > 1 else ""
    parts.append(f"{_range_text(counts)} repetitions{each}" if max(counts) > 1 else f"one repetition{each}")
    flows = [len(plan.flows) for plan in plans]
    times = _range_text((plan.duration_us for plan in plans), duration)
    engines, kernels = sorted({plan.engine for plan in plans}), sorted({run.kernel for run in runs})
    return (
        f"{', '.join(parts)}; {f'{_range_text(flows)} flows' if max(flows) > 1 else 'one flow'} for {times}; "
        f"engine {', '.join(engines)}, kernel {', '.join(kernels[:3])}{' …' if len(kernels) > 3 else ''}"
    )


def _range_text(values: Iterable[int], words: Callable[[int], str] = str) -> str:
    """``2 s``, or ``2 s to 8 s`` if the values differ."""
    found = sorted(set(values))
    return words(found[0]) if len(found) == 1 else f"{words(found[0])} to {words(found[-1])}"


def _verdicts(runs: list[Run]) -> list[tuple[str, int]]:
    order = {"pass": 0, "fail": 1, "unsupported": 2, "invalid": 3}
    return sorted(Counter(run.verdict_name for run in runs).items(), key=lambda item: order.get(item[0], 9))


def _amount_text(value: object) -> str:
    """An expected, measured or allowed value of a check: a number, or words."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return significant(value, 6)
    return value_text(value)


def _group_distributions(experiments: list[Experiment], variants: Variants) -> list[Strip]:
    """Drawings of the distributions over the connections of groups; ``point`` is the heading."""
    found = []
    for shown in distributions(experiments, variants):
        wide, narrow = (Markup(distribution_drawing(shown, variants, narrow=each)) for each in (False, True))
        found.append(Strip(", ".join(filter(None, (shown.point, shown.group, shown.words))), wide, narrow))
    return found


def _exit_strips(experiments: list[Experiment], variants: Variants, across: list[RunAxis]) -> list[Strips]:
    arranged = [each for each in arrangements(experiments, variants, across) if each.strips]
    has_marks = any(row.marks for each in arranged for strip in each.strips for row in strip.rows)
    scale = scale_of(arranged)
    runs = [run for experiment in experiments for run in experiment.runs if run.plan]
    rows = {axis.label: axis.value_of for axis in across if not axis.of_variants}
    if arranged:
        rows[arranged[0].label] = variants.key
    found = []
    for each in arranged:
        shown = Strips(each.label, _strip_pictures(each.strips, scale) if has_marks else [], [], "")
        if value_of := rows.get(each.label):
            others = [axis for axis in across if axis.label != each.label]
            shared = partial(_shared_words, variants, others, each is arranged[0])
            differs = what_differs(runs, variants, value_of, each.label, shared)
            measures = receiver_strips(runs, variants, value_of)
            shown = replace(shown, receivers=_receiver_pictures(measures, scale), differs=differs)
        found.append(shown)
    return [each for each in found if each.strips or each.receivers]


def _strip_pictures(strips: list[ExitStrip], scale: StripScale) -> list[Strip]:
    """Draw strips below each other. Of more than a few, only those whose limits differ from the strip above label
    them, and only the last has an axis title."""
    few = len(strips) <= _MOST_SEPARATE_STRIPS
    found = []
    above: ExitStrip | None = None
    for strip in strips:
        named = few or above is None or above.rows[0].full != strip.rows[0].full
        titled = few or strip is strips[-1]
        drawn = (exit_strip(strip, scale, narrow=narrow, named=named, titled=titled) for narrow in (False, True))
        found.append(Strip(strip.title, *map(Markup, drawn)))
        above = strip
    return found


def _receiver_pictures(strips: list[ReceiverStrip], scale: StripScale) -> list[Strip]:
    found = []
    for strip in strips:
        drawn = (receiver_drawing(strip, scale.left, narrow=narrow) for narrow in (False, True))
        found.append(Strip(strip.metric.title, *map(Markup, drawn)))
    return found


def _no_exit_reasons(runs: list[Run]) -> str | None:
    """The distinct reasons why flows of counting runs have no exit; None if no run counts."""
    counting = [run for run in runs if run.counts and run.plan]
    if not counting:
        return None
    # Connections of groups, of which there are thousands, have no exits.
    flows = [(run, flow) for run in counting for flow in (run.plan.flows if run.plan else ()) if flow.group is None]
    why = dict.fromkeys(each for run, flow in flows if (each := without_exit(run, flow)) is not None)
    more = f"; and {len(why) - _MOST_REASONS} more reasons" if len(why) > _MOST_REASONS else ""
    return f"{'; '.join(list(why)[:_MOST_REASONS])}{more}"


def _shared_words(variants: Variants, others: list[RunAxis], of_variants: bool, run: Run) -> str:
    """What a run shares with the runs that differ from it in one axis alone, in words."""
    swept = [axis for axis in others if not axis.of_variants]
    place = [place_title(axis.name, axis.value_of(run)) for axis in swept if axis.value_of(run) != ABSENT]
    return ", ".join(place if of_variants or len(variants.all) == 1 else [variants.key(run), *place])
