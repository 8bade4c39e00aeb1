# SPDX-License-Identifier: Apache-2.0
"""One guest: starts, watches and ends a user-mode kernel. Nothing of it outlives the process that started it."""

from __future__ import annotations

import math
import os
import secrets
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from howdah.agent.traffic.running import RUNNING
from howdah.build.guest_tree import LIBRARIES, LIBRARY_NAME, LOADER, LOADER_NAME
from howdah.build.tools import Tools
from howdah.engine.crash import DIED, PANICKED, crash, kernel_alarm
from howdah.engine.ending import _PLAIN, BOUNDS_FILE, EXIT_FILE, Bounds, Ending, runtime_base
from howdah.engine.life import Life
from howdah.engine.processor import own_processor
from howdah.engine.uml import memory
from howdah.engine.uml.profiler import Profiler
from howdah.errors import EngineUnavailableError, RunFailedError
from howdah.record.directory import read_json
from howdah.record.kernel_log import console_tail, in_use
from howdah.scratch import remove_if_abandoned

START_NS = 1_700_000_000_000_000_000  # wall clock of every guest at boot: fixed, so that reruns are equal
_MEMORY_SLACK_BYTES = 16 << 20  # what the kernel stores in the file besides the memory
_PEAK_FILE = "guest-memory.txt"
_PREFIX = "howdah-guest-"
POLL_S = 0.2
_ILL_AFTER_S = 10.0  # processor seconds for one simulated second, once the kernel has raised an alarm
_REBOOTED = 124
_NOT_STARTED = 126

Progress = Callable[[str, int, int], None]  # phase, simulated microseconds done, all


@dataclass(frozen=True)
class Guest:
    """The parts and limits of a guest. ``share`` is its /howdah/in, ``raw`` its /howdah/out.

    ``command`` runs as the guest's second process and ``kernel_arguments`` join the kernel's command line; neither may
    contain white space. ``seed`` determines every random number that the guest draws. ``clock_limit_s`` is in virtual
    time; ``wall_clock_limit_s`` limits the wall time in which virtual time stands still. ``profiled``: perf samples the
    kernel's process (profiler.py). ``pollers`` and ``busy_limit_s`` are those of ``Life``. ``wire`` is the descriptor
    of the memory shared with other guests (wire.py). ``own_modules`` are the profile's modules in use. ``c_library`` is
    the root whose C library starts the kernel (guest_tree.py); None: this machine's.
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
    wire: int | None = None
    pollers: tuple[str, ...] = ()
    busy_limit_s: float = math.inf
    own_modules: tuple[str, ...] = ()
    c_library: Path | None = None


def sweep(*bases: Path) -> list[Path]:
    """Remove and return private directories, and those of guests' memory, whose launcher was itself killed.

    A launcher holds the lock on its directory.
    """
    found = (path for base in dict.fromkeys(bases) for path in base.glob(f"{_PREFIX}*-*"))
    return [path for path in found if remove_if_abandoned(path, path.name.removeprefix(_PREFIX).partition("-")[0])]


def command_line(guest: Guest) -> list[str]:
    """Return the kernel's arguments (Documentation/virt/uml, ``linux --help``).

    The kernel mixes its command line into its random numbers, so it must be the same in every rerun. It therefore
    refers to the private directory only as the working directory (hostfs takes absolute names only).
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
        "console=tty0",  # otherwise the kernel appends one after the command
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
            raise ValueError(f"this cannot be passed on a kernel command line: {argument!r}")
    return arguments


def boot(guest: Guest, progress: Progress) -> Ending:
    """Run the guest to its end.

    Raises RunFailedError if the guest panics, dies or hangs (the console is kept), EngineUnavailableError if it cannot
    start.
    """
    base = runtime_base()
    sweep(base, *memory.directories())
    with own_processor(base) as processor:
        running = RunningGuest(guest, base, processor)
        try:
            running.watch(progress)
        finally:
            running.stop()
        progress(*running.life.position())
        return running.ending()


def running_programs(raw: Path) -> str:
    """Describe which programs of which flows ran on which hosts when time stood still."""
    try:
        names = list(read_json(raw / "program" / RUNNING).values())
    except (OSError, ValueError, AttributeError):
        return ""
    if not names:
        return ""
    return f"; these programs ran: {'; '.join(map(str, names))}"


