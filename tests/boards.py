# SPDX-License-Identifier: Apache-2.0
"""Every query of the dashboards but that of runs in progress, put to a real server as ``howdah serve`` starts it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from howdah.publish.board import boards
from howdah.publish.prometheus import Prometheus
from howdah.publish.scrape import scrape_results
from howdah.publish.serve import Importer
from howdah.publish.server import Client, Value, running

_LIMIT_S = 60.0
_SWEEP = "howdah-sweep"
_LONG = "7300d"  # the runs of tests may be dated years ago


@contextmanager
def served(runs: Path, data: Path, prometheus: Prometheus) -> Iterator[Client]:
    """A server over all runs in a directory, which scrapes their results."""
    data.mkdir()
    importer = Importer(runs, data, prometheus)
    importer.look()
    with scrape_results(importer.finished) as live, running(prometheus, data, live=live) as server:
        yield Client(server.url)


def queries(*, of_sweep: bool = False) -> list[tuple[str, str]]:
    """Each with its panel, as Grafana sends it when all is chosen: of what is finished, or of a sweep that goes on."""
    found = []
    for board in boards():
        if (board.uid == _SWEEP) != of_sweep:
            continue
        for panel in board.grafana()["panels"]:
            for target in panel["targets"]:
                query = target["expr"].replace("$__interval", _LONG)
                found.append((f"{board.uid}: {panel['title']}", re.sub(r"\$\w+", ".*", query)))
    return found


def answer(client: Client, query: str) -> list[Value]:
    """What a query answers as soon as that is something; nothing is an answer at the limit only."""
    limit = time.monotonic() + _LIMIT_S
    while True:
        found = client.instant(query, int(time.time() * 1000))
        if found or time.monotonic() > limit:
            return found
        time.sleep(0.2)


def unanswered(client: Client) -> list[str]:
    """Panels that would stay empty."""
    return [name for name, query in queries() if not answer(client, query)]
