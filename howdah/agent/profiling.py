# SPDX-License-Identifier: Apache-2.0
"""The guest's side of a processor profile in a guest with a processor of finite speed: perf, marks, and /proc/stat.

**perf** samples the whole machine by ``cpu-clock``, a timer, into a ring buffer that holds a whole run, so that only
its interrupts disturb the run; it starts with the network and is enabled with the flows. **Marks**, one each tenth of a
second, are an instruction without effect that a counter outside the machine looks for
(howdah/engine/vm/instructions.c). /proc/stat, read each second, tells how long the processor was idle.

Writes ``perf.data`` and ``processor.json``: ``mark_ns`` (CLOCK_MONOTONIC), ``stat`` ([[time_ns, {kind: USER_HZ}], …]),
``sections`` ({module: {section: address}}), ``perf_period_ns``, ``perf_why`` (why perf did not run; null if it ran).
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

from howdah.agent.loop import Loop
from howdah.linux.clock import MS, now_ns
from howdah.linux.kernelfile import read_raw
from howdah.linux.output import Output

EVENT = "cpu-clock"
PERIOD_INSTRUCTIONS = 999_983  # between two samples; a prime, so that no periodic work keeps step
_RING_PAGES = 4096  # 16 MiB, enough for 400 000 samples
_MARK_NS = 100 * MS
_STAT_EVERY = 10  # read /proc/stat at every tenth mark
_MARK = bytes.fromhex("0f1f8400") + b"howd" + b"\xc3"  # nopl 0x64776f68(%rax,%rax); ret
_KINDS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
_SECTIONS = (".text", ".text.unlikely", ".noinstr.text", ".init.text")
_ACKNOWLEDGED = b"ack\n"


class Profiling:
    """The profiling of one run: ``prepare`` with the network, ``start`` before the flows, ``stop`` after them,
    ``finish`` last.

    A failure of perf does not fail the run: ``perf_why`` records it.
    """

    def __init__(self, shift: int, output: Output) -> None:
        self._output = output
        self._period_ns = PERIOD_INSTRUCTIONS << shift
        self._perf: subprocess.Popen[bytes] | None = None
        self._control = self._answers = -1
        self._why: str | None = None
        self._mark_ns: list[int] = []
        self._stat_texts: list[tuple[int, bytes]] = []
        self._stat = os.open("/proc/stat", os.O_RDONLY | os.O_CLOEXEC)
        self._interval: int | None = None
        # The page must never be freed: the function below jumps into it.
        self._page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
        self._page.write(_MARK)
        place = ctypes.addressof(ctypes.c_char.from_buffer(self._page))
        self._set_mark = ctypes.CFUNCTYPE(None)(place)

    def prepare(self) -> None:
        """Start perf, disabled, and wait until it answers, because it takes long to start."""
        names = [Path("/tmp") / f"perf-{end}" for end in ("control", "answers")]
        for name in names:
            os.mkfifo(name)
        # Open both for reading and writing, so that neither side waits for the other to open it.
        self._control, self._answers = (os.open(name, os.O_RDWR | os.O_CLOEXEC) for name in names)
        command = ["perf", "record", "--quiet", "--no-buildid", "--no-buildid-cache", "--all-cpus", "--delay", "-1"]
        command += ["--event", EVENT, "--count", str(self._period_ns), "--clockid", "CLOCK_MONOTONIC"]
        command += ["--mmap-pages", str(_RING_PAGES), "--control", f"fifo:{names[0]},{names[1]}"]
        command += ["--output", str(self._output.path / "perf.data")]
        with (self._output.path / "perf.log").open("wb") as log:
            try:
                self._perf = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
            except FileNotFoundError:
                self._why = "perf is not in the guest"
                return
        self._command_perf(b"ping")

    def _command_perf(self, what: bytes) -> None:
        """Send perf a command and wait until it acknowledges it or ends."""
        if self._why is not None or self._perf is None:
            return
        os.write(self._control, what + b"\n")
        answer = b""
        os.set_blocking(self._answers, False)
        while len(answer) < len(_ACKNOWLEDGED):
            if self._perf.poll() is not None:
                said = (self._output.path / "perf.log").read_text(errors="replace").strip().splitlines()
                self._why = f"perf ended with status {self._perf.returncode}: {' '.join(said[-2:])[:300]}"
                return
            try:
                answer += os.read(self._answers, 64)
            except BlockingIOError:
                _sleep_ms(5)

    def start(self, loop: Loop, epoch_ns: int) -> None:
        self._command_perf(b"enable")
        self._mark(now_ns())
        self._interval = loop.every(_MARK_NS, epoch_ns, self._mark)

    def _mark(self, _now_ns: int) -> None:
        time_ns = now_ns()
        self._set_mark()
        if len(self._mark_ns) % _STAT_EVERY == 0:
            self._stat_texts.append((time_ns, read_raw(self._stat)))
        self._mark_ns.append(time_ns)

    def stop(self, loop: Loop) -> None:
        if self._interval is not None:
            loop.cancel(self._interval)
        self._mark(now_ns())
        self._command_perf(b"disable")

    def finish(self) -> None:
        """End perf and write the record. This takes long, so call it only when nothing is measured any more."""
        if self._perf is not None and self._perf.poll() is None:
            self._perf.send_signal(signal.SIGINT)
            status = self._perf.wait()
            if status not in (0, -signal.SIGINT) and self._why is None:
                self._why = f"perf ended with status {status}"
        for descriptor in (self._control, self._answers, self._stat):
            if descriptor >= 0:
                os.close(descriptor)
        self._output.json(
            "processor.json",
            {
                "format": 1,
                "perf_why": self._why,
                "perf_event": EVENT,
                "perf_period_ns": self._period_ns,
                "mark_ns": self._mark_ns,
                "stat": [[time_ns, parse_stat(text.decode("ascii"))] for time_ns, text in self._stat_texts],
                "sections": module_sections(Path("/sys/module")),
            },
        )


def parse_stat(text: str) -> dict[str, int]:
    """Parse the ``cpu`` line of /proc/stat: time of all processors together, by kind, in USER_HZ."""
    line = next(line for line in text.splitlines() if line.startswith("cpu "))
    return {kind: int(number) for kind, number in zip(_KINDS, line.split()[1:], strict=False)}


def module_sections(modules: Path) -> dict[str, dict[str, int]]:
    """Return the addresses of each loaded module's code: {module: {section: address}}."""
    found: dict[str, dict[str, Any]] = {}
    for directory in sorted(modules.iterdir()):
        addresses = {
            name: int((directory / "sections" / name).read_text(), 16)
            for name in _SECTIONS
            if (directory / "sections" / name).exists()
        }
        if addresses:
            found[directory.name] = addresses
    return found


def _sleep_ms(duration: int) -> None:
    signal.sigtimedwait([], duration / 1000)
