# SPDX-License-Identifier: Apache-2.0
"""Builds ``report.html`` of an experiment from its directory alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from howdah.build.cache import Progress
from howdah.errors import HowdahError
from howdah.publish.blocks import build_experiment, link_blocks
from howdah.publish.prometheus import Prometheus, PrometheusUnavailableError, find
from howdah.publish.server import queried
from howdah.record.result import Experiment
from howdah.report.page import render, write
from howdah.report.results import MOST_RUNS, is_many, read_shown
from howdah.report.source import PrometheusSource, Source, TableSource
from howdah.scratch import scratch

MANY = f"Of more than {MOST_RUNS} runs the summary is computed from metrics.json, and curves from the Parquet tables."
OFF = "Prometheus was switched off: curves and summary were computed from the Parquet tables."


@contextmanager
def source_for(
    experiments: list[Experiment], prometheus: str, tell: Progress | None = None
) -> Iterator[tuple[Source, str]]:
    """Yield the source of a report, and the footer's note on it.

    ``auto`` starts a Prometheus on blocks of the experiments if this machine has the program, and else uses the tables;
    ``off`` uses the tables, and so does a report of many runs. A report never downloads Prometheus.
    """
    if prometheus not in ("auto", "off"):
        raise ValueError(f"prometheus is 'auto' or 'off', not {prometheus!r}")
    if is_many(experiments):
        yield TableSource(), MANY
        return
    program: Prometheus | None = None
    note = OFF
    if prometheus == "auto":
        try:
            program, why = find(), "not on this machine"
        except PrometheusUnavailableError as error:
            why = error.what
        note = f"Without Prometheus ({why}): curves and summary were computed from the Parquet tables."
    if program is None:
        yield TableSource(), note
        return
    with scratch("howdah-prometheus-") as place:
        data = place / "data"
        data.mkdir()
        for experiment in experiments:
            link_blocks(_blocks(experiment, program, place / "blocks", tell), data)
        try:
            with queried(program, data) as client:
                yield PrometheusSource(client, client.version()), "Curves and summary come from PromQL."
        except PrometheusUnavailableError as error:
            hint = "Remove prometheus/, and it is made again; --without-prometheus draws from the tables."
            raise HowdahError(str(error), hint=hint) from error


def _blocks(experiment: Experiment, program: Prometheus, spare: Path, tell: Progress | None) -> list[Path]:
    """The blocks kept beside the runs; in a temporary directory for a single run, or if the experiment is read-only."""
    beside = experiment.path / "prometheus"
    whole = (experiment.path / "experiment.json").exists()
    try:
        if whole:
            beside.mkdir(exist_ok=True)
            probe = beside / ".writable"
            probe.touch()
            probe.unlink()
    except OSError:
        whole = False
    return build_experiment(experiment, program, beside if whole else spare / experiment.name, tell=tell)


def report(
    experiment_dir: Path,
    prometheus: str = "auto",
    shown: Experiment | None = None,
    tell: Progress | None = None,
) -> Path:
    """Write ``report.html`` into an experiment (or run) directory and return its path.

    ``shown`` is the result of ``read_shown`` if it was already read; ``tell`` receives progress. Raises HowdahError if
    the directory holds no experiment or cannot be written.
    """
    experiment = shown or read_shown(experiment_dir)
    with source_for([experiment], prometheus, tell) as (source, note):
        page = render(experiment.name, experiment.description, [experiment], source, note, tell)
    return write(page, experiment_dir / "report.html")
