# SPDX-License-Identifier: Apache-2.0
"""``howdah.load``: runs, or recorded transfers, as tidy tables."""

from __future__ import annotations

import os
from pathlib import Path

from howdah.errors import HowdahError
from howdah.library.data import Data
from howdah.library.recording import Recording
from howdah.work.experiment import find

Place = str | os.PathLike[str]


def load(*places: Place, runs: Place | None = None, every: bool = False) -> Data:
    """Experiments and runs as tables, or recordings: captures and logs, as ``howdah explain`` reads them.

    A place is a directory, or a name as ``howdah list runs`` shows it (``quick``, ``quick/cubic-r0``, ``latest``);
    the default is ``latest``. Names are looked up in ``runs`` (default: $HOWDAH_RUNS, or ./runs). A place that is a
    file is a recording (``Recording``); those of one connection are joined.

    Tables and metrics have the runs that count; with ``every`` also those that are invalid. Raises HowdahError for a
    missing place. Results are read later, when a table is asked for.
    """
    given = [Path(os.fspath(place)) for place in places]
    files = [path for path in given if path.is_file()]
    if files and len(files) < len(given):
        raise HowdahError("these are recordings and runs", where=str(files[0]), hint="Load them one after the other.")
    if files:
        return Recording(files)
    root = Path(runs if runs is not None else os.environ.get("HOWDAH_RUNS") or "runs")
    return Data([find(root, os.fspath(place)) for place in places or ("latest",)], every=every)
