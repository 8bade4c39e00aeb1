# SPDX-License-Identifier: Apache-2.0
"""One guest: a user-mode kernel started, watched and ended. Nothing of it outlives the process that started it."""

from __future__ import annotations

import json
import os
import re
import secrets
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from howdah.engine.uml import memory
from howdah.engine.uml.life import Life
from howdah.engine.uml.processor import own_processor
from howdah.engine.uml.profiler import Profiler
from howdah.engine.uml.tools import Tools
from howdah.errors import EngineUnavailableError, RunFailedError

START_NS = 1_700_000_000_000_000_000  # wall clock of every guest when it boots: the same in each, so reruns are equal
CONSOLE_LINES = 15
EXIT_FILE = "guest-exit.json"
_PEAK_FILE = "guest-memory.txt"
_PREFIX = "howdah-guest-"
_POLL_S = 0.2
_SHORT = 60  # characters: a socket in the directory has a name of at most 107
_REBOOTED = 124
_NOT_STARTED = 126
_PLAIN = re.compile(r"[!-~]+")  # what a kernel command line carries unharmed: no space, no control character

Progress = Callable[[str, int, int], None]  # phase, simulated microseconds done, of


@dataclass(frozen=True)
class Guest:
    """What a guest is made of. ``share`` is /howdah/in, ``raw`` is /howdah/out.

    ``command`` runs as the guest's second process and ``kernel_arguments`` join the kernel's command line; neither may
    hold white space. ``seed`` determines every random number the guest draws. ``clock_limit_s`` is in virtual time,
    ``wall_clock_limit_s`` what may pass without virtual time passing. ``profiled`` has perf look at the kernel's
    process (profiler.py).
    """

    kernel: Path
    tree: Path
    tools: Tools
    share: Path
    raw: Path
    console: Path
    command: tuple[str, ...]
    memory_bytes: int
    wall_clock_limit_s: float
    seed: int = 0
    kernel_arguments: tuple[str, ...] = ()
    clock_limit_s: int = 30 * 24 * 3600
    stalled_after_s: float = 20.0
    profiled: bool = False


@dataclass(frozen=True)
class Ending:
    """How the guest's command ended: its exit status, or the signal that killed it."""

    exit_status: int | None
    signal: int | None
    wall_s: float
    memory_peak_bytes: int  # resident, of the kernel's process


def runtime_base() -> Path:
    """Where private directories go: short and without spaces, because kernel command lines break at spaces."""
    named = (os.environ.get("XDG_RUNTIME_DIR"), "/tmp", tempfile.gettempdir())
    for path in (Path(name) for name in named if name):
        short = _PLAIN.fullmatch(str(path)) and len(str(path)) < _SHORT
        if short and path.is_dir() and os.access(path, os.W_OK | os.X_OK):
            return path
    raise EngineUnavailableError(
        "no writable directory with a short name for a guest's control files (tried $XDG_RUNTIME_DIR and /tmp)",
        hint="Set XDG_RUNTIME_DIR to a directory you can write to, without spaces in its name.",
    )


def sweep(base: Path) -> None:
    """Remove private directories whose launcher was itself killed: their owner's process is gone."""
    for directory in base.glob(f"{_PREFIX}*-*"):
        owner = directory.name.removeprefix(_PREFIX).partition("-")[0]
        try:
            old = time.time() - directory.stat().st_mtime > 60 and directory.stat().st_uid == os.geteuid()
        except OSError:
            continue
        if old and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(directory, ignore_errors=True)


