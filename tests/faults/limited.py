# SPDX-License-Identifier: Apache-2.0
"""A process that reads inputs under limits of memory and processor time, and is replaced when one of them ends it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any

LIMIT_S = 2.0
LIMIT_BYTES = 1 << 30
_COMMAND_BYTES = 3 << 30  # address space: Arrow reserves more than it uses
_WARM_UP_S = 60.0
_WALL_S = 120.0  # only for a process that waits for ever: it uses no processor time


@dataclass(frozen=True)
class Answer:
    """``outcome``: accepted, refused, traceback, slow, large or hung; ``said`` is the reason."""

    outcome: str
    said: str
    where: str | None = None
    processor_s: float = 0.0

    @property
    def is_fault(self) -> bool:
        return self.outcome not in ("accepted", "refused")


class Limited:
    """A worker of ``limited_worker.py``. Not for several threads."""

    def __init__(
        self,
        directory: Path,
        warm_up: dict[str, Any],
        environment: dict[str, str] | None = None,
        *,
        commands: bool = False,
    ) -> None:
        """``warm_up`` is a good input that every new process gets first, so that it has loaded its libraries."""
        self.directory = directory
        self.warm_up = warm_up
        self.environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2", **(environment or {})}
        self.memory_bytes = _COMMAND_BYTES if commands else LIMIT_BYTES
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Limited:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._end()
        self._errors.close()

    def ask(self, request: dict[str, Any], limit_s: float = LIMIT_S) -> Answer:
        """Give the input to the worker."""
        if self._process is None:
            self._process = self._start()
            answer = self._ask(self._process, self.warm_up, _WARM_UP_S)
            if answer.outcome != "accepted":
                raise AssertionError(f"the good input is {answer.outcome}: {answer.said}")
        answer = self._ask(self._process, request, limit_s)
        if answer.is_fault or answer.processor_s <= limit_s:
            return answer
        # The timer counts ticks, this clock everything: a virtual machine that was stopped meanwhile is not in both.
        answer = self._ask(self._process, request, limit_s)
        if answer.is_fault or answer.processor_s <= limit_s:
            return answer
        return replace(answer, outcome="slow", said=f"it used {answer.processor_s:g} s of a processor, twice")

    def _ask(self, process: subprocess.Popen[bytes], request: dict[str, Any], limit_s: float) -> Answer:
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it ended after its last answer: what follows tells how
            process.stdin.write(json.dumps({**request, "limit_s": limit_s}).encode() + b"\n")
            process.stdin.flush()
        if not select.select([process.stdout], [], [], _WALL_S)[0]:
            self._end()
            return Answer("hung", f"no answer in {_WALL_S:g} s, and no processor time used")
        line = process.stdout.readline()
        if line:
            answer = json.loads(line)
            if answer["outcome"] == "traceback" and "MemoryError" in answer["said"]:
                answer["outcome"] = "large"
            return Answer(**answer)
        status = process.wait()
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace")
        self._end()
        outcome = "slow" if status == -27 else "died"
        return Answer(outcome, f"ended by {status}\n{said[-4000:]}", processor_s=limit_s)

    def _start(self) -> subprocess.Popen[bytes]:
        self._errors.seek(0)
        self._errors.truncate()
        return subprocess.Popen(
            [sys.executable, "-m", "tests.faults.limited_worker", str(self.memory_bytes)],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # a Ctrl-C is for who asks
        )

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    with contextlib.suppress(BrokenPipeError):
                        pipe.close()
            self._process.wait()
            self._process = None
