# SPDX-License-Identifier: Apache-2.0
"""Measures where a guest's kernel spends processor time: perf samples its process from outside.

A user-mode kernel is a process of the machine, so nothing in the guest notices, and virtual time is unaffected.
``cpu-clock`` is a timer of a task's processor time, which needs no hardware counter and so works in virtual machines,
too. Samples are of user mode only: the guest's kernel is nothing else, and an unprivileged user may see no more if
perf_event_paranoid is 2 or less.

Leaves ``cpu-profile.txt`` (a line per sample: host CLOCK_REALTIME in us, "main" or "other" process, address, object;
naming.py resolves the addresses) and ``cpu-profile.json``: ``stamps``, [[the guest's CLOCK_MONOTONIC in ns, the host's
CLOCK_REALTIME in us], ...], locates samples in virtual time. If perf is missing or refused, ``why`` says so, and the
run goes on without.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import threading
import time
from pathlib import Path

from howdah.codec import encoded
from howdah.distribution import installing
from howdah.engine.life import descendants
from howdah.record.raw import PROFILE_FILE, PROFILE_SAMPLES, CpuProfile
from howdah.running import is_running

EVENT, PERIOD_NS = "cpu-clock:u", 100_000
_APPEARS_S = 5.0
_ENDS_S = 20.0
_CLOCK_POLL_S = 0.005
_LINE = re.compile(r"^\s*(?P<pid>\d+)\s+(?P<s>\d+)\.(?P<us>\d{6})\d*:\s+(?P<ip>[0-9a-f]+)\s+\((?P<object>.*)\)\s*$")
_LOST = re.compile(r"PERF_RECORD_LOST\S*.*?(?:lost |lost:)(?P<count>\d+)")


class Profiler:
    """The profiler of one guest: call ``start`` after the launch, ``finish`` after the end. Neither fails the run."""

    def __init__(self, launch: Path, raw: Path, image: Path) -> None:
        self._launch = launch
        self._raw = raw
        self._image = image
        self._data = raw / ".cpu-profile.data"
        self._said = raw / ".cpu-profile.log"
        self._perf: subprocess.Popen[bytes] | None = None
        self._main = 0
        self._why: str | None = None
        self._stamps: list[tuple[int, int]] = []
        self._ended = threading.Event()
        self._clock = threading.Thread(target=self._watch_clock, name="profile-clock", daemon=True)
        for name in (PROFILE_FILE, PROFILE_SAMPLES):
            (raw / name).unlink(missing_ok=True)

    def _watch_clock(self) -> None:
        """Record both clocks whenever the agent writes its progress, each second of virtual time: the time in the file,
        and the host's as the file's modification time. The guest does nothing extra for it."""
        path = self._raw / "progress.json"
        last_ns = 0
        while not self._ended.wait(_CLOCK_POLL_S):
            try:
                if path.stat().st_mtime_ns == last_ns:  # usually unchanged, and this check is the cheapest
                    continue
                with path.open(encoding="utf-8") as file:
                    changed_ns = os.fstat(file.fileno()).st_mtime_ns
                    time_us = int(json.load(file)["time_us"])
            except (OSError, ValueError, KeyError, TypeError):
                continue  # not yet written
            last_ns = changed_ns
            self._stamps.append((time_us * 1000, changed_ns // 1000))

    def start(self, launcher: int) -> None:
        """Find the kernel's process below ``launcher`` and attach to it and all its children."""
        if shutil.which("perf") is None:
            self._why = f"perf is not installed ({installing('linux-perf')})"
            return
        self._main = _appear(launcher, self._image)
        if not self._main:
            self._why = "the guest ended before perf could look at it"
            return
        command = [str(self._launch), "watch", str(os.getpid()), "-", "--", "/usr/bin/env", "perf", *record_arguments()]
        command += ["--output", str(self._data), "--pid", str(self._main)]
        with self._said.open("wb") as log:
            self._perf = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=_environment()
            )
        self._clock.start()

    def finish(self) -> None:
        """Wait for perf, and write its samples."""
        record = CpuProfile(EVENT, PERIOD_NS)
        try:
            if self._why is None:
                self._why = self._collect(record)
        except (OSError, subprocess.SubprocessError) as error:
            self._why = f"perf: {error}"
        if self._clock.ident is not None:
            self._ended.set()
            self._clock.join()
        record.why, record.stamps = self._why, self._stamps
        (self._raw / PROFILE_FILE).write_text(json.dumps(encoded(record), indent=1) + "\n", encoding="utf-8")
        for path in (self._data, self._said):
            path.unlink(missing_ok=True)

    def _collect(self, record: CpuProfile) -> str | None:
        assert self._perf is not None
        try:
            status = self._perf.wait(_ENDS_S)
        except subprocess.TimeoutExpired:
            self._perf.terminate()
            self._perf.wait()
            return "perf did not end with the guest"
        if status or not self._data.exists():
            return f"perf refused: {refusal(self._said.read_text(errors='replace'))}"
        with (self._raw / PROFILE_SAMPLES).open("w", encoding="utf-8") as samples:
            script = subprocess.Popen(
                ["perf", "script", "--input", str(self._data), "--fields", "pid,time,ip,dso", "--show-lost-events"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                errors="replace",
                env=_environment(),
            )
            assert script.stdout is not None
            for line in script.stdout:
                if sample := parse_line(line, self._main):
                    samples.write(f"{sample}\n")
                    record.samples += 1
                elif lost := _LOST.search(line):
                    record.lost += int(lost["count"])
        if script.wait():
            return "perf cannot read what it wrote"
        return None if record.samples else "perf saw nothing of the guest"


def record_arguments() -> list[str]:
    """Return ``perf record`` without output and target; its timestamps can be compared with the guest's clock."""
    return [
        *("record", "--quiet", "--no-buildid", "--no-buildid-cache", "--clockid", "CLOCK_REALTIME"),
        *("--event", EVENT, "--count", str(PERIOD_NS)),
    ]


def parse_line(line: str, main: int) -> str | None:
    """Convert a line of perf script to ``HOST_US main|other ADDRESS OBJECT``; None if it is not a sample."""
    match = _LINE.match(line)
    if match is None:
        return None
    where = "main" if int(match["pid"]) == main else "other"
    name = Path(match["object"].removesuffix(" (deleted)")).name.replace(" ", "_") or "?"
    return f"{match['s']}{match['us']} {where} {match['ip']} {name}"


def refusal(said: str) -> str:
    """Summarise perf's output in one line."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and not line.startswith("#")]
    text = " ".join(lines)[:300]
    if "perf_event_paranoid" in text or "ermission" in text:
        return "no permission (sysctl kernel.perf_event_paranoid is above 2, or perf events are forbidden here)"
    return text or "it said nothing"


def trial() -> str | None:
    """Return why perf cannot sample a process of howdah's; None if it can."""
    if shutil.which("perf") is None:
        return "not installed"
    command = ["perf", *record_arguments(), "--output", "/dev/null", "--", "true"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False, env=_environment())
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return refusal(answer.stderr + answer.stdout) if answer.returncode else None


def _environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C.UTF-8", "PAGER": "cat", "PERF_CONFIG": "/dev/null"}


def _appear(launcher: int, image: Path) -> int:
    """Return the number of the process that runs the image; 0 if none appears in time."""
    limit = time.monotonic() + _APPEARS_S
    wanted = image.resolve()
    while time.monotonic() < limit and is_running(launcher):
        for pid in descendants(launcher):
            try:
                if Path(f"/proc/{pid}/exe").readlink() == wanted:
                    return pid
            except OSError:
                continue
        time.sleep(0.002)
    return 0
