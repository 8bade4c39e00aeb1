# SPDX-License-Identifier: Apache-2.0
"""Whether a machine in real time gets the processor when it needs it, by how late a high-priority process wakes up.

A virtual machine that loses its processor cannot see that in its own accounts of processor time. It sees its timers
expire late, and so do the packets that wait for them. ``python3 -m howdah.agent.timer_lateness INTERVAL_NS`` measures
from the first byte of its input to the end of input, then prints its account as JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import subprocess
import sys
from pathlib import Path

from howdah.codec import decoded, encoded
from howdah.linux.clock import MS, SECOND, Alarm, now_ns
from howdah.record.agent import ProcessorRecord

INTERVAL_NS = 11 * MS  # in step with no collector, so that late wake-ups are a fair sample
_PRIORITY = 1
_NOTED_NS = 2 * MS  # later wake-ups are kept with their times, up to _MOST_NOTED of them
_MOST_NOTED = 2000
_STAT = Path("/proc/stat")
_FIELDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


class TimerLateness:
    """The measuring process: ``start`` it early, because an interpreter takes time to load. It counts from ``begin`` to
    ``end``, or to ``stop``, which returns its account."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-S", "-m", "howdah.agent.timer_lateness", str(INTERVAL_NS)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def begin(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.write(b".")
                self._process.stdin.flush()

    def end(self) -> None:
        """Tell the process to stop counting, without waiting for it."""
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
            self._process.stdin = None

    def stop(self) -> ProcessorRecord | None:
        """Return the process's account; None if it never started or died."""
        if self._process is None:
            return None
        self.end()
        output, _ = self._process.communicate()
        self._process = None
        try:
            return decoded(ProcessorRecord, json.loads(output))
        except ValueError:
            return None

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class Account:
    """Counts how late each wake-up was, and the processor time of each second."""

    def __init__(self, interval_ns: int) -> None:
        self._interval_ns = interval_ns
        self._late_ns: list[int] = []
        self._noted: list[list[int]] = []
        self._missed = 0
        self._seconds: list[dict[str, int]] = []

    def wake(self, due_ns: int, now: int) -> int:
        """Count a wake-up; return when the next one is due."""
        late = now - due_ns
        self._late_ns.append(late)
        if late > _NOTED_NS and len(self._noted) < _MOST_NOTED:
            self._noted.append([due_ns, late])
        missed = late // self._interval_ns
        self._missed += missed
        return due_ns + (missed + 1) * self._interval_ns

    def second(self, text: str) -> None:
        """Keep a second's reading of /proc/stat: ticks of all processors together."""
        values = map(int, text.partition("\n")[0].split()[1:])
        self._seconds.append(dict(zip(_FIELDS, values, strict=False)))

    def result(self) -> ProcessorRecord:
        ordered = sorted(self._late_ns)

        def share(part: float) -> int | None:
            return ordered[min(int(part * len(ordered)), len(ordered) - 1)] if ordered else None

        busy, steal = self._processor()
        return ProcessorRecord(
            interval_ns=self._interval_ns,
            wakeups=len(ordered),
            missed=self._missed,
            late_median_ns=share(0.5),
            late_99_ns=share(0.99),
            late_worst_ns=share(1.0),
            late=self._noted,
            busiest_second=busy,
            steal=steal,
        )

    def _processor(self) -> tuple[float | None, float | None]:
        """The share of processor time used in the busiest second, and the share stolen over the whole time."""
        busiest: float | None = None
        for before, after in zip(self._seconds, self._seconds[1:], strict=False):
            spent = {name: after[name] - before[name] for name in before}
            total = sum(spent.values())
            if total:
                busiest = max(busiest or 0.0, 1 - (spent["idle"] + spent.get("iowait", 0)) / total)
        if len(self._seconds) < 2:
            return busiest, None
        first, last = self._seconds[0], self._seconds[-1]
        total = sum(last.values()) - sum(first.values())
        return busiest, (last.get("steal", 0) - first.get("steal", 0)) / total if total else None


def main() -> int:
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(_PRIORITY))
    account, alarm = Account(int(sys.argv[1])), Alarm()
    began = bool(os.read(0, 1))
    poll = select.poll()
    poll.register(0, select.POLLIN | select.POLLHUP)
    poll.register(alarm.descriptor, select.POLLIN)
    due = now_ns() + int(sys.argv[1])
    next_second = due
    while began:
        alarm.set(due)
        ready = dict(poll.poll())
        now = now_ns()
        if 0 in ready:
            break
        due = account.wake(due, now)
        if now >= next_second:
            account.second(_STAT.read_text())
            next_second += SECOND
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))  # the rest needs no priority
    sys.stdout.write(json.dumps(encoded(account.result())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
