# SPDX-License-Identifier: Apache-2.0
"""Prometheus' node_exporter on loopback, for the processors and the memory of the machine; found or fetched like
Prometheus itself (Debian's package ``prometheus-node-exporter``, unpacked in the cache, no service)."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from howdah.build.cache import cache_root
from howdah.publish.guard import LOOPBACK
from howdah.publish.password import Password, new_password
from howdah.publish.prometheus import PrometheusUnavailableError, unpack
from howdah.publish.server import free_port
from howdah.scratch import scratch

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
    if found := find():
        return found
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise PrometheusUnavailableError(
            "node_exporter is not on this machine and cannot be fetched without apt-get and dpkg-deb",
            hint="Install it as node_exporter in PATH.",
        )
    target = cache_root() / PACKAGE
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with (target.parent / f".lock-{PACKAGE}").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if found := find():
                return found
            for stale in target.parent.glob(f".{PACKAGE}-*"):  # of commands that were killed: the lock is ours
                shutil.rmtree(stale, ignore_errors=True)
            with scratch(f".{PACKAGE}-", target.parent) as place:
                unpack(PACKAGE, place, target)
    except OSError as error:
        raise PrometheusUnavailableError(
            f"node_exporter cannot be unpacked: {error.strerror}", where=str(target.parent), hint="Set $HOWDAH_CACHE."
        ) from error
    found = find()
    if found is None:
        raise PrometheusUnavailableError(f"Debian's package {PACKAGE} holds no usr/bin/{PACKAGE}", where=str(target))
    return found


@contextmanager
def node_exporter(program: Path, directory: Path) -> Iterator[tuple[str, Password]]:
    """Run it for the length of a ``with`` block; yields its address and the password it needs, which is written to
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
