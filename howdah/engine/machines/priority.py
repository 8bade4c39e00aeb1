# SPDX-License-Identifier: Apache-2.0
"""Virtual machines go before everything else on this machine while a run is measured in them, where we may.

Their threads are scheduled first in, first out. First come those that carry packets and timers between guest and world
(QEMU's first threads), then the processor of the emulator, whose timers are the path, then those of the others. No nice
value would do. Where the kernel makes a group of each session (sched(7), autogroup) it counts within one session alone,
and a thread that wakes up still waits for the end of another one's slice.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from howdah.engine.machines.machine import RunMachine

_HOST, _EMULATOR, _PACKETS = 1, 2, 3


def local_process(machine: RunMachine) -> int | None:
    """QEMU's process here, for a virtual machine of howdah/machines."""
    state = getattr(machine, "state", None)
    return int(state.process.pid) if state is not None else None


@contextmanager
def preferred(machines: Iterable[RunMachine], note: Callable[[str], None]) -> Iterator[None]:
    """Only root may; without it the machines compete with what else runs here, and the run's own watch of processor
    time tells."""
    changed: list[int] = []
    for machine in machines:
        process = local_process(machine)
        if process is None:
            continue
        try:
            processors = [thread for thread in _threads(process) if thread != process]
            _schedule(processors, os.SCHED_FIFO, _EMULATOR if machine.role == "emulator" else _HOST)
            _schedule([process], os.SCHED_FIFO, _PACKETS)
            changed.append(process)
        except OSError as error:
            note(f"{machine.name} does not go before other processes: {error}")
    try:
        yield
    finally:
        for process in changed:
            with contextlib.suppress(OSError):  # it has ended
                _schedule(_threads(process), os.SCHED_OTHER, 0)


def _threads(process: int) -> list[int]:
    return [int(entry.name) for entry in Path(f"/proc/{process}/task").iterdir()]


def _schedule(threads: list[int], policy: int, priority: int) -> None:
    """Raises OSError where it is not allowed; threads come and go."""
    for thread in threads:
        with contextlib.suppress(ProcessLookupError):
            os.sched_setscheduler(thread, policy, os.sched_param(priority))
