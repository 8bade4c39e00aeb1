# SPDX-License-Identifier: Apache-2.0
"""Connect a client to a running scheduler, or to a cluster started for one command: on this machine, on other machines
over SSH, or as SLURM jobs.
"""

from __future__ import annotations

import logging
import os
import shlex
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import dask
from distributed import Client, LocalCluster, Security
from tornado.web import ErrorHandler

from howdah.cluster import worker
from howdah.cluster.held import NAME as HELD
from howdah.cluster.place import Place, Tell
from howdah.cluster.reach import AUTHORITY, CERTIFICATE, KEY, check_scheduler, require_tls
from howdah.distribution import install_extra
from howdah.errors import HowdahError
from howdah.profile.source import parse_yaml, read_text
from howdah.publish.guard import LOOPBACK, is_loopback, refusal

ADDRESS = f"{LOOPBACK}:0"
_SCHEDULER, _WORKER = ("distributed.scheduler.http.routes", "distributed.worker.http.routes")
_ROUTES = list(dask.config.get(_SCHEDULER))
# Without this, Dask opens a port for pages in every process, even without a dashboard.
NO_PAGES: dict[str, list[str]] = {_SCHEDULER: [], _WORKER: []}
PAGES: dict[str, list[str]] = {_SCHEDULER: _ROUTES}


def guard(scheduler: Any) -> None:
    """Apply the rules of howdah/publish/guard.py to all of Dask's pages, Bokeh's included."""
    application, port = scheduler.http_application, scheduler.http_server.port
    found = application.find_handler

    def find_handler(request: Any, **options: Any) -> Any:
        refused = refusal(request.headers, LOOPBACK, port)
        if refused is None:
            return found(request, **options)
        return application.get_handler_delegate(request, ErrorHandler, {"status_code": refused[0]})

    application.find_handler = find_handler


_PYTHON = f"env PYTHONSAFEPATH=1 {shlex.quote(sys.executable)}"  # Dask inserts it into a shell command


def ssh_cluster(file: Path, security: Security | None) -> Any:
    """Start the scheduler on the first host, and on each host a worker with one thread per core."""
    hosts = read_hosts(file)
    try:
        import asyncssh  # noqa: F401
        from distributed import SSHCluster
    except ImportError as error:
        raise HowdahError(f"--cluster ssh needs {error.name}", hint=install_extra("ssh")) from error
    addresses = _addresses(hosts)
    for host, address in addresses.items():
        require_tls(address or host, security)
    scheduler: dict[str, object] = {"dashboard": False, "dashboard_address": ADDRESS, "port": 0, "preload": [HELD]}
    if addresses[hosts[0]] is not None:
        scheduler["host"] = addresses[hosts[0]]  # otherwise Dask listens on every address
    if security is not None:
        scheduler["protocol"] = "tls://"
    workers: dict[str, object] = {"dashboard_address": ADDRESS, "preload_nanny": [HELD], "memory_limit": 0}
    if (address := _common(addresses)) is not None:
        workers["host"] = address
    try:
        with dask.config.set(_certificates(security)):  # the started processes inherit this configuration
            return SSHCluster(
                [hosts[0], *hosts],
                connect_options={},  # ~/.ssh/config has users, ports and keys
                scheduler_options=scheduler,
                worker_options=workers,
                remote_python=_PYTHON,
                security=security,
            )
    except Exception as error:
        raise HowdahError(
            f"the cluster cannot be started over SSH: {explain_ssh(error)}",
            where=str(file),
            hint=f"Each host must let you in without a password, and have howdah in {sys.executable}.",
        ) from error


def explain_ssh(error: Exception) -> str:
    """Return the message of the connection's error, which Dask wraps."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return str(cause) or type(cause).__name__


def _certificates(security: Security | None) -> dict[str, str | bool]:
    """Return Dask's configuration of certificates, which are at the same path on every host."""
    if security is None:
        return {}
    settings: dict[str, str | bool] = {"distributed.comm.require-encryption": True}
    for role in ("scheduler", "worker", "client"):
        found = security.get_tls_config_for_role(role)
        settings |= {f"distributed.comm.tls.{role}.{kind}": found[kind] for kind in ("cert", "key")}
        settings["distributed.comm.tls.ca-file"] = found["ca_file"]
    return settings


