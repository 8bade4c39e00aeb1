# SPDX-License-Identifier: Apache-2.0
"""Virtual machines of a lab go before everything else on this machine while a run is measured in them, where we may."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from howdah.engine.lab.machine import Machine

NICE = -15


def local_process(machine: Machine) -> int | None:
    """QEMU's process here, for a virtual machine of howdah/lab."""
    state = getattr(machine, "state", None)
    return int(state.process.pid) if state is not None else None


@contextmanager
def preferred(machines: Iterable[Machine], note: Callable[[str], None]) -> Iterator[None]:
    """Only root may; without it the machines compete with what else runs here, and the run's own watch of processor
    time tells."""
    before: list[tuple[int, dict[int, int], int | None]] = []
    for machine in machines:
        process = local_process(machine)
        if process is None:
            continue
        try:
            before.append(
                (process, {one: os.getpriority(os.PRIO_PROCESS, one) for one in _threads(process)}, _group(process))
            )
            _set(process, dict.fromkeys(_threads(process), NICE), NICE)
        except OSError as error:
            note(f"{machine.name} does not go before other processes: {error}")
    try:
        yield
    finally:
        for process, threads, group in before:
            _set(process, threads, group)


def _threads(process: int) -> list[int]:
    return [int(entry.name) for entry in Path(f"/proc/{process}/task").iterdir()]


def _group(process: int) -> int | None:
    """The nice value of its session's group of processes, against which alone sessions compete where the kernel makes
    such groups (sched(7), autogroup); None where it does not."""
    try:
        return int(Path(f"/proc/{process}/autogroup").read_text().split()[-1])
    except (OSError, IndexError, ValueError):
        return None


def _set(process: int, threads: dict[int, int], group: int | None) -> None:
    """Raises OSError where it is not allowed; threads come and go, and so may the process."""
    for thread, nice in threads.items():
        with contextlib.suppress(ProcessLookupError):
            os.setpriority(os.PRIO_PROCESS, thread, nice)
    if group is not None and _group(process) is not None:
        Path(f"/proc/{process}/autogroup").write_text(str(group))
