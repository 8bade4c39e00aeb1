# SPDX-License-Identifier: Apache-2.0
"""Connects a client to a running scheduler, or to a cluster started for one command."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import dask
from distributed import Client, LocalCluster, Security

from howdah.cluster import worker
from howdah.cluster.certificate import AUTHORITY, CERTIFICATE, KEY
from howdah.cluster.dashboard import ADDRESS, NO_PAGES, PAGES, guard
from howdah.cluster.place import Place, Tell
from howdah.cluster.reach import LOOPBACK, check_scheduler
from howdah.cluster.remote import slurm_cluster, ssh_cluster
from howdah.errors import HowdahError

_CONNECT_S = 20
# Of Dask, in all its processes. The client gives a lost worker's runs to others: it waits for those that may be
# finished, and the scheduler would not. What scheduler and workers log of what came holds packed runs. Of a task that
# raises (worker.MadeError) the scheduler learns no duration, and it holds on to every task whose duration it does not
# know: it is told the one that it would assume.
SETTINGS = {
    "distributed.scheduler.allowed-failures": 0,
    "distributed.admin.low-level-log-length": 20,
    "distributed.scheduler.default-task-durations": {worker.TASK: "500ms"},
    **NO_PAGES,
}


@contextmanager
def connected(place: Place, tell: Tell) -> Iterator[Client]:
    """Yield a client. Raises HowdahError if the scheduler does not answer or no cluster can start."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters of it is told in our own words
    security = security_of(place.tls)
    with ExitStack() as stack:
        address: Any = place.scheduler
        if place.kind is not None:
            address = stack.enter_context(_started(place, security))
        try:
            if place.scheduler is not None:
                check_scheduler(place.scheduler, place.tls, _CONNECT_S)
            client = Client(
                address, timeout=_CONNECT_S, security=security, set_as_default=False, direct_to_workers=True
            )
        except (OSError, TimeoutError, ValueError) as error:
            raise HowdahError(
                f"the scheduler does not answer: {error}",
                where=place.scheduler,
                hint="'howdah cluster scheduler' starts one.",
            ) from error
        try:
            tell(f"cluster: {client.scheduler.address}, dashboard {client.dashboard_link or 'none'}")
            yield client
        finally:
            with suppress(OSError, TimeoutError, RuntimeError):
                client.close(timeout=5)


@contextmanager
def _started(place: Place, security: Any) -> Iterator[Any]:
    dask.config.set(SETTINGS)
    if place.kind == "local":
        number = int(place.argument or len(os.sched_getaffinity(0)))
        with dask.config.set(PAGES):
            cluster: Any = LocalCluster(
                n_workers=number,
                threads_per_worker=1,
                host=LOOPBACK,
                dashboard_address=ADDRESS,
                security=security,
                silence_logs=logging.CRITICAL,
            )
        guard(cluster.scheduler)
    elif place.kind == "ssh":
        cluster = ssh_cluster(Path(place.argument), security)
    else:
        cluster = slurm_cluster(Path(place.argument), security)
    try:
        yield cluster
    finally:
        with suppress(OSError, TimeoutError, RuntimeError):
            cluster.close(timeout=10)


def security_of(directory: Path | None) -> Any:
    """Dask's settings for certificates in a directory (howdah/cluster/certificate.py); None without one."""
    if directory is None:
        return None
    files = {name: directory / name for name in (AUTHORITY, CERTIFICATE, KEY)}
    missing = [name for name, file in files.items() if not file.is_file()]
    if missing:
        raise HowdahError(
            f"there is no {missing[0]} among the certificates",
            where=str(directory),
            hint=f"'howdah cluster certificates {directory}' makes them.",
        )
    certificate, key = str(files[CERTIFICATE]), str(files[KEY])
    sides = {f"tls_{side}_{kind}": value for side in ("client", "scheduler", "worker")
             for kind, value in (("cert", certificate), ("key", key))}  # fmt: skip
    return Security(tls_ca_file=str(files[AUTHORITY]), require_encryption=True, **sides)
