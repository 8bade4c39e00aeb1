# SPDX-License-Identifier: Apache-2.0
"""Other sections of the page: claims, figures declared by profiles, and kernel messages."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup, escape

from howdah.errors import HowdahError
from howdah.profile.experiment import sections_of_experiment
from howdah.record.claims import ClaimRow, read_claims
from howdah.record.directory import read_json
from howdah.record.kernel_log import SOURCE
from howdah.record.result import Experiment, Run
from howdah.report.plot import draw

_HOLDS = ("pass", "implemented")
_MOST_NAMED = 2  # of claims that do not hold


@dataclass(frozen=True)
class Claims:
    """The claims of one experiment; ``experiment`` is its name if the page shows several, else empty."""

    experiment: str
    counts: str
    rows: list[ClaimRow]


def shown_claims(experiments: list[Experiment]) -> list[Claims]:
    """The claims of all experiments that have a claims.json, in their order."""
    found = []
    for experiment in experiments:
        rows = read_claims(experiment.path)
        if rows:
            verdicts = [row.verdict for row in rows]
            counts = ", ".join(f"{verdicts.count(word)} {word}" for word in dict.fromkeys(verdicts))
            name = experiment.name if len(experiments) > 1 else ""
            found.append(Claims(name, counts, rows))
    return found


def answer(claims: list[Claims]) -> list[str]:
    """Say in one sentence per experiment whether the profile's claims hold."""
    sentences = []
    for each in claims:
        held = sum(row.verdict in _HOLDS for row in each.rows)
        others = [f"{row.says.rstrip('.')} ({row.verdict})" for row in each.rows if row.verdict not in _HOLDS]
        of = f" of {each.experiment}" if each.experiment else ""
        if len(each.rows) == 1:
            says = each.rows[0].says.rstrip(".")
            sentences.append(f"The claim{of} holds: {says}." if held else f"The claim{of} does not hold: {others[0]}.")
            continue
        number = f"All {held}" if not others else f"{held} of {len(each.rows)}" if held else f"None of {len(each.rows)}"
        rest = f"; not: {'; '.join(others[:_MOST_NAMED])}" if others else ""
        more = f"; and {len(others) - _MOST_NAMED} more" if len(others) > _MOST_NAMED else ""
        sentences.append(f"{number} claims{of} hold{rest}{more}.")
    return sentences


@dataclass(frozen=True)
class DeclaredFigures:
    """The figures of one experiment, in the order of its profile."""

    experiment: str
    figures: list[Markup]


def declared_figures(experiments: list[Experiment]) -> list[DeclaredFigures]:
    """The figures of every experiment that declares some; an unreadable profile yields its error message instead."""
    found = []
    for experiment in experiments:
        try:
            sections = sections_of_experiment(experiment.path)
            figures = [Markup(draw(figure, experiment)) for figure in sections.figures]
        except HowdahError as error:
            figures = [
                Markup('<p class="missing" role="status">The figures of the profile: {}</p>').format(escape(error))
            ]
        if figures:
            found.append(DeclaredFigures(experiment.name, figures))
    return found


def without_data(experiments: list[Experiment]) -> int:
    """The number of runs without curves, because only their results were kept."""
    return sum(not run.data_kept for experiment in experiments for run in experiment.runs)


_MOST_RUNS = 20


@dataclass(frozen=True)
class KernelMessages:
    """The kernel messages of one run. Each of ``lines`` is a time of the kernel's clock in seconds and a text;
    ``left_out`` counts the messages beyond those."""

    run: str
    variant: str
    lines: list[tuple[str, str]]
    left_out: int


def kernel_messages(runs: list[tuple[Run, str]]) -> list[KernelMessages]:
    """The first 20 runs whose kernel logged messages; each run comes with the name of its variant."""
    found = []
    for run, variant in runs:
        try:
            counts = read_json(run.directory.ingested)["sources"][SOURCE]["counts"]
            lines = [
                (
                    f"{each['time_us'] / 1e6:.2f}",
                    f"{each['machine']}: {each['text']}" if "machine" in each else str(each["text"]),
                )
                for each in counts["said"]
            ]
            left_out = int(counts["said_total"]) - len(lines)
        except (OSError, ValueError, LookupError, TypeError):
            continue
        if lines:
            found.append(KernelMessages(run.name, variant, lines, left_out))
    return found[:_MOST_RUNS]
