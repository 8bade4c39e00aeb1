# SPDX-License-Identifier: Apache-2.0
"""Virtual machines of a lab go before everything else on this machine while a run is measured in them, where we may.

The emulator, whose timers are the path, goes before the others: its threads are scheduled first in, first out. The
others get a nice value; of the group of their session, too, where the kernel makes such groups (sched(7), autogroup):
a nice value counts only among processes of one session then.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from howdah.engine.lab.machine import Machine

NICE = -15
_EMULATOR_PRIORITY = 1


@dataclass(frozen=True)
class _Before:
    """Of a process: nice values of its threads and of its session's group (None: there are no groups)."""

    process: int
    nice: dict[int, int]
    group: int | None


def local_process(machine: Machine) -> int | None:
    """QEMU's process here, for a virtual machine of howdah/lab."""
    state = getattr(machine, "state", None)
    return int(state.process.pid) if state is not None else None


@contextmanager
def preferred(machines: Iterable[Machine], note: Callable[[str], None]) -> Iterator[None]:
    """Only root may; without it the machines compete with what else runs here, and the run's own watch of processor
    time tells."""
    changed: list[_Before] = []
    for machine in machines:
        process = local_process(machine)
        if process is None:
            continue
        try:
            threads = _threads(process)
            nice = {thread: os.getpriority(os.PRIO_PROCESS, thread) for thread in threads}
            changed.append(_Before(process, nice, _group(process)))
            _renice(process, dict.fromkeys(threads, NICE), NICE)
            if machine.role == "emulator":
                _schedule(threads, os.SCHED_FIFO, _EMULATOR_PRIORITY)
        except OSError as error:
            note(f"{machine.name} does not go before other processes: {error}")
    try:
        yield
    finally:
        for before in changed:
            with contextlib.suppress(OSError):  # it has ended, or was never changed
                _schedule(_threads(before.process), os.SCHED_OTHER, 0)
                _renice(before.process, before.nice, before.group)


def _threads(process: int) -> list[int]:
    return [int(entry.name) for entry in Path(f"/proc/{process}/task").iterdir()]


def _group(process: int) -> int | None:
    try:
        return int(Path(f"/proc/{process}/autogroup").read_text().split()[-1])
    except (OSError, IndexError, ValueError):
        return None


def _schedule(threads: list[int], policy: int, priority: int) -> None:
    """Raises OSError where it is not allowed; threads come and go."""
    for thread in threads:
        with contextlib.suppress(ProcessLookupError):
            os.sched_setscheduler(thread, policy, os.sched_param(priority))


def _renice(process: int, threads: dict[int, int], group: int | None) -> None:
    for thread, nice in threads.items():
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, thread, nice)
    if group is not None:
        Path(f"/proc/{process}/autogroup").write_text(str(group))
