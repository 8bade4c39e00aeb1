# SPDX-License-Identifier: Apache-2.0
"""Results of finished runs and nights as a page that is scraped, so that a plain query finds them now.

Blocks hold one sample of each result, at the end of its run, so a query that looks back a second or two does not find
it. This page has the results as long as the server runs, as a Pushgateway has those of batch jobs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from pathlib import Path

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from howdah.publish.blocks import SAMPLES, latest_nights
from howdah.publish.metric import END, INFO, Families, MetricSamples, PublishedMetric
from howdah.publish.openmetrics import end_ms, results
from howdah.record.result import Run

RESULTS_JOB = "howdah-results"
MOST_SERIES = 5000  # of summaries, which Prometheus reads every second
_OF_EVERY_RUN = (INFO[0], END)


class Finished:
    """The results on the page. ``stamp`` becomes another object when they change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: object = None
        self._families: Families = {}
        self.stamp = object()

    def set(self, runs: Iterable[Run], directory: Path) -> None:
        """Show these runs, and the last night of each suite in the directory of runs."""
        ordered = sorted(runs, key=end_ms, reverse=True)
        last = latest_nights(directory)
        key = ([_identity(run) for run in ordered], last)
        if key == self._key:
            return
        found = _newest(ordered)
        known: dict[str, PublishedMetric] = {}
        for night in last:
            for metric, samples in _of_night((night / SAMPLES).read_text(encoding="utf-8")).items():
                # A name has one family, whatever words an older howdah had for it.
                found.setdefault(known.setdefault(metric.name, metric), []).extend(samples)
        with self._lock:
            self._key, self._families, self.stamp = key, found, object()

    def families(self) -> Families:
        with self._lock:
            return self._families


def _identity(run: Run) -> tuple[object, ...]:
    files = (run.directory.metrics, run.directory.verdict, run.directory.provenance)
    return str(run.directory.path), *((each.stat().st_mtime_ns if each.exists() else 0) for each in files)


def _newest(runs: list[Run]) -> Families:
    """The facts of every run, and the summaries of as many of the first runs as fit."""
    found: Families = {}
    room = MOST_SERIES
    for run in runs:
        of_run = results([run])
        room -= sum(len(samples) for metric, samples in of_run.items() if metric not in _OF_EVERY_RUN)
        for metric, samples in of_run.items():
            if room >= 0 or metric in _OF_EVERY_RUN:
                found.setdefault(metric, []).extend(samples)
    return found


def _of_night(text: str) -> Families:
    found: Families = {}
    for family in text_string_to_metric_families(text):  # type: ignore[no-untyped-call]
        for sample in family.samples:
            metric = PublishedMetric(sample.name, family.type, family.documentation)
            found.setdefault(metric, []).append(MetricSamples(dict(sample.labels), [0], [float(sample.value)]))
    return found
