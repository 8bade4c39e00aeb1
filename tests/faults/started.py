# SPDX-License-Identifier: Apache-2.0
"""``python -P -m tests.faults.started``: a process that has loaded howdah, and forks for every command.

Most of a short command's processor time is Python's start and the loading of libraries. A fork has both behind it.
A request is a line of JSON on standard input (``starter.Request``). An answer is one on standard output:
``{"pid": …}`` for a command that has begun, and its wait status and largest memory when it has ended.
The process has nothing of a sandbox in its words and environment, so it is none of the sandbox's processes.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import resource
import select
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from howdah.command.main import program
from tests.faults.operations import Operations
from tests.unit.recorded_run import recorded_compiler


def _answer(**said: int) -> None:
    os.write(1, json.dumps(said).encode() + b"\n")


def _serve() -> dict[str, Any] | None:
    """Fork for each request: None at the end of standard input, and in a fork the request."""
    ready, wake = os.pipe()
    for end in (ready, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    waiting = b""
    while True:
        for name in select.select([0, ready], [], [])[0]:
            if name == ready:
                with contextlib.suppress(BlockingIOError):
                    os.read(ready, 4096)
                _tell_ended()
                continue
            got = os.read(0, 1 << 20)
            if not got:
                return None
            *lines, waiting = (waiting + got).split(b"\n")
            for line in lines:
                request: dict[str, Any] = json.loads(line)
                if "load" in request:
                    _load(request["load"])
                    _answer(loaded=len(sys.modules))
                    continue
                pid = os.fork()
                if pid == 0:
                    signal.set_wakeup_fd(-1)
                    for end in (ready, wake):
                        os.close(end)
                    return request
                _answer(pid=pid)


def _tell_ended() -> None:
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status, used = os.wait4(-1, os.WNOHANG)
            if not pid:
                return
            _answer(pid=pid, status=status, resident_bytes=used.ru_maxrss * 1024)


def _load(names: list[str]) -> None:
    for name in names:
        with contextlib.suppress(Exception):  # what one command has loaded may be of no use to another
            importlib.import_module(name)
    gc.collect()
    gc.freeze()


def _become(request: dict[str, Any]) -> None:
    """The process of a command, as it was started by a shell."""
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["directory"])
    said = os.open(request["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, file in enumerate((nothing, said, said)):
        os.dup2(file, number)
    for file in (nothing, said):
        os.close(file)
    for name, value in request["limits"].items():
        resource.setrlimit(getattr(resource, name), (value, value))
    tempfile.tempdir = None
    sys.argv = ["howdah", *request["arguments"]]


def _list_modules(file: Path) -> None:
    """Whole or not at all: this may be killed, too."""
    beside = file.with_name(f".{file.name}-{os.getpid()}")
    beside.write_text(json.dumps([name for name in sorted(sys.modules) if name != "__main__"]))
    beside.replace(file)


def main() -> int:
    request = _serve()
    if request is None:
        return 0
    _become(request)
    if request["operations"]:
        Operations(Path(request["operations"])).watch()
    try:
        with recorded_compiler() if request["recorded"] else contextlib.nullcontext():
            return program()
    finally:
        if request["loaded"]:
            _list_modules(Path(request["loaded"]))


if __name__ == "__main__":
    sys.exit(main())
