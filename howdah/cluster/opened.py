# SPDX-License-Identifier: Apache-2.0
"""Open the executor of a place, and store the command while its cluster works, for ``howdah attach``.

Imports Dask only for a cluster, because it is an optional extra. If the terminal closes (SIGHUP), the runs that were
handed out continue; Ctrl-C ends them. A stored command has an HMAC with a key in the user's cache, because a runs
directory may come from elsewhere and a command can do anything.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from howdah.build.cache import authentication_code, is_authentic
from howdah.cluster.place import DetachedError, Place, Tell
from howdah.distribution import install_extra
from howdah.errors import HowdahError
from howdah.record.directory import read_json, write_json
from howdah.record.provenance import now
from howdah.running import is_running
from howdah.work.job import Executor

_FILE = ".attach.json"
_CODE = "code"


@contextmanager
def attachable(runs: Path, scheduler: str) -> Iterator[None]:
    """Store the command next to its runs until it succeeds."""

    def leave(_signal: int, _frame: FrameType | None) -> None:
        raise DetachedError

    file = runs / _FILE
    with suppress(OSError):
        runs.mkdir(parents=True, exist_ok=True)
        words = {"arguments": sys.argv[1:], "directory": str(Path.cwd())}
        kept = {**words, "scheduler": scheduler, "process": os.getpid(), "started": now()}
        write_json(file, {**kept, _CODE: authentication_code(_content(kept))})
    before = signal.signal(signal.SIGHUP, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)
    file.unlink(missing_ok=True)


def attached(runs: Path) -> tuple[list[str], Path]:
    """Return arguments and directory of the stored command.

    Raise HowdahError if it is missing, still running, or was not stored by this user.
    """
    try:
        found = read_json(runs / _FILE)
    except FileNotFoundError:
        raise HowdahError(
            "no command that used a cluster was interrupted here",
            where=str(runs),
            hint="Name the directory of its runs with --runs DIR.",
        ) from None
    kept = found if isinstance(found, dict) else {}
    if not is_authentic(_content(kept), kept.get(_CODE)):
        raise HowdahError(
            "the command in this file was not stored by you with this cache",
            where=str(runs / _FILE),
            hint="Run the command again yourself with the same --runs: finished runs of its workers are used.",
        )
    if is_running(kept["process"]) and kept["process"] != os.getpid():
        raise HowdahError(f"that command is still running (process {kept['process']})", where=str(runs))
    return list(kept["arguments"]), Path(kept["directory"])


def _content(kept: dict[str, Any]) -> bytes:
    content = {name: value for name, value in kept.items() if name != _CODE}
    return b"attach\0" + json.dumps(content, sort_keys=True).encode()


@contextmanager
def executor_at(
    place: Place, tell: Tell, *, runs: Path | None = None, again: bool = False
) -> Iterator[Executor | None]:
    """Yield the executor of a place; None means this machine. The command and its numbers are stored in ``runs``.

    Raise HowdahError if the cluster cannot be reached or started.
    """
    if place.scheduler is None and place.kind is None:
        yield None
        return
    with needs_dask():
        from howdah.cluster.connect import connected
        from howdah.cluster.executor import ClusterExecutor
        from howdah.cluster.store import SharedStore
    with ExitStack() as stack:
        shared = SharedStore(place.store) if place.store is not None else None
        client = stack.enter_context(connected(place, tell))
        if place.scheduler is not None and runs is not None:
            stack.enter_context(attachable(runs, place.scheduler))
        yield ClusterExecutor(client, tell, again=again, runs=runs, shared=shared)


@contextmanager
def needs_dask() -> Iterator[None]:
    """Guard imports of Dask: raise HowdahError if it is not installed."""
    try:
        yield
    except ImportError as error:
        raise HowdahError(
            f"runs on a cluster need Dask, which is not installed ({error.name})",
            hint=f"{install_extra('cluster')}; without --scheduler and --cluster this machine makes the runs",
        ) from error
