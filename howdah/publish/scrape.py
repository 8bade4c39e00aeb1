# SPDX-License-Identifier: Apache-2.0
"""The targets that a server scrapes: results of finished runs; with ``--live`` also runs in progress, the machine's
node_exporter, and the given exporters.

Blocks hold one sample of each result, at the end of its run, so a query that looks back a second or two misses it. The
page of finished runs repeats the results as long as the server runs, as a Pushgateway does for batch jobs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType

from prometheus_client.openmetrics.parser import text_string_to_metric_families

from howdah.build.cache import cache_root
from howdah.errors import HowdahError
from howdah.place import REPORTS
from howdah.publish.blocks import SAMPLES, latest_nights
from howdah.publish.board import write_page
from howdah.publish.endpoint import endpoint
from howdah.publish.guard import LOOPBACK
from howdah.publish.live_state import LiveState
from howdah.publish.metric import END, INFO, LIVE_JOB, NODE_JOB, RESULTS_JOB, Families, MetricSamples, PublishedMetric
from howdah.publish.openmetrics import end_ms, results
from howdah.publish.prometheus import Password, PrometheusUnavailableError, fetched, new_password
from howdah.publish.server import Live, free_port
from howdah.publish.sweep import sweep_families
from howdah.publish.underway import Watch
from howdah.record.result import Run

PACKAGE = "prometheus-node-exporter"
_COLLECTORS = ("cpu", "loadavg", "meminfo", "netdev", "softnet")
_STOP_LIMIT_S = 10.0


def find() -> Path | None:
    """The program in the cache or in PATH."""
    cached = cache_root() / PACKAGE / "usr" / "bin" / PACKAGE
    if os.access(cached, os.X_OK):
        return cached
    found = shutil.which(PACKAGE) or shutil.which("node_exporter")
    return Path(found) if found else None


def fetch() -> Path:
    """Find the program, or unpack its package into the cache. Raises PrometheusUnavailableError."""
    return fetched(PACKAGE, find, "Install it as node_exporter in PATH.")


@contextmanager
def node_exporter(program: Path, directory: Path) -> Iterator[tuple[str, Password]]:
    """Run the program for the length of a ``with`` block; yields its address and its password, which is written to
    ``directory``. It ends with this process, however that ends."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise PrometheusUnavailableError("the program setpriv is missing", hint="It is part of Debian's util-linux.")
    address, password, web = f"{LOOPBACK}:{free_port()}", new_password(), directory / "node-exporter-web.yml"
    password.write(web)
    command = [setpriv, "--pdeathsig", "KILL", "--", str(program), f"--web.listen-address={address}"]
    command += [f"--web.config.file={web}"]
    command += ["--collector.disable-defaults", *(f"--collector.{name}" for name in _COLLECTORS)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield address, password
    finally:
        process.terminate()
        try:
            process.wait(_STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


INTERVAL_S = 1
RULES = REPORTS / "dashboard" / "rules.yaml"
# Scraped values are a second apart: each holds until the next two are missing.
LOOKBACK = "2500ms"
TARGET_JOB = "howdah-exporter"
_TARGET = re.compile(r"(?:[A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):[0-9]{1,5}")


@contextmanager
def scrape_results(finished: Finished) -> Iterator[Live]:
    """Serve the results of finished runs for the length of a ``with`` block, and yield how to scrape them."""
    with endpoint(finished.families, lambda: finished.stamp) as served:
        yield Live(configuration({RESULTS_JOB: [served.address]}), LOOKBACK)


@contextmanager
def scrape(
    runs: Path, directory: Path, targets: tuple[str, ...], say: Callable[[str], None], finished: Finished | None = None
) -> Iterator[Live]:
    """Start all targets and write the page into ``directory``; everything ends with the ``with`` block.

    Without a node_exporter the machine's own metrics are missing, and a message says why.
    """
    for target in targets:
        if _TARGET.fullmatch(target) is None:
            raise HowdahError(f"'{target}' is not an address and a port", hint="Write it like 127.0.0.1:9750.")
    watch = Watch(runs)
    assets = directory / "assets"
    assets.mkdir(exist_ok=True)
    write_page(assets)
    state = LiveState(runs, cache_root(), watch)
    state.write(assets)

    def scraped() -> Families:
        """Write the page's data at each scrape, once a second."""
        families = watch.families()
        state.write(assets)
        return families | sweep_families(runs)

    with ExitStack() as stack:
        own = stack.enter_context(endpoint(scraped))
        jobs, passwords = {LIVE_JOB: [own.address]}, dict[str, Password]()
        try:
            address, passwords[NODE_JOB] = stack.enter_context(node_exporter(fetch(), directory))
            jobs[NODE_JOB] = [address]
        except PrometheusUnavailableError as error:
            say(f"without the figures of the machine: {error}")
        if finished is not None:
            results = stack.enter_context(endpoint(finished.families, lambda: finished.stamp))
            jobs[RESULTS_JOB] = [results.address]
        if targets:
            jobs[TARGET_JOB] = list(targets)
        yield Live(configuration(jobs, passwords), LOOKBACK, assets)


def configuration(jobs: dict[str, list[str]], passwords: Mapping[str, Password] = MappingProxyType({})) -> str:
    """Prometheus' configuration, as JSON, which is valid YAML; ``passwords`` are those of a job's targets."""
    wanted = {
        job: {"basic_auth": {"username": password.user, "password": password.word}}
        for job, password in passwords.items()
    }
    return json.dumps(
        {
            "global": {
                "scrape_interval": f"{INTERVAL_S}s",
                "scrape_timeout": f"{INTERVAL_S}s",
                "evaluation_interval": f"{INTERVAL_S}s",
            },
            "rule_files": [str(RULES)],
            "scrape_configs": [
                {
                    "job_name": job,
                    "honor_labels": False,
                    "static_configs": [{"targets": addresses}],
                    **wanted.get(job, {}),
                }
                for job, addresses in jobs.items()
            ],
        },
        indent=1,
    )


MOST_SERIES = 5000  # of summaries, which Prometheus reads every second
_OF_EVERY_RUN = (INFO[0], END)


class Finished:
    """The results on the page. ``stamp`` is replaced by another object when they change."""

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
