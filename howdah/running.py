# SPDX-License-Identifier: Apache-2.0
"""Whether a process is still running: files left by a killed command are removed once their owner is gone."""

from __future__ import annotations

from pathlib import Path

_ENDED = ("Z", "X")


def stat_fields(pid: int | str) -> list[str] | None:
    """Return the fields of /proc/PID/stat after the name, from the state on (proc(5)); None without the process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def is_running(pid: int | str) -> bool:
    """Return whether a process runs. A zombie does not: in a container an orphan may never be reaped."""
    fields = stat_fields(pid)
    return fields is not None and fields[0] not in _ENDED
