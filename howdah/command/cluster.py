# SPDX-License-Identifier: Apache-2.0
"""``howdah cluster`` starts a scheduler or workers and makes their certificates; ``howdah attach`` continues a command
that was interrupted while its cluster kept working."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from howdah.cluster.opened import attached, needs_dask
from howdah.cluster.place import TLS_VARIABLE, read_place
from howdah.command.common import add_runs_option, cores
from howdah.command.interruption import RUNS_KEPT
from howdah.errors import HowdahError, UsageError, explain
from howdah.layout import write_stderr, write_stdout
from howdah.place import OWN_PYTHON

_LOOPBACK = "127.0.0.1"
_DAYS = 365


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    scheduler = actions.add_parser("scheduler", help="start the scheduler that gives runs to workers; Ctrl-C ends it")
    scheduler.add_argument(
        "--host", default=_LOOPBACK, metavar="ADDRESS", help="the address to listen on (default: 127.0.0.1)"
    )
    scheduler.add_argument(
        "--port", type=int, default=8786, metavar="N", help="port to listen on; 0 takes a free one (default: 8786)"
    )
    scheduler.add_argument("--dashboard", type=int, metavar="PORT", help="serve Dask's dashboard on loopback")
    _add_tls(scheduler)
    scheduler.set_defaults(execute=_scheduler)
    worker = actions.add_parser(
        "worker", help="start a worker that makes runs for the clients of a scheduler; Ctrl-C ends it"
    )
    worker.add_argument("scheduler", help="the scheduler's address: tcp://HOST:8786")
    worker.add_argument("--jobs", "-j", type=int, metavar="N", help="parallel runs (default: one per core)")
    worker.add_argument("--host", metavar="ADDRESS", help="the address at which others reach this worker")
    _add_tls(worker)
    worker.set_defaults(execute=_worker)
    certificates = actions.add_parser("certificates", help="make the TLS certificates of a cluster")
    certificates.add_argument("directory", type=Path, metavar="DIR", help="where to write them")
    certificates.add_argument(
        "--days", type=int, default=_DAYS, metavar="N", help="how long they are valid (default: 365)"
    )
    certificates.set_defaults(execute=_certificates)


def attach_arguments(parser: argparse.ArgumentParser) -> None:
    add_runs_option(parser)
    parser.set_defaults(interrupted=RUNS_KEPT)


def _add_tls(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tls", type=Path, metavar="DIR", help="certificates (default: $HOWDAH_TLS)")


def _tls(options: argparse.Namespace) -> Path | None:
    named = os.environ.get(TLS_VARIABLE)
    return options.tls or (Path(named) if named else None)


def _say(text: str) -> None:
    write_stderr(f"howdah: {text}\n")


def _run_until_stopped(serve: Callable[..., None], *arguments: Any) -> int:
    try:
        serve(*arguments, _say)
    except OSError as error:
        raise HowdahError(f"this address cannot be used: {explain(error)}") from error
    return 0


def _scheduler(options: argparse.Namespace) -> int:
    with needs_dask():
        from howdah.cluster.serve import run_scheduler
    return _run_until_stopped(run_scheduler, options.host, options.port, options.dashboard, _tls(options))


def _worker(options: argparse.Namespace) -> int:
    with needs_dask():
        from howdah.cluster.serve import run_worker
    if options.jobs is not None and options.jobs < 1:
        raise UsageError("--jobs must be at least 1")
    read_place(options.scheduler, None)
    return _run_until_stopped(run_worker, options.scheduler, options.jobs or cores(), options.host, _tls(options))


def _certificates(options: argparse.Namespace) -> int:
    with needs_dask():
        from howdah.cluster.reach import make_certificates
    if not 1 <= options.days <= 36500:
        raise UsageError("--days must be from 1 to 36500")
    for file in make_certificates(options.directory, options.days):
        write_stdout(f"{file}\n")
    return 0


def attach_execute(options: argparse.Namespace) -> int:
    arguments, directory = attached(options.runs)
    _say(f"again: howdah {' '.join(arguments)}")
    os.environ["HOWDAH_RUNS"] = str(options.runs.resolve())  # its arguments may lack --runs
    os.chdir(directory)
    os.execv(OWN_PYTHON[0], [*OWN_PYTHON, "-m", "howdah.command.main", *arguments])
