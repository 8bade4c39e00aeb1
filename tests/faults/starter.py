# SPDX-License-Identifier: Apache-2.0
"""Starts commands as forks of a process that has loaded howdah (``started.py``). Not for several threads."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.trial import ROOT

_MODULE = "tests.faults.started"
_NEVER_S = 60.0  # a busy machine takes its time to load


@dataclass(frozen=True)
class Request:
    """``limits`` are by the names of Python's ``resource``."""

    arguments: list[str]
    environment: dict[str, str]
    directory: str
    said: str
    limits: dict[str, int] = field(default_factory=dict)
    recorded: bool = False
    operations: str = ""


class Started:
    """The part of ``subprocess.Popen`` that trials need."""

    def __init__(self, starter: Starter, pid: int) -> None:
        self._starter = starter
        self.pid = pid
        self.returncode: int | None = None
        self.resident_bytes = 0

    def poll(self) -> int | None:
        if self.returncode is None:
            self._starter.listen(0.0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        deadline = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            left = 3600.0 if deadline is None else deadline - time.monotonic()
            if left < 0 and timeout is not None:
                raise subprocess.TimeoutExpired("howdah", timeout)
            self._starter.listen(max(left, 0.0))
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class Starter:
    """The process that forks, which has nothing of a sandbox's about it.

    What the first of each command has loaded, the later ones find.
    """

    def __init__(self) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("HOWDAH")}
        # Threads do not survive a fork.
        own = {"PYTHONPATH": str(ROOT), "LC_ALL": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", _MODULE],
            cwd="/",
            env={**kept, **own},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # a Ctrl-C is for who asks
        )
        self._lists = tempfile.TemporaryDirectory(prefix="loaded-")
        self._known: set[str] = set()
        self._heard = b""
        self._running: dict[int, Started] = {}
        self._begun: list[Started] = []
        self._loaded = False

    def start(self, request: Request) -> Started:
        self._learn()
        command = request.arguments[0]
        lists_in = "" if command in self._known else str(Path(self._lists.name) / command)
        self._ask({**asdict(request), "loaded": lists_in})
        while not self._begun:
            self._must_listen()
        return self._begun.pop()

    def listen(self, seconds: float) -> None:
        """Take what was answered, within that time."""
        out = self._process.stdout
        assert out is not None
        if not select.select([out], [], [], seconds)[0]:
            return
        got = os.read(out.fileno(), 1 << 16)
        if not got:
            raise AssertionError(f"{_MODULE} ended with {self._process.wait()}")
        *lines, self._heard = (self._heard + got).split(b"\n")
        for line in lines:
            self._take(json.loads(line))

    def end(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()
        self._lists.cleanup()

    def _learn(self) -> None:
        for file in Path(self._lists.name).glob("[!.]*"):
            self._loaded = False
            self._ask({"load": json.loads(file.read_text())})
            while not self._loaded:
                self._must_listen()
            self._known.add(file.name)
            file.unlink()

    def _ask(self, request: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()

    def _must_listen(self) -> None:
        before = time.monotonic()
        self.listen(_NEVER_S)
        if time.monotonic() - before > _NEVER_S:
            raise AssertionError(f"{_MODULE} does not answer")

    def _take(self, answer: dict[str, int]) -> None:
        if "loaded" in answer:
            self._loaded = True
        elif "status" not in answer:
            started = self._running[answer["pid"]] = Started(self, answer["pid"])
            self._begun.append(started)
        else:
            started = self._running.pop(answer["pid"])
            started.returncode = os.waitstatus_to_exitcode(answer["status"])
            started.resident_bytes = answer["resident_bytes"]
