# SPDX-License-Identifier: Apache-2.0
"""A scheduler and workers as processes on loopback: each worker has a cache of its own and hardly a program."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from howdah.place import PROJECT

_WITHIN_S = 300.0
_ADDRESS = re.compile(r"(?:tcp|tls)://[0-9.]+:[0-9]+")
_COMMAND = (sys.executable, "-m", "howdah.command.main")


class Processes:
    """``place`` gets what each process says as NAME.txt, and a directory for each worker. ``tls`` has certificates, and
    ``more`` is added to the environment of workers."""

    def __init__(self, place: Path, tls: Path | None = None, more: Mapping[str, str] | None = None) -> None:
        self.place = place
        self.tls = tls
        self.more = dict(more or {})
        self._started: list[subprocess.Popen[bytes]] = []
        own = ["--tls", str(tls)] if tls else []
        said = self._start("scheduler", ["scheduler", "--port", "0", *own], dict(os.environ))
        self.address = self._said(said)
        self.scheduler = self._started[0]

    def _start(self, name: str, arguments: list[str], environment: dict[str, str]) -> Path:
        said = self.place / f"{name}.txt"
        with said.open("wb") as output:
            process = subprocess.Popen(
                [*_COMMAND, "cluster", *arguments],
                stdout=output,
                stderr=output,
                env={**environment, "PYTHONPATH": str(PROJECT)},
                start_new_session=True,
            )
        self._started.append(process)
        return said

    def _said(self, file: Path) -> str:
        found: list[re.Match[str]] = []

        def there() -> bool:
            assert self._started[-1].poll() is None, file.read_text()
            found.extend(_ADDRESS.finditer(file.read_text()))
            return bool(found)

        wait_for(there)
        return found[0][0]

    def worker(self, name: str) -> subprocess.Popen[bytes]:
        """One that is connected, and makes one run at a time."""
        self._said(self._start_worker(name, self.tls))
        return self._started[-1]

    def steady_worker(self) -> None:
        """One that stays for all tests that do not end it."""
        if not (self.place / "steady").exists():
            self.worker("steady")

    def refused_worker(self, name: str, tls: Path | None) -> str:
        """What a worker says that ends because it is refused."""
        said = self._start_worker(name, tls)
        assert self._started[-1].wait(_WITHIN_S) == 1, said.read_text()
        return said.read_text()

    def _start_worker(self, name: str, tls: Path | None) -> Path:
        place = self.place / name
        (place / "bin").mkdir(parents=True)
        for program in ("env", "taskset"):
            (place / "bin" / program).symlink_to(f"/usr/bin/{program}")
        environment = {"PATH": str(place / "bin"), "HOME": str(place), "XDG_RUNTIME_DIR": str(place)}
        environment |= {"HOWDAH_CACHE": str(place / "cache"), "TMPDIR": str(place)}
        own = ["--tls", str(tls)] if tls else []
        return self._start(name, ["worker", self.address, "--jobs", "1", *own], environment | self.more)

    def client(self, *arguments: str) -> subprocess.Popen[bytes]:
        """A command that uses this cluster; what it says goes to client.txt."""
        own = ["--tls", str(self.tls)] if self.tls else []
        with (self.place / "client.txt").open("wb") as said:
            return subprocess.Popen(
                [*_COMMAND, *arguments, "--scheduler", self.address, *own],
                stdout=said,
                stderr=said,
                env={**os.environ, "PYTHONPATH": str(PROJECT)},
            )

    def end(self) -> None:
        for process in self._started:
            process.terminate()
        for process in self._started:
            process.wait()


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _WITHIN_S
    while not what():
        assert time.monotonic() < deadline
        time.sleep(0.05)
