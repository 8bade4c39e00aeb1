# SPDX-License-Identifier: Apache-2.0
"""The caption of a paper figure, and its data as rows of a CSV file."""

from __future__ import annotations

from howdah.record.result import Experiment, Run, without_controls
from howdah.report.ackwindow import exit_of
from howdah.report.drawing import path_label
from howdah.report.paper.choice import Choice, chosen_runs
from howdah.report.paper.figures import NAMES, TIME_FIGURES, extra_curves, has_panels, lines_of, panels_of
from howdah.report.paper.panels import declared_sections
from howdah.report.plot.draw import title_of
from howdah.report.variant import Variants


def description_of(name: str, experiments: list[Experiment]) -> str:
    """What a figure shows, in words."""
    if name in NAMES:
        return NAMES[name]
    section, experiment = declared_sections(without_controls(experiments))[name]
    return title_of(section, experiment)


def caption_of(name: str, experiments: list[Experiment], choice: Choice) -> str:
    """The text of the caption file beside the figure."""
    experiments = without_controls(experiments)
    names = ", ".join(each.name for each in experiments)
    shown = " ".join(panels_of(name, experiments, choice).caption) if has_panels(name) else f"{NAMES[name]}."
    return f"{names}: {shown} {_conditions(chosen_runs(experiments, choice, with_data=False))}\n"


def _conditions(runs: list[Run]) -> str:
    """The path, the kernels and the number of repetitions, in words."""
    paths = {run.point: path_label(run.plan) for run in reversed(runs) if run.plan}
    kernels = list(dict.fromkeys(run.kernel for run in runs))
    repetitions = len({run.repetition for run in runs})
    return "; ".join(
        (
            f"{len(paths)} sweep points" if len(paths) > 1 else next(iter(paths.values())),
            f"kernel{'' if len(kernels) == 1 else 's'} {', '.join(kernels)}",
            "one repetition." if repetitions == 1 else f"{repetitions} repetitions.",
        )
    )


def data_of(name: str, experiments: list[Experiment], choice: Choice) -> list[list[str]]:
    """The figure's data as rows of a CSV file below its headings, with every point of the tables."""
    experiments = without_controls(experiments)
    if has_panels(name):
        return panels_of(name, experiments, choice).rows()
    if name == "exit-strip":
        rows = [["run", "flow", "after_start_s", "cwnd_packets", "bdp_packets", "cause"]]
        for run in chosen_runs(experiments, choice, with_data=False):
            for flow in run.plan.flows if run.plan else ():
                found = exit_of(run, flow)
                if found is not None and run.plan is not None:
                    bdp = str(run.plan.path.bdp_packets)
                    numbers = [repr(found.after_start_s), str(found.cwnd_packets), bdp]
                    rows.append([run.name, flow.name, *numbers, found.cause])
        return rows
    spec = TIME_FIGURES[name]
    rows = [["line", "run", "time_s", spec.label]]
    lines = lines_of(spec, experiments, Variants(experiments), choice)
    for line in lines:
        rows += [
            [line.label, line.run.name, repr(float(x)), repr(float(y))] for x, y in zip(line.x, line.y, strict=True)
        ]
    for name, (times, values, low) in extra_curves(spec, lines, choice).items():
        ends = {name: values} if low is None else {f"{name}, from": low, f"{name}, to": values}
        for label, column in ends.items():
            rows += [
                [label, lines[0].run.name, repr(float(x)), repr(float(y))] for x, y in zip(times, column, strict=True)
            ]
    return rows
