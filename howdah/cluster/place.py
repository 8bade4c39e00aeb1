# SPDX-License-Identifier: Apache-2.0
"""Parse from a command's options where its runs are made: on this machine, or by the workers of a Dask cluster."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from howdah.errors import UsageError

SCHEDULER_VARIABLE, TLS_VARIABLE = "HOWDAH_SCHEDULER", "HOWDAH_TLS"
_ADDRESS = re.compile(r"(?:tcp|tls)://[^/\s]+:\d+")
_KINDS = "local, local:N, ssh:hosts.txt or slurm:cluster.yaml"
Tell = Callable[[str], None]


class DetachedError(KeyboardInterrupt):
    """The terminal has closed: the command ends and the cluster goes on."""


@dataclass(frozen=True)
class Place:
    """Where runs are made: by the cluster of ``scheduler``, an address, or by a cluster to start of this ``kind`` and
    ``argument``. Without either it is this machine.

    ``store`` is the URL of a store where workers put finished runs.
    """

    scheduler: str | None = None
    kind: str | None = None
    argument: str = ""
    tls: Path | None = None
    store: str | None = None


def read_place(scheduler: str | None, cluster: str | None, tls: Path | None = None, store: str | None = None) -> Place:
    """Parse the options, with defaults from the environment. Raise UsageError for invalid options."""
    named = os.environ.get(TLS_VARIABLE)
    certificates = tls or (Path(named) if named else None)
    if scheduler is not None and cluster is not None:
        raise UsageError("--scheduler names an existing cluster, --cluster starts one: give only one of them")
    if cluster is not None:
        kind, _, argument = cluster.partition(":")
        number = kind == "local" and (not argument or (argument.isdecimal() and 1 <= int(argument) <= 1024))
        if not number and (kind not in ("ssh", "slurm") or not argument):
            raise UsageError(f"--cluster {cluster}: there is no such kind of cluster", hint=f"The kinds are {_KINDS}.")
        return Place(kind=kind, argument=argument, tls=certificates, store=store)
    address = scheduler or os.environ.get(SCHEDULER_VARIABLE)
    if not address:
        if store is not None:
            raise UsageError("--store is for runs of a cluster", hint="Give --scheduler or --cluster, too.")
        return Place()
    if not _ADDRESS.fullmatch(address):
        raise UsageError(
            f"{address!r} is not the address of a scheduler", hint="Write tcp://HOST:8786 or tls://HOST:8786."
        )
    return Place(scheduler=address, tls=certificates, store=store)