class RunningGuest:
    """A started guest. ``stop`` must be called in any case; it ends whatever still runs."""

    def __init__(self, guest: Guest, base: Path, processor: int | None) -> None:
        self.guest = guest
        self._private = base / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(4)}"
        for name in (EXIT_FILE, _PEAK_FILE, BOUNDS_FILE):
            (guest.raw / name).unlink(missing_ok=True)
        self._status: int | None = None
        self._wall_s = 0.0
        self._start = time.monotonic()
        # The console is a file: a guest that waits for the reader of a pipe would have its virtual clock run away.
        with guest.console.open("wb") as console:
            self._launcher = subprocess.Popen(
                self._command(),
                env=self._environment(processor),
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                pass_fds=() if guest.wire is None else (guest.wire,),
            )
        self.life = Life(
            self._launcher.pid,
            guest.raw / "progress.json",
            guest.wall_clock_limit_s,
            guest.stalled_after_s,
            guest.pollers,
            guest.busy_limit_s,
        )
        self._profiler = Profiler(guest.tools.launch, guest.raw, guest.kernel) if guest.profiled else None
        if self._profiler is not None:
            try:
                self._profiler.start(self._launcher.pid)
            except BaseException:
                self.stop()
                raise

    def _command(self) -> list[str]:
        guest = self.guest
        links = {
            "tools": guest.tools.directory,
            "tree": guest.tree,
            "in": guest.share,
            "shim.so": guest.tools.shim,
            "linux": guest.kernel,
        }
        if guest.c_library is not None:
            links |= {LOADER_NAME: guest.c_library / LOADER, LIBRARY_NAME: guest.c_library / LIBRARIES}
        return [
            str(guest.tools.launch),
            "isolate",
            str(os.getpid()),
            str(self._private),
            *(f"{name}={target.absolute()}" for name, target in links.items()),
            f"out+={guest.raw.absolute()}",
            "--",
            "./linux",
            *command_line(guest),
        ]

    def _environment(self, processor: int | None) -> dict[str, str]:
        guest = self.guest
        place = memory.choose(guest.memory_bytes)
        found = {
            "PATH": "/usr/bin:/bin",
            "TMPDIR": str(self._private.parent if place == memory.MEMFD else place),
            "HOWDAH_SEED": str(guest.seed % 2**64),
            "LAUNCH_PEAK": str(guest.raw.absolute() / _PEAK_FILE),
            "LAUNCH_BOUNDS": str(guest.raw.absolute() / BOUNDS_FILE),
            "LAUNCH_PRELOAD": f"{self._private}/shim.so",
        }
        if place == memory.MEMFD:
            found["HOWDAH_MEMORY"] = "memfd"
        if guest.c_library is not None:
            found["LAUNCH_LIBRARIES"] = f"{self._private}/{LIBRARY_NAME}"
        if processor is not None:
            found["LAUNCH_PROCESSOR"] = str(processor)
        if not memory.is_chosen_by_user():
            found["LAUNCH_MEMORY"] = str(guest.memory_bytes + _MEMORY_SLACK_BYTES)
        return found if guest.wire is None else {**found, "HOWDAH_WIRE": str(guest.wire)}

    def descriptor(self) -> int:
        """Return a descriptor that becomes readable when the guest has ended; the caller closes it."""
        return os.pidfd_open(self._launcher.pid)

    def watch(self, progress: Progress) -> None:
        """Wait until the guest ends. Raises RunFailedError if it must be ended."""
        descriptor = self.descriptor()
        try:
            while not select.select([descriptor], [], [], POLL_S)[0]:
                progress(*self.life.position())
                if self.life.busy_s > _ILL_AFTER_S and (
                    said := kernel_alarm(self.guest.console, self.guest.own_modules)
                ):
                    what = f"the guest was ended ({self.life.where()}): simulated time stands still, and {said}"
                    raise RunFailedError(what, where=str(self.guest.console))
                if trouble := self.life.trouble():
                    raise self.failure(trouble + running_programs(self.guest.raw))
        finally:
            os.close(descriptor)

    def stop(self) -> None:
        """End the guest; return when nothing of it is left."""
        if self._status is not None:
            return
        if self._launcher.poll() is None:
            self._launcher.terminate()  # the launcher kills the guest and removes the private directory
        self._status = self._launcher.wait()
        self._wall_s = time.monotonic() - self._start
        shutil.rmtree(self._private, ignore_errors=True)  # the launcher has done so unless it was killed
        if self._profiler is not None:
            self._profiler.finish()

    def ending(self) -> Ending:
        """Return how the guest ended, once it has. Raises as ``boot`` does."""
        assert self._status is not None
        if self._status == _NOT_STARTED:
            said = " / ".join(console_tail(self.guest.console)[-3:])
            raise EngineUnavailableError(f"the guest could not be started: {said}")
        return _ending(self.guest, self._status, self._wall_s, self.life)

    def failure(self, what: str) -> RunFailedError:
        return _failure(what, self.guest)


def _ending(guest: Guest, status: int, wall_s: float, life: Life) -> Ending:
    try:
        value = read_json(guest.raw / EXIT_FILE)
        peak_kib = int((guest.raw / _PEAK_FILE).read_text())
        bounds = Bounds.read(guest.raw / BOUNDS_FILE)
        ending = Ending(value["exit"], value["signal"], wall_s, peak_kib * 1024, bounds)
    except FileNotFoundError:
        pass  # the kernel ended before its first process could write it
    except (ValueError, KeyError, TypeError):
        files = f"{EXIT_FILE}, {_PEAK_FILE} or {BOUNDS_FILE}"
        raise _failure(f"the guest left an unreadable {files}; is the disk full?", guest) from None
    else:
        if ending.exit_status is None and ending.signal is None:
            raise _failure(
                f"the guest's clock reached its limit of {guest.clock_limit_s} simulated seconds ({life.where()}): "
                "a program in it waited for something that never happened",
                guest,
            )
        return ending
    if status < 0:
        name = signal.Signals(-status).name
        raise RunFailedError(
            f"something outside howdah ended the guest's launcher ({name}), and the guest with it",
            where=str(guest.console),
            hint="a person, a job limit, or the kernel when memory ran out (see dmesg); run it again",
        )
    died = crash(guest.console, guest.own_modules)
    if died is not None:
        raise RunFailedError(f"{PANICKED}: {died}", where=str(guest.console))
    if status == _REBOOTED:
        raise _failure("the guest rebooted; it was ended", guest)
    how = f"signal {status - 128}" if status > 128 else f"status {status}"
    suspects = in_use(guest.own_modules)
    raise _failure(f"{DIED} ({how}) without a message, as after a stack overflow{suspects}", guest)


def _failure(what: str, guest: Guest) -> RunFailedError:
    lines = console_tail(guest.console)
    said = "\n    ".join(lines) if lines else "(nothing)"
    return RunFailedError(what, where=str(guest.console), hint=f"Last lines of the console:\n    {said}")