def command_line(guest: Guest) -> list[str]:
    """The kernel's arguments (Documentation/virt/uml, ``linux --help``).

    The kernel stirs its command line into its random numbers, so it must be the same in every rerun: it names
    the private directory only as the working directory it is started in (hostfs takes absolute names only).
    """
    mebibytes = -(-guest.memory_bytes // 2**20)
    arguments = [
        f"mem={mebibytes}M",
        "time-travel=inf-cpu",
        f"time-travel-start={START_NS}",
        "hostfs=/proc/self/cwd",
        "root=/dev/root",
        "rootfstype=hostfs",
        "rootflags=/tools",
        "ro",
        "init=/init",
        "con=null",
        "con0=null,fd:1",
        "console=tty0",  # unless it is named, the kernel adds it behind the command
        "ssl=null",
        "uml_dir=.",
        "umid=guest",
        "panic=-1",
        "ipv6.disable=1",
        "quiet",
        f"HOWDAH_CLOCK_LIMIT_S={guest.clock_limit_s}",
        *guest.kernel_arguments,
        "--",
        *guest.command,
    ]
    for argument in arguments:
        if not _PLAIN.fullmatch(argument):
            raise ValueError(f"not a word a kernel command line can carry: {argument!r}")
    return arguments


def boot(guest: Guest, progress: Progress) -> Ending:
    """Run the guest to its end.

    Raises RunFailedError when the guest panics, dies or hangs (the console is kept), and
    EngineUnavailableError when it cannot be started here at all.
    """
    base = runtime_base()
    sweep(base)
    with own_processor(base) as processor:
        return _boot(guest, progress, base, processor)


def _boot(guest: Guest, progress: Progress, base: Path, processor: int | None) -> Ending:
    private = base / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
    links = {
        "tools": guest.tools.directory,
        "tree": guest.tree,
        "in": guest.share,
        "out": guest.raw,
        "shim.so": guest.tools.shim,
        "linux": guest.kernel,
    }
    environment = {
        "PATH": "/usr/bin:/bin",
        "TMPDIR": str(memory.choose(guest.memory_bytes)),
        "HOWDAH_SEED": str(guest.seed % 2**64),
        "LAUNCH_PEAK": str(guest.raw.absolute() / _PEAK_FILE),
    }
    command = [
        str(guest.tools.launch),
        "isolate",
        str(os.getpid()),
        str(private),
        *(f"{name}={target.absolute()}" for name, target in links.items()),
        "--",
        *(["/usr/bin/taskset", "--cpu-list", str(processor)] if processor is not None else []),
        "/usr/bin/env",
        f"LD_PRELOAD={private}/shim.so",
        "./linux",
        *command_line(guest),
    ]
    for name in (EXIT_FILE, _PEAK_FILE):
        (guest.raw / name).unlink(missing_ok=True)
    start = time.monotonic()
    # The console is a file: a guest that waits for the reader of a pipe would see its virtual clock run away.
    with guest.console.open("wb") as console:
        launcher = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=console,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    profiler = Profiler(guest.tools.launch, guest.raw, guest.kernel) if guest.profiled else None
    try:
        if profiler is not None:
            profiler.start(launcher.pid)
        life = Life(launcher.pid, guest.raw / "progress.json", guest.wall_clock_limit_s, guest.stalled_after_s)
        _watch(guest, launcher, life, progress)
    finally:
        if launcher.poll() is None:
            launcher.terminate()  # it kills the guest and removes the private directory
        status = launcher.wait()
        if profiler is not None:
            profiler.finish()
    progress(*life.position())
    if status == _NOT_STARTED:
        raise EngineUnavailableError("the guest could not be started: " + " / ".join(console_tail(guest.console)[-3:]))
    return _ending(guest, status, time.monotonic() - start, life)


def _watch(guest: Guest, launcher: subprocess.Popen[bytes], life: Life, progress: Progress) -> None:
    descriptor = os.pidfd_open(launcher.pid)
    try:
        while not select.select([descriptor], [], [], _POLL_S)[0]:
            progress(*life.position())
            trouble = life.trouble()
            if trouble:
                raise _failure(trouble, guest)
    finally:
        os.close(descriptor)


def _ending(guest: Guest, status: int, wall_s: float, life: Life) -> Ending:
    try:
        value = json.loads((guest.raw / EXIT_FILE).read_text())
        peak_kib = int((guest.raw / _PEAK_FILE).read_text())
        ending = Ending(value["exit"], value["signal"], wall_s, peak_kib * 1024)
    except FileNotFoundError:
        pass  # the kernel ended before its first process could write it
    except (ValueError, KeyError, TypeError):
        raise _failure(f"the guest left an unreadable {EXIT_FILE} or {_PEAK_FILE}; is the disk full?", guest) from None
    else:
        if ending.exit_status is None and ending.signal is None:
            raise _failure(
                f"the guest's clock reached its limit of {guest.clock_limit_s} simulated seconds ({life.where()}): "
                "what ran in it waited for something that never came",
                guest,
            )
        return ending
    panic = next((line for line in console_tail(guest.console, 400) if "Kernel panic" in line), None)
    if panic:
        raise _failure(f"the guest's kernel panicked{panic.partition('Kernel panic')[2]}", guest)
    if status == _REBOOTED:
        raise _failure("the guest rebooted; it was ended", guest)
    how = f"signal {status - 128}" if status > 128 else f"status {status}"
    raise _failure(f"the guest's kernel died ({how}) without switching off", guest)


def _failure(what: str, guest: Guest) -> RunFailedError:
    lines = console_tail(guest.console)
    said = "\n    ".join(lines) if lines else "(nothing)"
    return RunFailedError(what, where=str(guest.console), hint=f"Last lines of the console:\n    {said}")


def console_tail(console: Path, lines: int = CONSOLE_LINES) -> list[str]:
    """The last lines of a console, without empty ones."""
    try:
        with console.open("rb") as file:
            file.seek(max(console.stat().st_size - 64 * 1024, 0))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return []
    return [line.rstrip() for line in text.splitlines() if line.strip()][-lines:]
