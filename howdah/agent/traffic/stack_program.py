# SPDX-License-Identifier: Apache-2.0
"""A program that is a TCP stack: started in a host's namespace, configured by its environment, read line by line.

It prints ``ready`` when it listens or could connect, ``connected`` when it has a connection, and ``all`` when all
expected bytes have arrived. It prints ``bytes N`` when it has read the peer's FIN or sent its own, and ``unsupported
WHY`` before it ends with status 127. A sender reads ``start`` and ``stop``. A program ends when its standard input
does. docs/stacks.md is the contract.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from howdah.agent.error import AgentError
from howdah.agent.loop import Loop
from howdah.linux.clock import now_ns
from howdah.linux.namespace import Namespace

UNSUPPORTED = 127
_READ_BYTES = 65536
_TAIL_CHARACTERS = 300


@dataclass
class StackReport:
    """The program's messages and when they arrived (CLOCK_MONOTONIC)."""

    ready: bool = False
    connected_ns: int | None = None
    all_ns: int | None = None
    ended_ns: int | None = None
    moved_bytes: int = 0
    unsupported: str | None = None
    other: str | None = None  # the first line outside the protocol


class StackProgram:
    """A stack's process; ``name`` is the stack's, ``output`` is the prefix of its files in raw/."""

    def __init__(self, label: str, name: str, loop: Loop, output: Path) -> None:
        self._label = label
        self.name = name
        self._loop = loop
        self._output = output
        self._process: subprocess.Popen[bytes] | None = None
        self._input: IO[bytes] | None = None
        self._output_file: IO[bytes] | None = None
        self._line = b""
        self._stopping = False
        self._failure: str | None = None
        self.report = StackReport()

    def start(self, namespace: Namespace, program: Path, environment: dict[str, str]) -> None:
        """Start the program. Raises AgentError if it cannot be started."""
        with self._output.with_suffix(".err").open("wb") as errors, namespace.entered():
            try:
                self._process = subprocess.Popen(
                    [str(program)],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    cwd=program.parent,
                    env={"PATH": "/usr/bin:/bin", "LD_LIBRARY_PATH": str(program.parent), **environment},
                )
            except OSError as error:
                raise AgentError(self._label, f"the stack {self.name} cannot be started: {error.strerror}") from error
        assert self._process.stdout is not None
        self._input = self._process.stdin
        self._output_file = self._output.with_suffix(".txt").open("wb")
        os.set_blocking(self._process.stdout.fileno(), False)
        self._loop.when_readable(self._process.stdout.fileno(), self._read_output)

    def wait_until_ready(self, limit_ns: int, poll_ns: int) -> None:
        """Wait for ``ready``. Raises AgentError if the program ends first or ``limit_ns`` passes."""
        end = now_ns() + limit_ns
        while not self.report.ready:
            now = self._loop.run_until(now_ns() + poll_ns)
            if failure := self.failure():
                raise AgentError(self._label, failure)
            if now > end:
                silent = f"the stack {self.name} does not answer: it has not said 'ready' after {limit_ns / 1e9:g} s"
                raise AgentError(self._label, f"{silent}{self._last_output()}")

    def failure(self) -> str | None:
        """Why the program is of no use any more; None while it works."""
        if self._process is None or self.report.ended_ns is not None or self._stopping:
            return self._failure
        status = self._process.poll()
        if status is None:
            return None
        self._read_output(now_ns())
        if status == UNSUPPORTED:
            why = f": {self.report.unsupported}" if self.report.unsupported else self._last_output()
            return f"unsupported by the stack {self.name}{why}"
        how = f"signal {-status}" if status < 0 else f"status {status}"
        return f"the stack {self.name} ended early with {how}{self._last_output()}"

    def send(self, word: str) -> None:
        """Write ``start`` or ``stop`` to its standard input; a program that has ended does not read it."""
        if self._input is not None:
            with contextlib.suppress(BrokenPipeError):
                self._input.write(f"{word}\n".encode())
                self._input.flush()

    def stop(self) -> None:
        """Close its standard input; it must then end its connection, report its bytes, and end."""
        self._failure = self.failure()
        self._stopping = True
        if self._input is not None:
            with contextlib.suppress(BrokenPipeError):
                self._input.close()
            self._input = None

    def close(self) -> None:
        """End it in any case, after reading what it still reports."""
        self.stop()
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        if self._output_file is not None:
            self._read_output(now_ns())
            assert self._process.stdout is not None
            self._loop.when_readable(self._process.stdout.fileno(), None)
            self._process.stdout.close()
            self._output_file.close()
            self._output_file = None

    @property
    def ended(self) -> bool:
        return self._process is not None and self._process.poll() is not None

    def _read_output(self, now: int) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        if self._output_file is None:
            return
        try:
            data = os.read(self._process.stdout.fileno(), _READ_BYTES)
        except BlockingIOError:
            return
        if not data:
            self._loop.when_readable(self._process.stdout.fileno(), None)
        self._output_file.write(data)
        self._output_file.flush()
        *lines, self._line = (self._line + data).split(b"\n")
        for line in lines:
            self._parse_line(line.decode("utf-8", "replace").strip(), now)

    def _parse_line(self, line: str, now: int) -> None:
        word, _, rest = line.partition(" ")
        if line == "ready":
            self.report.ready = True
        elif line == "connected":
            self.report.connected_ns = now
        elif line == "all":
            self.report.all_ns = now
        elif word == "bytes" and rest.isdecimal():
            self.report.moved_bytes = int(rest)
            self.report.ended_ns = None if self._stopping else now
        elif word == "unsupported":
            self.report.unsupported = rest
        elif self.report.other is None:
            self.report.other = line

    def _last_output(self) -> str:
        try:
            text = self._output.with_suffix(".err").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            text = ""
        said = text[-_TAIL_CHARACTERS:] or self.report.other
        return f"; it said: {said}" if said else "; it said nothing"
