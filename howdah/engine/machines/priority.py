# SPDX-License-Identifier: Apache-2.0
"""Real-time priority for the processes of virtual machines during a run, if this user may set it.

Their threads are scheduled first in, first out. The threads that carry packets and timers between guest and host
(QEMU's first threads) have the highest priority, then the processor of the emulator, whose timers are the path, then
those of the other machines. Nice values would not suffice: where the kernel groups threads by session (sched(7),
autogroup), they only count within a session, and a thread that wakes up waits for the end of another one's slice.
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
    """Return the process number of the local QEMU of a virtual machine of howdah/machines; None for other machines."""
    state = getattr(machine, "state", None)
    return int(state.process.pid) if state is not None else None


@contextmanager
def with_priority(machines: Iterable[RunMachine], note: Callable[[str], None]) -> Iterator[None]:
    """Raise the machines' priority during the context. Only root may; otherwise the machines compete with other
    processes, which the run's own watch of processor time reports."""
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
    """Set policy and priority of threads that still exist. Raises OSError without permission."""
    for thread in threads:
        with contextlib.suppress(ProcessLookupError):
            os.sched_setscheduler(thread, policy, os.sched_param(priority))
