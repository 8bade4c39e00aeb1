# SPDX-License-Identifier: Apache-2.0
"""Scheduling of tasks in a virtual-time kernel, so that the agent's wake-ups do not shift packets."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from howdah.linux import syscall
from howdah.linux.kernelfile import read_file, write_file

_RUNTIME_LIMIT = Path("/proc/sys/kernel/sched_rt_runtime_us")
_DEBUGFS = Path("/sys/kernel/debug")
_KTHREADD = 2
_AGENT_PRIORITY = 1
_KERNEL_PRIORITY = 2


def become_invisible() -> None:
    """Give kernel threads, and at a lower priority this process (not its children), real-time scheduling.

    Since Linux 6.12 an ordinary task that wakes up arms timers of the scheduler's fair server (dl_server_start), which
    expire at odd times and shift packets by up to half a microsecond (see loop.py). The agent's wake-ups leave more
    softirqs to ksoftirqd, whose timers would then differ. Real-time tasks arm none, and the older limit on their
    runtime, with its timer, is switched off. On one processor that computes in no time they take time from nobody.
    """
    _stop_fair_server()
    if _RUNTIME_LIMIT.exists():
        write_file(str(_RUNTIME_LIMIT), "-1")
    for thread in kernel_threads():
        with contextlib.suppress(ProcessLookupError):
            os.sched_setscheduler(thread, os.SCHED_FIFO, os.sched_param(_KERNEL_PRIORITY))
    os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(_AGENT_PRIORITY))


def _stop_fair_server() -> None:
    """Switch the fair server off if the kernel has the switch for it (CONFIG_SCHED_DEBUG)."""
    is_mounted = _DEBUGFS.is_dir() and any(_DEBUGFS.iterdir())
    if not is_mounted:
        with contextlib.suppress(OSError):
            syscall.mount("debugfs", str(_DEBUGFS), "debugfs")
    for runtime in _DEBUGFS.glob("sched/fair_server/cpu*/runtime"):
        runtime.write_text("0")


def kernel_threads() -> list[int]:
    """Return the process numbers of kthreadd's children."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):  # noqa: PTH208 - each further call counts
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            fields = read_file(f"/proc/{name}/stat").rpartition(")")[2].split()
            if int(fields[1]) == _KTHREADD:
                found.append(int(name))
    return found
