# SPDX-License-Identifier: Apache-2.0
"""Profiles a finite processor, from outside the machine (howdah/agent/profiling.py is the part inside).

``perf`` is a separate archive beside the guest tree, with the libraries that the tree lacks. The counter is a QEMU
plugin, instructions.c. Names come from the kernel's own symbol list, for which a machine is booted once: without
address randomisation the list is the same in every run of that kernel.
"""

from __future__ import annotations

import re
import subprocess
from collections import Counter as Counts
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from howdah.build.accelerator import QEMU
from howdah.build.cache import Cache, Progress, content_key, qemu_value
from howdah.build.cpio import Writer
from howdah.build.guest_tree import GuestTree, build_tree
from howdah.build.stock_kernel import StockKernel
from howdah.build.supervise import CommandFailedError, run_logged
from howdah.build.tools import compiler_version
from howdah.engine.vm.first import LIBRARIES, list_libraries, listed_files
from howdah.engine.vm.machine import QemuMachine, Speed
from howdah.engine.vm.symbols import Names, kernel_symbols, module_functions
from howdah.engine.vm.tally import (
    ACCOUNT_FILE,
    INSTRUCTIONS_FILE,
    SAMPLES_FILE,
    Place,
    instructions_by_address,
    read_blocks,
    read_counts,
    read_samples,
    samples_by_interval,
    write,
)
from howdah.errors import HowdahError
from howdah.record.directory import read_json, write_json
from howdah.scratch import scratch

PERF_PACKAGE = "linux-perf"
_PERF = "usr/bin/perf"
_LAYOUT = "1"  # part of every key: raise it when the files of an entry change
_SOURCE = Path(__file__).with_name("instructions.c")
# First QEMU release whose plugin interface has another version, which cannot count with generated code.
_CHANGED_IN = 9
_PERF_BYTES = 96 * 2**20  # perf and its libraries in the first file system, during its unpacking, and the ring


@dataclass(frozen=True)
class Counter:
    """The plugin, or ``why`` it is missing. It writes its counts to the directory passed to ``arguments``."""

    plugin: Path | None
    why: str | None

    def arguments(self, directory: Path) -> tuple[str, ...]:
        return () if self.plugin is None else ("-plugin", f"file={qemu_value(self.plugin)},out={qemu_value(directory)}")


def perf_archive(tree: GuestTree, cache: Cache, progress: Progress) -> Path:
    """Return a cpio archive of perf and the libraries that ``tree`` lacks: 30 MB instead of 100 for a whole tree."""
    key = content_key(_LAYOUT, tree.key, PERF_PACKAGE)

    def pack(directory: Path, log: Path) -> None:
        larger = build_tree(progress, cache, (PERF_PACKAGE,)).root
        names = [_PERF, *(name for name in _libraries(larger, log) if not (tree.root / name).exists())]
        with (directory / "perf.cpio").open("wb") as file:
            archive = Writer(file)
            for name in sorted(names):
                archive.file(name, (larger / name).resolve())
            archive.close()

    return cache.build("perf-archive", key, pack, needs_bytes=300 * 2**20) / "perf.cpio"


def _libraries(root: Path, log: Path) -> list[str]:
    """Return the names, relative to the tree, of all libraries of perf, as the tree's loader finds them."""
    answer = list_libraries(root, _PERF)
    log.write_text(answer.stdout + answer.stderr)
    if answer.returncode or "not found" in answer.stdout:
        raise HowdahError("perf of the guest tree lacks libraries", where=str(log))
    return [f"{LIBRARIES}/{file.name}" for file in listed_files(answer)]


