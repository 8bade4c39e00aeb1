# SPDX-License-Identifier: Apache-2.0
"""What is said of a machine that never comes up, or whose QEMU is killed, and that nothing of it stays."""

from __future__ import annotations

import os
import signal
import struct
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from howdah.build.accelerator import QEMU
from howdah.build.cache import Cache
from howdah.build.tools import build_tools, library
from howdah.engine.vm.machine import WARP, QemuMachine, Speed, run
from howdah.errors import RunFailedError

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("qemu")]

_ADDRESS = 0x100000
_FOREVER = b"\xeb\xfe"  # jmp to itself
_NOT_A_PROCESSOR_S = 30.0


def endless_kernel() -> bytes:
    """An ELF file with a PVH entry (a note of the owner Xen) at which it stays."""
    notes = struct.pack("<III4sI", 4, 4, 18, b"Xen\0", _ADDRESS)
    at = 64 + 2 * 56
    head = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, _ADDRESS, 64, 0, 0, 64, 56, 2, 0, 0, 0)
    code = _FOREVER.ljust(16, b"\x90")
    load = struct.pack("<IIQQQQQQ", 1, 5, at, _ADDRESS, _ADDRESS, len(code), len(code), 16)
    note = struct.pack("<IIQQQQQQ", 4, 4, at + len(code), 0, 0, len(notes), len(notes), 4)
    return head + load + note + code + notes


@pytest.fixture
def endless(tmp_path: Path) -> QemuMachine:
    (tmp_path / "kernel").write_bytes(endless_kernel())
    (tmp_path / "tree.cpio").write_bytes(b"")
    return QemuMachine(
        kernel=tmp_path / "kernel",
        first=(tmp_path / "tree.cpio",),
        command=("/usr/bin/true",),
        memory_bytes=64 << 20,
        delivery_bytes=1 << 20,
        raw=tmp_path / "raw",
        console=tmp_path / "raw" / "console.log",
        speed=Speed(0),
        accelerator="tcg",
        wall_clock_limit_s=600.0,
        clock_limit_s=100,
        launcher=build_tools(Cache()).launch,
        library=library(WARP, Cache()),
    )


def quiet(_phase: str, _done: int, _total: int) -> None: ...


def processes_of(place: Path) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (
                str(place).encode() in (process / "cmdline").read_bytes()
                and QEMU.encode() in str((process / "exe").readlink()).encode()
            ):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def wait_for(place: Path, there: bool) -> list[int]:
    end = time.monotonic() + _NOT_A_PROCESSOR_S
    while bool(found := processes_of(place)) is not there and time.monotonic() < end:
        time.sleep(0.1)
    return found


def test_a_machine_that_never_comes_up_is_ended(endless: QemuMachine) -> None:
    with pytest.raises(RunFailedError, match=r"did not come up: its kernel has not started the first program after"):
        run(replace(endless, boot_limit_s=1.0), quiet)
    assert wait_for(endless.raw, there=False) == []
    assert [file.name for file in endless.raw.iterdir() if file.name.startswith(".")] == []


def test_a_qemu_that_is_killed_is_told(endless: QemuMachine) -> None:
    def kill() -> None:
        for process in wait_for(endless.raw, there=True):
            os.kill(process, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(RunFailedError, match=r"killed from outside \(SIGKILL, phase boot"):
        run(endless, quiet)
    killer.join()


def test_an_interrupt_leaves_nothing(endless: QemuMachine) -> None:
    """Ctrl-C reaches howdah, which ends the machine and removes what it wrote for it."""

    def interrupt(_phase: str, _done: int, _total: int) -> None:
        if processes_of(endless.raw):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(endless, interrupt)
    assert wait_for(endless.raw, there=False) == []
    assert [file.name for file in endless.raw.iterdir() if file.name.startswith(".")] == []


def test_a_file_that_is_no_kernel_is_told_in_qemus_words(endless: QemuMachine) -> None:
    endless.kernel.write_bytes(b"nothing that starts")
    with pytest.raises(RunFailedError, match=r"ended with status 1: .*kernel"):
        run(endless, quiet)
