# SPDX-License-Identifier: Apache-2.0
"""Whether a process runs: what a killed command left is swept when its owner does not."""

from __future__ import annotations

from pathlib import Path

_ENDED = ("Z", "X")


def stat_fields(pid: int | str) -> list[str] | None:
    """What /proc/PID/stat says after the name, from the state on (proc(5)); None without such a process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def is_running(pid: int | str) -> bool:
    """False for a zombie, too: in a container nobody may ever wait for an orphan."""
    fields = stat_fields(pid)
    return fields is not None and fields[0] not in _ENDED
