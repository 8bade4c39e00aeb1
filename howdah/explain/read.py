# SPDX-License-Identifier: Apache-2.0
"""Files that somebody brings to explained flows: each is told by its content, whatever its name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from howdah.errors import HowdahError, RecordError, explain
from howdah.explain.connection import read_capture
from howdah.explain.explained import Explained, explain_connection
from howdah.explain.opened import Opened
from howdah.explain.records import is_capture

MOST_FLOWS = 200
_MOST_FILES = 64


@dataclass
class Read:
    """``others`` counts connections that are not shown."""

    flows: list[Explained] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    others: int = 0


def read_files(paths: list[Path], most_flows: int) -> Read:
    """Raises RecordError where a file is no recording, and HowdahError where no file has a flow."""
    if len(paths) > _MOST_FILES:
        raise HowdahError(f"these are {len(paths)} files; at most {_MOST_FILES} are read at once")
    read = Read()
    for path in paths:
        try:
            _read(path, most_flows, read)
        except OSError as error:
            raise RecordError(f"this cannot be read: {explain(error)}", where=str(path)) from error
    if not read.flows:
        problems = "; ".join(read.problems)
        what = "no transfer with data and ACKs was found" + (f" ({problems})" if problems else "")
        raise RecordError(what, where=", ".join(map(str, paths)))
    read.flows.sort(key=lambda flow: -flow.data_bytes)
    read.others += len(read.flows[most_flows:])
    del read.flows[most_flows:]
    return read


def _read(path: Path, most_flows: int, read: Read) -> None:
    opened = Opened(path)
    try:
        head = opened.read(4096)
    finally:
        opened.close()
    if not is_capture(head):
        raise RecordError(
            "this is no recording that is known",
            where=str(path),
            hint="Known: pcap, pcapng, tcp_probe as text, ss -tin, iperf3's JSON, qlog; gzip, xz and zstd of them.",
        )
    capture = read_capture(path, most_flows)
    read.problems += [f"{path.name}: {problem}" for problem in capture.problems]
    found = [each for each in map(explain_connection, capture.connections) if each is not None]
    read.others += capture.others + len(capture.connections) - len(found)
    read.flows += found
