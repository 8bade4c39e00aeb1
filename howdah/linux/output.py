# SPDX-License-Identifier: Apache-2.0
"""The agent's files in raw/: JSON files that appear whole, the progress, and framed answers of the kernel."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from howdah.codec import encoded
from howdah.linux.kernelfile import write_file
from howdah.linux.progress_port import END, ProgressPort
from howdah.linux.syscall import write_out

FRAME = struct.Struct("<qIHH")  # time_ns, length_bytes, node, kind
KIND_INET_DIAG = 1
KIND_QDISC = 2
KIND_LINK = 3
KIND_PROCESSOR = 4
KIND_OPPORTUNITIES = 5

_FLUSH_BYTES = 1 << 20
_PROGRESS_BYTES = 96  # room for the longest phase and two very large times


class Output:
    """The directory raw/ as the guest sees it. Framed files are flushed every ``flush_ns`` if that is given.

    ``progress_port`` reports progress when these files cannot be seen before the run's end.
    """

    def __init__(self, path: Path, flush_ns: int | None = None, progress_port: ProgressPort | None = None) -> None:
        self.path = path
        self.flush_ns = flush_ns
        self.progress_port = progress_port

    def json(self, name: str, value: Any) -> None:
        """Write values and records as JSON; a reader sees the old file or the whole new one."""
        temporary = self.path / f".{name}.new"
        write_file(str(temporary), json.dumps(encoded(value), separators=(",", ":")) + "\n", new=True)
        temporary.replace(self.path / name)

    def host_clock_us(self) -> int:
        """The wall clock of the host that stores the files, read from the time stamp of a new file.

        A virtual-time guest has no other view of real time; the resolution is the host's, some milliseconds.
        """
        path = self.path / ".clock"
        path.touch()
        time_us = path.stat().st_mtime_ns // 1000
        path.unlink()
        return time_us

    def directory(self, name: str) -> Path:
        path = self.path / name
        path.mkdir(exist_ok=True)
        return path

    def binary(self, name: str) -> BinaryIO:
        return (self.path / name).open("wb", buffering=0)


class FramedFile:
    """A sequence of kernel answers as received; see docs/data-format.md.

    Answers stay in memory up to 1 MiB and no longer than ``flush_ns``, so that a run in real time can be watched.
    """

    def __init__(self, file: BinaryIO, flush_ns: int | None = None) -> None:
        self._file = file
        self._buffer = bytearray()
        self._flush_ns = flush_ns
        self._flushed_ns: int | None = None
        self.records = 0

    def append(self, time_ns: int, node: int, kind: int, answers: Sequence[bytes]) -> None:
        length = sum(map(len, answers))
        self._buffer += FRAME.pack(time_ns, length, node, kind)
        for answer in answers:
            self._buffer += answer
        self.records += 1
        if self._flushed_ns is None:
            self._flushed_ns = time_ns
        due = self._flush_ns is not None and time_ns - self._flushed_ns >= self._flush_ns
        if due or len(self._buffer) >= _FLUSH_BYTES:
            self.flush()
            self._flushed_ns = time_ns

    def flush(self) -> None:
        if self._buffer:
            self._file.write(self._buffer)
            self._buffer = bytearray()

    def close(self) -> None:
        self.flush()
        self._file.close()


class Progress:
    """progress.json: the phase, and the elapsed and total time of the run, both from the guest's boot.

    The file is written in place with constant length: replacing it would cost a guest six times as much, and would make
    its host write to disk. A reader may see a mixture of two versions and must then read again, as Life and the others
    do.
    """

    def __init__(self, output: Output, of_us: int) -> None:
        self._output = output
        self._of_us = of_us
        self._descriptor: int | None = None
        self.phase = "setup"

    def ends_at(self, of_us: int) -> None:
        """Correct the end of the run."""
        self._of_us = of_us
        if self._output.progress_port is not None:
            self._output.progress_port.tell(END, of_us * 1000)

    def write(self, phase: str, time_ns: int) -> None:
        self.phase = phase
        if self._descriptor is None:
            name = self._output.path / "progress.json"
            self._descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666)
        said = {"phase": phase, "time_us": time_ns // 1000, "of_us": self._of_us}
        os.pwrite(self._descriptor, json.dumps(said, separators=(",", ":")).ljust(_PROGRESS_BYTES).encode(), 0)
        write_out(self._descriptor)
        if self._output.progress_port is not None:
            self._output.progress_port.tell(phase, time_ns)

    def tick(self, time_ns: int) -> None:
        self.write(self.phase, time_ns)