def build_counter(cache: Cache) -> Counter:
    """Compile the plugin for the installed QEMU, and test whether it loads."""
    answer = subprocess.run([QEMU, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"version (\d+)", answer)
    interface = 2 if version and int(version[1]) >= _CHANGED_IN else 1

    def compile_it(directory: Path, log: Path) -> None:
        options = ["-O2", "-Wall", "-shared", "-fPIC", "-fvisibility=hidden", f"-DPLUGIN_VERSION={interface}"]
        try:
            run_logged(
                ["gcc", *options, "-o", str(directory / "instructions.so"), str(_SOURCE)],
                log,
                environment={"TMPDIR": str(directory)},
            )
        except CommandFailedError as error:
            raise HowdahError("does not compile: " + " / ".join(error.tail[-3:]), where=str(_SOURCE)) from error

    key = content_key(_LAYOUT, compiler_version(), str(interface), _SOURCE.read_bytes())
    plugin = cache.build("counter", key, compile_it) / "instructions.so"
    why = _refusal(plugin, answer)
    return Counter(None if why else plugin, why)


_answers: dict[tuple[Path, str], str | None] = {}


def _refusal(plugin: Path, version: str) -> str | None:
    """Return why this QEMU does not load the plugin; None if it does. Tested with a machine that never starts."""
    if (plugin, version) in _answers:
        return _answers[plugin, version]
    with scratch("howdah-counter-") as place:
        command = [QEMU, "-M", "none", "-nodefaults", "-display", "none", "-S", "-monitor", "stdio"]
        command += ["-plugin", f"file={qemu_value(plugin)},out={qemu_value(place)}"]
        try:
            answer = subprocess.run(command, input="quit\n", capture_output=True, text=True, timeout=20, check=False)
            said = answer.stderr.strip().splitlines()
            why = f"QEMU takes no plugin: {said[-1] if said else answer.returncode}" if answer.returncode else None
        except subprocess.TimeoutExpired:
            why = "QEMU does not end with a plugin"
    _answers[plugin, version] = why
    return why


class MachineProfile:
    """The profile of one machine: ``at`` adds what the machine needs for it, ``finish`` resolves names.

    A missing part fails no run: ``processor.json`` says why it is missing.
    """

    def __init__(self, kernel: StockKernel, tree: GuestTree, counted: Path, cache: Cache, progress: Progress) -> None:
        self._kernel = kernel
        self._cache = cache
        self._progress = progress
        self._counted = counted
        self._counter = build_counter(cache)
        self._perf = perf_archive(tree, cache, progress)

    def at(self, machine: QemuMachine) -> QemuMachine:
        self._counted.mkdir()
        # After the tree, whose directories it fills.
        memory = machine.memory_bytes + _PERF_BYTES
        observers = (*machine.observers, *self._counter.arguments(self._counted))
        return replace(machine, first=(*machine.first, self._perf), observers=observers, memory_bytes=memory)

    def finish(self, machine: QemuMachine, modules: Mapping[str, Path]) -> None:
        """Write the profile of ``machine``, which has run; ``modules`` are files of modules besides the kernel's."""
        if not (machine.raw / ACCOUNT_FILE).exists():
            return  # the agent failed earlier, which is reported elsewhere
        account: dict[str, Any] = read_json(machine.raw / ACCOUNT_FILE)
        marks: list[int] = account["mark_ns"]
        names = Names(
            kernel_symbols(
                self._kernel,
                lambda command, place: _unobserved(machine, command, place),
                self._progress,
                self._cache,
            ),
            module_functions({**self._kernel.module_files(), **modules}, account["sections"]),
        )

        def place_of(address: int) -> Place:
            return (*names.place(address), "")

        account |= {"counter_why": self._counter.why, "functions": names.tcp_functions()}
        if self._counter.why is None:
            counted = self._count(marks)
            if counted is None:
                account["counter_why"] = "the counter and the guest do not agree on the number of marks"
            else:
                write(machine.raw / INSTRUCTIONS_FILE, marks, counted, place_of)
        if account["perf_why"] is None:
            try:
                perf = machine.raw / "perf.data"
                samples = read_samples(perf.read_bytes(), str(perf))
                account |= {"samples": len(samples.found), "lost": samples.lost, "throttled": samples.throttled}
                write(machine.raw / SAMPLES_FILE, marks, samples_by_interval(samples.found, marks), place_of)
            except (OSError, HowdahError) as error:
                account["perf_why"] = str(error)
        write_json(machine.raw / ACCOUNT_FILE, account)

    def _count(self, marks: Sequence[int]) -> list[Counts[int]] | None:
        blocks = read_blocks((self._counted / "blocks.bin").read_bytes())
        # The intervals before the first mark and after the last one are boot and power-off.
        intervals = list(read_counts((self._counted / "counts.bin").read_bytes()))[1:-1]
        if len(intervals) != len(marks) - 1:
            return None
        return [instructions_by_address(blocks, pairs) for pairs in intervals]


def _unobserved(machine: QemuMachine, command: tuple[str, ...], place: Path) -> QemuMachine:
    """Return the same machine with another program and without observers."""
    return replace(machine, command=command, raw=place, console=place / "console.log", observers=(), speed=Speed(0))
