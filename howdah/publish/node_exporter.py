# SPDX-License-Identifier: Apache-2.0
"""Prometheus' node_exporter on loopback, for the processors and the memory of the machine; found or fetched like
Prometheus itself (Debian's package ``prometheus-node-exporter``, unpacked in the cache, no service)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from howdah.build.cache import cache_root
from howdah.publish.guard import LOOPBACK
from howdah.publish.password import Password, new_password
from howdah.publish.prometheus import PrometheusUnavailableError, fetched
from howdah.publish.server import free_port

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
    return fetched(PACKAGE, find, "Install it as node_exporter in PATH.")


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
