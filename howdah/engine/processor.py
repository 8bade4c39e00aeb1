# SPDX-License-Identifier: Apache-2.0
"""Assigns a processor to each guest, and finds the guest's program that uses it.

A user-mode kernel and the processes in it are host processes that take turns, several times per system call of the
guest. On one processor a turn is a context switch; on two it wakes up an idle one, and a guest full of processes
(iperf3) runs four times slower.

Each program of a guest is a host process with the program's memory. The program's file name, arguments and environment
are at the end of its stack (fs/binfmt_elf.c, fs/exec.c).
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_PAGE_BYTES = 4096
_PLATFORM = b"x86_64"  # the string before the arguments, from the kernel
_SETTING = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*=")
_AGENT = ("/howdah/in/howdah/agent/", "howdah.agent")
_MOST_CHARACTERS = 160


@contextmanager
def own_processor(base: Path) -> Iterator[int | None]:
    """Reserve a processor that no other guest of this user has, for the duration of the context; provide its number.

    None if all processors of this process are taken: the guest then runs on any of them. Lock files are in ``base``;
    the system releases a lock when its process ends, however it ends.
    """
    for processor in sorted(os.sched_getaffinity(0)):
        name = base / f"howdah-processor-{os.geteuid()}-{processor}.lock"
        try:
            descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            continue  # another user's file of that name: go on without this processor
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield processor
            return
        finally:
            os.close(descriptor)
    yield None


def busiest(before_s: Mapping[int, float], now_s: Mapping[int, float]) -> tuple[int, float] | None:
    """Return the process that used most processor time between two readings, and the seconds used."""
    used = {pid: seconds - before_s.get(pid, 0.0) for pid, seconds in now_s.items()}
    return max(used.items(), key=lambda item: item[1], default=None)


def command_of(pid: int) -> str | None:
    """Return the command of the guest's program that runs in a host process; None for other processes and the agent."""
    try:
        pages = [line.split() for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
        with Path(f"/proc/{pid}/mem").open("rb") as memory:
            for fields in reversed(pages):
                end = int(fields[0].partition("-")[2], 16)
                if not fields[1].startswith("rw") or not fields[1].endswith("s"):
                    continue  # writable memory of a guest's program is shared with its kernel
                memory.seek(end - _PAGE_BYTES)
                found = parse_stack(memory.read(_PAGE_BYTES))
                if found is not None:
                    return None if any(name in found for name in _AGENT) else found
    except (OSError, ValueError):
        pass  # the process has ended, or may not be inspected
    return None


def parse_stack(page: bytes) -> str | None:
    """Return the command from the last page of a stack; None for any other page.

    From the page's end down: a word of zeros, the file's name, the environment, the arguments, the platform.
    """
    if page[-8:] != bytes(8):
        return None
    texts = page.rstrip(b"\0").split(b"\0")
    platform = next((number for number, text in enumerate(texts) if text.endswith(_PLATFORM)), None)
    if platform is None or not texts[-1].startswith(b"/"):
        return None
    arguments = texts[platform + 1 : -1]
    first = next((number for number, text in enumerate(arguments) if _SETTING.match(text)), len(arguments))
    command = " ".join(text.decode(errors="replace") for text in arguments[:first])
    return " ".join(command.split())[:_MOST_CHARACTERS] or texts[-1].decode(errors="replace")
