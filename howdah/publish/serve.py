# SPDX-License-Identifier: Apache-2.0
"""``howdah serve``: one Prometheus over all runs, which imports new ones as they appear."""

from __future__ import annotations

import logging
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from howdah.errors import HowdahError
from howdah.layout import write_stdout
from howdah.number import counted
from howdah.publish.blocks import build_experiment, build_night, link_blocks, nights
from howdah.publish.board import PAGE
from howdah.publish.prometheus import Prometheus, fetch
from howdah.publish.scrape import Finished, scrape, scrape_results
from howdah.publish.server import Server, require_port, running
from howdah.record.directory import experiment_indexes
from howdah.record.result import Run
from howdah.scratch import scratch
from howdah.work.results import read_results

_LOG = logging.getLogger(__name__)
_LOOK_AGAIN_S = 30.0
_TOLD_EVERY_S = 5.0  # how far the first import is


def experiments(runs: Path) -> Iterator[Path]:
    """Yield the directories of the experiments below the runs directory, without ``latest`` and unfinished ones."""
    for index in experiment_indexes(runs):
        if not index.parent.is_symlink() and not index.parent.name.startswith("."):
            yield index.parent


class Importer:
    """Adds blocks of new and changed experiments to a server's data directory, each block once."""

    def __init__(self, runs: Path, data: Path, prometheus: Prometheus) -> None:
        self.finished = Finished()
        self.runs = runs
        self.data = data
        self.prometheus = prometheus
        self._known: set[str] = set()

    def look(self, say: Callable[[str], None] = lambda _line: None) -> tuple[int, int]:
        """Import what is new; return the numbers of experiments and runs. ``say`` gets progress messages if it takes
        long.

        An experiment that cannot be read is reported and skipped: the others are still served.
        """
        count, found = 0, list[Run]()
        paths = list(experiments(self.runs))
        told = time.monotonic()
        for number, path in enumerate(paths):
            if time.monotonic() - told >= _TOLD_EVERY_S:
                told = time.monotonic()
                say(f"importing runs: {number} of {counted(len(paths), 'experiment')}")
            try:
                experiment = read_results(path, _LOG.warning)
                blocks = build_experiment(experiment, self.prometheus)
            except HowdahError as error:
                _LOG.warning("not served: %s", error)
                continue
            count += 1
            found += experiment.runs
            self._link(blocks)
        for night in nights(self.runs):
            try:
                self._link(build_night(night, self.prometheus))
            except HowdahError as error:
                _LOG.warning("not served: %s", error)
        self.finished.set(found, self.runs)
        return count, len(found)

    def _link(self, blocks: list[Path]) -> None:
        new = [block for block in blocks if block.name not in self._known]
        link_blocks(new, self.data)
        self._known.update(block.name for block in new)


def _say(line: str) -> None:
    write_stdout(line + "\n")
    sys.stdout.flush()


def serve(
    runs: Path, port: int, say: Callable[[str], None] = _say, *, live: bool = False, targets: tuple[str, ...] = ()
) -> None:
    """Serve until interrupted; with ``live`` also runs in progress, and exporters at ``targets``.

    Raises HowdahError if there is nothing to serve, no Prometheus, or the port is taken.
    """
    require_port(port)
    if live:
        runs.mkdir(parents=True, exist_ok=True)
    if not runs.is_dir():
        raise HowdahError("there is no directory of runs", where=str(runs), hint="Make one with 'howdah run PROFILE'.")
    prometheus = fetch()
    with scratch("howdah-prometheus-") as place, ExitStack() as stack:
        data = place / "data"
        data.mkdir()
        importer = Importer(runs, data, prometheus)
        # The live page needs no finished run, so it does not wait for them.
        count, total = (0, 0) if live else importer.look(say)
        if not total and not live:
            raise HowdahError("there are no runs to serve", where=str(runs), hint="Make one with 'howdah run PROFILE'.")
        if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:  # a command hears it already
            signal.signal(signal.SIGTERM, _interrupt)
        try:
            finished = importer.finished
            scraped = scrape(runs, place, targets, say, finished) if live else scrape_results(finished)
            scraping = stack.enter_context(scraped)
            server = stack.enter_context(running(prometheus, data, port, scraping))
            if live:
                say(f"Runs as they happen: {server.url}/user/{PAGE}")
                count, total = importer.look(say)
            say(f"Prometheus over {counted(total, 'run')} of {counted(count, 'experiment')}: {server.url}")
            say("New runs appear within two minutes. Ctrl-C ends it.")
            _watch(importer, server)
        except KeyboardInterrupt:
            say("stopped")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Treat SIGTERM as Ctrl-C: end the server and remove its directory."""
    raise KeyboardInterrupt


def _watch(importer: Importer, server: Server) -> None:
    """Add new blocks to the directory, which Prometheus rereads every minute. Raise HowdahError if it ends."""
    due = time.monotonic() + _LOOK_AGAIN_S
    while True:
        if not server.alive():
            raise HowdahError(f"prometheus ended: {server.complaint()}", where=str(server.log))
        time.sleep(0.5)
        if time.monotonic() >= due:
            importer.look()
            due = time.monotonic() + _LOOK_AGAIN_S
