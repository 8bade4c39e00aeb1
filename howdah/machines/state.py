# SPDX-License-Identifier: Apache-2.0
"""The state of a machine set that is up, in ``state.json`` of its directory, and the lock for working on it.

No recorded process is ended unless it is proved to be the one that was started.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from howdah.codec import decoded
from howdah.errors import HowdahError
from howdah.running import is_running, stat_fields

# Index after the name in /proc/PID/stat; the name may contain anything (proc(5): field 22, starttime).
_START_FIELD = 19


@dataclass(frozen=True)
class StartedProcess:
    """A process. ``start_ticks`` is its start time in clock ticks; ``mark`` is an argument of its command line."""

    pid: int
    start_ticks: int
    mark: str

    def is_alive(self) -> bool:
        """Return whether exactly this process runs, and not another one that has since got its number."""
        if start_ticks(self.pid) != self.start_ticks:
            return False
        try:
            command = Path(f"/proc/{self.pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            return False
        return self.mark in command

    def end(self, patience_s: float) -> bool:
        """Send SIGTERM, and SIGKILL after ``patience_s``; return whether it had been running, once it is gone."""
        if not self.is_alive():
            return False
        for number, wait_s in ((signal.SIGTERM, patience_s), (signal.SIGKILL, patience_s)):
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return True
            if self.wait(wait_s):
                return True
        return True

    def wait(self, limit_s: float) -> bool:
        """Return whether the process ends within the limit."""
        end = time.monotonic() + limit_s
        while self.is_alive():
            if time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True


def start_ticks(pid: int) -> int | None:
    """Return a process's start time in clock ticks since the boot; None without a process, and for a zombie."""
    fields = stat_fields(pid) if is_running(pid) else None
    return None if fields is None else int(fields[_START_FIELD])


def identify(pid: int, mark: str) -> StartedProcess | None:
    """Return the process if it runs, otherwise None."""
    started = start_ticks(pid)
    return None if started is None else StartedProcess(pid, started, mark)


_FORMAT = 1


@dataclass(frozen=True)
class MachineState:
    """A virtual machine that was started: its process, the local port that leads to its SSH, and its parts."""

    process: StartedProcess
    port: int
    accelerator: str  # kvm or tcg
    why_no_kvm: str | None
    kernel: str
    release: str | None
    source: str
    macs: dict[str, str]  # MAC address by wire
    dilation: int = 1  # local seconds per second of the machine
    image_sources: str | None = None  # key of its image's ingredients
    modules_built: list[str] = field(default_factory=list)
    modules_left_out: dict[str, str] = field(default_factory=dict)

    @property
    def can_have_modules(self) -> bool:
        """Whether at least some of the project's modules can be built for its kernel."""
        return bool(self.modules_built)


@dataclass(frozen=True)
class MachineSetState:
    """All machines. ``times_s`` are the durations of starting, booting and so on; ``namespace`` holds the wires if they
    are taps (howdah/machines/tap.py)."""

    machines: dict[str, MachineState]
    times_s: dict[str, float] = field(default_factory=dict)
    namespace: str | None = None

    @property
    def dilation(self) -> int:
        """How many local seconds one of the machines lasts, the same for all of them (howdah/machines/qemu.py)."""
        return max((machine.dilation for machine in self.machines.values()), default=1)

    def alive(self) -> list[str]:
        return [name for name, machine in self.machines.items() if machine.process.is_alive()]

    def write(self, file: Path) -> None:
        written = file.with_name(f".{file.name}.new")
        written.write_text(json.dumps({"format": _FORMAT, **asdict(self)}, indent=1) + "\n")
        written.replace(file)


def read_state(file: Path) -> MachineSetState | None:
    """Read the state; None if the machine set is not up. Raises HowdahError if it cannot be read."""
    try:
        record = json.loads(file.read_text())
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise HowdahError(f"the machine set's state cannot be read: {error}", where=str(file), hint=_BY_HAND) from None
    try:
        if record["format"] != _FORMAT:
            raise KeyError("format")
        del record["format"]
        return decoded(MachineSetState, record)
    except (KeyError, TypeError) as error:
        raise HowdahError(f"the machine set's state is damaged ({error})", where=str(file), hint=_BY_HAND) from None


_BY_HAND = "Look for the virtual machines with 'ps', end them, and remove the file."


@contextmanager
def locked(directory: Path, doing: str) -> Iterator[None]:
    """Hold a machine set, on which one process at a time may work. Raises HowdahError that names the current holder."""
    # The file stays: removing it while another process waits for it would let a third one lock a new file.
    with (directory / ".lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip() or "another howdah"
            raise HowdahError(
                f"these machines are in use: {holder}",
                where=str(directory),
                hint="Wait for it, or give the machines file another 'name:' for a second machine set beside it.",
            ) from None
        lock.truncate(0)
        lock.write(f"process {os.getpid()}, {doing}\n")
        lock.flush()
        try:
            yield
        finally:
            lock.truncate(0)
