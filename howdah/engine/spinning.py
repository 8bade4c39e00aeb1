# SPDX-License-Identifier: Apache-2.0
"""Which program of a guest uses the processor.

User-mode Linux runs each program of its guest as a process of the host, whose memory is the program's.
The name of the file, its arguments and its environment are at the end of its stack (fs/binfmt_elf.c, fs/exec.c).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_PAGE_BYTES = 4096
_PLATFORM = b"x86_64"  # what the kernel puts before the arguments
_SETTING = re.compile(rb"[A-Za-z_][A-Za-z0-9_]*=")
_AGENT = ("/howdah/in/howdah/agent/", "howdah.agent")
_MOST_CHARACTERS = 160


def busiest(before_s: Mapping[int, float], now_s: Mapping[int, float]) -> tuple[int, float] | None:
    """The process that used most of the processor in between, and how many seconds of it."""
    used = {pid: seconds - before_s.get(pid, 0.0) for pid, seconds in now_s.items()}
    return max(used.items(), key=lambda item: item[1], default=None)


def command_of(pid: int) -> str | None:
    """The command of the guest's program that a process of the host is; None where it is none, or the agent's."""
    try:
        pages = [line.split() for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
        with Path(f"/proc/{pid}/mem").open("rb") as memory:
            for fields in reversed(pages):
                end = int(fields[0].partition("-")[2], 16)
                if not fields[1].startswith("rw") or not fields[1].endswith("s"):
                    continue  # what a guest's program may write is memory that its kernel shares
                memory.seek(end - _PAGE_BYTES)
                found = parse_stack(memory.read(_PAGE_BYTES))
                if found is not None:
                    return None if any(name in found for name in _AGENT) else found
    except (OSError, ValueError):
        pass  # it has ended, or it is not ours to look at
    return None


def parse_stack(page: bytes) -> str | None:
    """The command in the last page of a stack; None of any other page.

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
