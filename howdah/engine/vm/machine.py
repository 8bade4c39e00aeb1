# SPDX-License-Identifier: Apache-2.0
"""One virtual machine: QEMU's command line, its life, its results. Nothing of it outlives its parent process."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import tarfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from howdah.build.accelerator import QEMU
from howdah.build.cache import qemu_value
from howdah.build.tools import variable
from howdah.distribution import installing
from howdah.engine.crash import crash
from howdah.engine.ending import EXIT_FILE, Ending, runtime_base
from howdah.engine.processor import own_processor
from howdah.engine.vm.watch import MachineWatch
from howdah.errors import EngineUnavailableError, RunFailedError
from howdah.linux.progress_port import PORT
from howdah.record.directory import read_json
from howdah.record.kernel_log import CONSOLE_LINES, console_tail

MACHINE = "3"  # part of every run's key: raise it when the command line changes
WARP = Path(__file__).with_name("warp.c")
START = "2023-11-14T22:13:20"  # wall clock of every machine at its start: fixed, so that reruns are equal
_POLL_S = 0.2
_BOOT_S = 240.0  # processor seconds; an emulated boot takes about 8
SILENCE_S = 900.0
_SIGNS = "signs"
_SETTLE_S = 10
_ENV, _TASKSET = "/usr/bin/env", "/usr/bin/taskset"
_PATIENCE, _REAL_TIME_PATIENCE = 20.0, 3.0  # allowed wall time per second of allowed processor time
_SIGNALLED = 128
_PANIC, _PANIC_LINES = "Kernel panic", 400
_DELIVERED = "delivered.tar"

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class Speed:
    """The processor's speed in virtual time: 2**-shift instructions per nanosecond, without caches or a pipeline.

    ``shift`` None means real time: no virtual clock, as fast as the host emulates or runs it.
    """

    shift: int | None

    @property
    def arguments(self) -> list[str]:
        return [] if self.shift is None else ["-icount", f"shift={self.shift},sleep=off,align=off"]

    @property
    def text(self) -> str:
        if self.shift is None:
            return "as fast as it goes"
        return f"{1 / (1 << self.shift):g} instructions a nanosecond"


@dataclass(frozen=True)
class QemuMachine:
    """The parts and limits of a machine. ``first`` are archives of its first file system; ``raw`` gets results.

    ``command`` is the program that init runs; neither it nor ``kernel_arguments`` may contain white space.
    ``observers`` are arguments of QEMU that observe the machine without changing anything in it.
    """

    kernel: Path
    first: tuple[Path, ...]
    command: tuple[str, ...]
    memory_bytes: int
    delivery_bytes: int
    raw: Path
    console: Path
    speed: Speed
    accelerator: str
    wall_clock_limit_s: float  # limit for its clock standing still, in addition to the watch's limits
    clock_limit_s: int
    launcher: Path
    kernel_arguments: tuple[str, ...] = ()
    observers: tuple[str, ...] = ()
    library: Path | None = None  # loaded into QEMU: WARP's, in virtual time
    boot_limit_s: float = _BOOT_S  # processor seconds until its first program runs
    silence_limit_s: float = SILENCE_S  # processor seconds without a sign of life
    own_modules: tuple[str, ...] = ()  # the profile's modules in use


def command_line(machine: QemuMachine, initrd: Path, delivered: Path, signs: Path) -> list[str]:
    """Return QEMU's command line. Everything that could differ between runs (address layout, clock, seeds) is fixed.

    ``delivered`` is the disk for the machine's results, ``signs`` the file to which its progress port writes.
    """
    kernel = [
        "console=ttyS0",
        "panic=-1",
        "quiet",
        "rootfstype=ramfs",
        "nokaslr",
        "mitigations=off",
        "tsc=reliable",
        "no_timer_check",
        "cryptomgr.notests=1",
        "nowatchdog",
        "random.trust_cpu=off",
        "random.trust_bootloader=off",
        f"HOWDAH_CLOCK_LIMIT_S={machine.clock_limit_s}",
        *([] if machine.speed.shift is None else [f"HOWDAH_SETTLE_S={_SETTLE_S}"]),
        *machine.kernel_arguments,
        "--",
        *machine.command,
    ]
    for argument in kernel:
        if any(character.isspace() for character in argument):
            raise ValueError(f"this cannot be passed on a kernel command line: {argument!r}")
    return [
        QEMU,
        *("-accel", machine.accelerator, "-cpu", "host" if machine.accelerator == "kvm" else "qemu64"),
        *machine.speed.arguments,
        *("-machine", "pc,hpet=off,vmport=off,smm=off"),
        *("-smp", "1", "-m", f"{-(-machine.memory_bytes // 2**20)}M"),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-rtc", f"base={START},clock=vm"),
        *("-serial", f"file:{machine.console}"),
        *(
            "-chardev",
            f"file,id=signs,path={qemu_value(signs)}",
            "-device",
            f"isa-debugcon,iobase={PORT:#x},chardev=signs",
        ),
        *("-drive", f"if=none,id=out,file={qemu_value(delivered)},format=raw,cache=unsafe"),
        *("-device", "virtio-blk-pci,drive=out"),
        *machine.observers,
        *("-kernel", str(machine.kernel), "-initrd", str(initrd), "-append", " ".join(kernel)),
    ]


def run(machine: QemuMachine, progress: Progress) -> tuple[Ending, list[str]]:
    """Run the machine to its end and unpack its results; return how it ended and QEMU's command line.

    Raises RunFailedError if it dies, hangs or panics (the console is kept), EngineUnavailableError without QEMU.
    """
    machine.raw.mkdir(parents=True, exist_ok=True)
    initrd, delivered, signs = (machine.raw / f".{name}" for name in ("initrd", _DELIVERED, _SIGNS))
    try:
        with initrd.open("wb") as joined:
            for archive in machine.first:
                with archive.open("rb") as part:
                    shutil.copyfileobj(part, joined, 1 << 20)
        with delivered.open("wb") as disk:
            disk.truncate(machine.delivery_bytes)  # sparse: only what is written takes space
        command = command_line(machine, initrd, delivered, signs)
        wall_s = _watch(machine, command, signs, progress)
        progress("take what it delivers", 0, 0)
        _unpack(machine, delivered)
    finally:
        initrd.unlink(missing_ok=True)
        delivered.unlink(missing_ok=True)
        signs.unlink(missing_ok=True)
    return _ending(machine, wall_s), command


def _watch(machine: QemuMachine, command: list[str], signs: Path, progress: Progress) -> float:
    """Start and watch QEMU; return the wall time. In virtual time all its threads share one processor: they take turns,
    and on two processors each turn would be a wake-up."""
    environment = [_ENV, *([] if machine.library is None else [variable(machine.library)])]
    if machine.speed.shift is None:
        return _watch_pinned(machine, command, environment, signs, progress)
    with own_processor(runtime_base()) as processor:
        pinned = [_TASKSET, "--cpu-list", str(processor)] if processor is not None else _one_processor()
        return _watch_pinned(machine, command, [*pinned, *environment], signs, progress)


def _one_processor() -> list[str]:
    """Return the command that pins to a random processor, for when other guests have reserved all."""
    return [_TASKSET, "--cpu-list", str(random.choice(sorted(os.sched_getaffinity(0))))]


def _watch_pinned(
    machine: QemuMachine, command: list[str], pinned: list[str], signs: Path, progress: Progress
) -> float:
    if shutil.which(command[0]) is None:
        raise EngineUnavailableError(f"{command[0]} is not installed", hint=installing("qemu-system-x86"))
    started = time.monotonic()
    errors = machine.console.with_name("qemu.log")
    with errors.open("wb") as log:
        process = subprocess.Popen(
            [str(machine.launcher), "watch", str(os.getpid()), "-", "--", *pinned, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        patience = _PATIENCE if machine.speed.shift is not None else _REAL_TIME_PATIENCE
        watch = MachineWatch(
            process.pid, machine.console, signs, machine.boot_limit_s, machine.silence_limit_s, patience
        )
        moved, position = started, watch.position()
        try:
            while process.poll() is None:
                before, position = position, watch.position()
                progress(*position)
                if position != before:
                    moved = time.monotonic()  # a slow machine may take long for a run, but not for a second of it
                if time.monotonic() - moved > machine.wall_clock_limit_s:
                    limit = f"its wall-clock limit of {machine.wall_clock_limit_s:g} s without its clock moving"
                    raise _failed(machine, f"was ended at {limit} ({watch.where()})")
                trouble = watch.trouble()
                if trouble:
                    raise _failed(machine, trouble)
                time.sleep(_POLL_S)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    if process.returncode:
        raise _failed(machine, _how_it_ended(process.returncode, errors, watch))
    progress(*watch.position())
    return time.monotonic() - started


def _how_it_ended(status: int, errors: Path, watch: MachineWatch) -> str:
    said = " / ".join(errors.read_text(errors="replace").strip().splitlines()[-3:])
    if status > _SIGNALLED:
        watch.position()
        name = signal.Signals(status - _SIGNALLED).name if status - _SIGNALLED in set(signal.Signals) else status
        return f"was killed from outside ({name}, {watch.where()})"
    return f"ended with status {status}{f': {said}' if said else ''}"


def _unpack(machine: QemuMachine, delivered: Path) -> None:
    with delivered.open("rb") as disk:
        began = any(disk.read(tarfile.BLOCKSIZE))
    if not began:  # nothing was written; tarfile would read every block of an empty disk
        raise _failed(machine, _panic(machine) or "ended without delivering what it recorded")
    try:
        with tarfile.open(delivered, "r:") as archive:
            archive.extractall(machine.raw, filter="data")
    except (FileNotFoundError, tarfile.ReadError):
        raise _failed(machine, _panic(machine) or "ended without delivering what it recorded") from None


def _ending(machine: QemuMachine, wall_s: float) -> Ending:
    try:
        record = read_json(machine.raw / EXIT_FILE)
    except (OSError, ValueError):
        raise _failed(machine, _panic(machine) or "ended without saying how its program ended") from None
    if record["exit"] is None and record["signal"] is None:
        raise _failed(machine, f"was not done after {machine.clock_limit_s} s of its own time")
    return Ending(record["exit"], record["signal"], wall_s, 0)


def _panic(machine: QemuMachine) -> str | None:
    died = crash(machine.console, machine.own_modules)
    return None if died is None else f"ended by a panic of its kernel: {died}"


def _last_lines(console: Path) -> list[str]:
    """Return the last lines; of a panic those up to it, because the register dump after it helps few people."""
    lines = console_tail(console, _PANIC_LINES)
    panic = next((number for number, line in enumerate(lines) if _PANIC in line), len(lines))
    return lines[max(panic + 1 - CONSOLE_LINES, 0) : panic + 1]


def _failed(machine: QemuMachine, how: str) -> RunFailedError:
    said = "\n    ".join(_last_lines(machine.console))
    hint = f"Last lines of the console:\n    {said}" if said else None
    return RunFailedError(f"the virtual machine {how}", where=str(machine.console), hint=hint)
