# SPDX-License-Identifier: Apache-2.0
"""The entry points ``howdah.load`` (runs or recordings as tables) and ``howdah.run`` (make runs from a program)."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from howdah.errors import ExitCode, HowdahError
from howdah.library.data import Data
from howdah.library.recording import Recording
from howdah.number import counted
from howdah.profile import load as load_profile
from howdah.work.batch import Events, RunEvent
from howdah.work.catalogue import find_profile
from howdah.work.compiled import compile_plans
from howdah.work.experiment import find, set_latest
from howdah.work.prepared import hold, make, prepare

Place = str | os.PathLike[str]


def load(*places: Place, runs: Place | None = None, every: bool = False) -> Data:
    """Load experiments and runs, or recordings (captures and logs that ``howdah explain`` reads), as tidy tables.

    A place is a directory or a name as ``howdah list runs`` prints it (``quick``, ``quick/cubic-r0``, ``latest``); the
    default is ``latest``. Names are looked up in ``runs`` (default: $HOWDAH_RUNS, or ./runs). Places that are files are
    loaded as a ``Recording``; recordings of the same connection are joined.

    Tables and metrics contain only runs that count, unless ``every`` is true. Results are read when a table is first
    used. Raises HowdahError for a missing place.
    """
    given = [Path(os.fspath(place)) for place in places]
    files = [path for path in given if path.is_file()]
    if files and len(files) < len(given):
        raise HowdahError(
            "recordings and runs cannot be loaded together", where=str(files[0]), hint="Load them one after the other."
        )
    if files:
        return Recording(files)
    root = Path(runs if runs is not None else os.environ.get("HOWDAH_RUNS") or "runs")
    return Data([find(root, os.fspath(place)) for place in places or ("latest",)], every=every)


Setting = str | int | float | bool


def run(
    profile: str | Path,
    *,
    settings: Mapping[str, Setting] | None = None,
    runs: str | Path | None = None,
    jobs: int | None = None,
    kernel: str | None = None,
    again: bool = False,
    on_event: Callable[[RunEvent], None] | None = None,
) -> Data:
    """Make the missing runs of a profile and load all of its runs.

    ``settings`` correspond to ``--set``: ``{"path.rtt": "80 ms"}``. ``runs`` is the directory of experiments, by
    default ``$HOWDAH_RUNS`` or ``runs``. ``on_event`` is called with each event (howdah/work/batch.py). No report is
    written; use ``howdah report``. Raises the same HowdahError as the command.
    """
    events = Events(on_event or (lambda _event: None))
    overrides = [f"{name}={_written(value)}" for name, value in (settings or {}).items()]
    read = load_profile(find_profile(str(profile)), overrides)
    plans = compile_plans(read, kernel=kernel)
    base = Path(runs) if runs is not None else Path(os.environ.get("HOWDAH_RUNS") or "runs")
    with ExitStack() as locks:
        experiment = hold(base / read.name, locks)
        prepared = prepare(experiment, read, plans, events.build)
        events.tell({"event": "begin", "experiment": str(experiment.path), "runs": len(plans)})
        workers = jobs or (len(os.sched_getaffinity(0)) if prepared.parallel else 1)
        outcomes = make([prepared], workers, again, events.batch, tell=events.say)
        set_latest(base, experiment)
    errors = [outcome.error for outcome in outcomes if outcome.error is not None]
    events.say(f"{counted(len(plans), 'run')} of {read.name}")
    events.tell({"event": "end", "exit_code": ExitCode.ERROR if errors else ExitCode.DONE})
    if errors:
        raise errors[0]
    return load(experiment.path)


def _written(value: Setting) -> str:
    """The value in the syntax of ``--set``."""
    return str(value).lower() if isinstance(value, bool) else str(value)