def _addresses(hosts: list[str]) -> dict[str, str | None]:
    """Map each host to the address at which others reach it. None: only SSH knows the name, or it is this machine's
    loopback while other hosts are remote."""
    found: dict[str, str | None] = {}
    for host in hosts:
        found[host] = None
        with suppress(OSError):
            found[host] = str(socket.getaddrinfo(host.rpartition("@")[2], None, type=socket.SOCK_STREAM)[0][4][0])
    if not all(address is not None and is_loopback(address) for address in found.values()):
        found = {host: None if address is None or is_loopback(address) else address for host, address in found.items()}
    return found


def _common(addresses: dict[str, str | None]) -> str | None:
    """Return the address for all workers, which get the same options, if that is loopback; else None."""
    found = set(addresses.values())
    only = found.pop() if len(found) == 1 else None
    return only if only is not None and is_loopback(only) else None


def read_hosts(file: Path) -> list[str]:
    """Read a file with one host per line; text after # is a comment. Raise HowdahError for an empty list."""
    lines = read_text(file, "list of hosts").splitlines()
    hosts = [host for line in lines if (host := line.partition("#")[0].strip())]
    if not hosts:
        raise HowdahError("the list of hosts is empty", where=str(file))
    return hosts


def slurm_cluster(file: Path, security: Security | None) -> Any:
    """Submit as many jobs as ``jobs`` in the file says. Its other settings go to dask_jobqueue.SLURMCluster."""
    try:
        from dask_jobqueue import SLURMCluster
    except ImportError as error:
        raise HowdahError("--cluster slurm needs dask-jobqueue", hint=install_extra("slurm")) from error
    settings = {"processes": 1, "python": _PYTHON} | read_settings(file)
    jobs = settings.pop("jobs", 1)
    if not isinstance(jobs, int) or jobs < 1:
        raise HowdahError(f"jobs: expected the number of jobs, not {jobs!r}", where=str(file))
    if settings.get("interface") != "lo":
        require_tls("SLURM's nodes", security)
    try:
        cluster = SLURMCluster(**settings, security=security)
        cluster.scale(jobs=jobs)
    except Exception as error:
        raise HowdahError(f"the cluster cannot be started: {error}", where=str(file)) from error
    return cluster


def read_settings(file: Path) -> dict[str, Any]:
    """Read a YAML file with one mapping. Raise HowdahError for anything else."""
    value, _places = parse_yaml(read_text(file, "file of settings"), str(file))
    if not isinstance(value, dict):
        raise HowdahError("this is not a mapping of settings", where=str(file))
    return value


_CONNECT_S = 20
# Settings of all Dask processes. allowed-failures: the client, not the scheduler, gives a lost worker's runs to others,
# because it waits for those that may be finished. low-level-log-length: logged messages keep packed runs in memory.
# default-task-durations: the scheduler learns no duration from a task that raises (worker.MadeError), and keeps every
# task of unknown duration; 500 ms is what it would assume.
SETTINGS = {
    "distributed.scheduler.allowed-failures": 0,
    "distributed.admin.low-level-log-length": 20,
    "distributed.scheduler.default-task-durations": {worker.TASK: "500ms"},
    **NO_PAGES,
}


@contextmanager
def connected(place: Place, tell: Tell) -> Iterator[Client]:
    """Yield a connected client. Raise HowdahError if the scheduler does not answer or no cluster can start."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # howdah reports what matters itself
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
    """Return Dask's settings for the certificates in a directory (howdah/cluster/reach.py), or None without a
    directory."""
    if directory is None:
        return None
    files = {name: directory / name for name in (AUTHORITY, CERTIFICATE, KEY)}
    missing = [name for name, file in files.items() if not file.is_file()]
    if missing:
        raise HowdahError(
            f"{missing[0]} is missing among the certificates",
            where=str(directory),
            hint=f"'howdah cluster certificates {directory}' makes them.",
        )
    certificate, key = str(files[CERTIFICATE]), str(files[KEY])
    sides = {f"tls_{side}_{kind}": value for side in ("client", "scheduler", "worker")
             for kind, value in (("cert", certificate), ("key", key))}  # fmt: skip
    return Security(tls_ca_file=str(files[AUTHORITY]), require_encryption=True, **sides)
