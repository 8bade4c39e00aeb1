# SPDX-License-Identifier: Apache-2.0
"""A kernel tracepoint, recorded in a tracefs instance of its own and kept as raw sub-buffers."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from collectors.collector import Collector, CollectorError, Surroundings, Watched
from howdah.linux.kernelfile import read_file, write_file
from howdah.plan.plan import Plan
from howdah.record.account import TraceAccount, TraceFile

TRACEFS = Path("/sys/kernel/tracing")

_SUBBUFFER_KIBIBYTES = 64
_PAGE_BYTES = 4096
_MOST_NAMED = 100  # most connections that a filter names one by one
_READ_BYTES = 1 << 18
_SHORTEST_INTERVAL_NS = 20_000_000
_LONGEST_INTERVAL_NS = 10_000_000_000
# Header of a sub-buffer on 64-bit machines (events/header_page): a time, and the number of bytes that follow, with
# flags in its upper bits.
_PAGE_HEADER = struct.Struct("@QQ")
_LENGTH = (1 << 20) - 1

# Lines of per_cpu/cpuN/stats, and their names in the account.
_STATISTICS = {
    "read events": "entries",
    "entries": "unread",
    "overrun": "overrun",
    "dropped events": "dropped_events",
    "commit overrun": "commit_overrun",
}


def event_filter(connections: list[Watched]) -> str:
    """A filter that keeps the records of the senders' sockets; receivers would add one record a data segment.

    The kernel takes at most a page of text, so many connections are described by ranges of ports. Their receivers'
    ports may be far apart, with ports of senders in between.
    """
    servers = [_of_server(item) for item in connections if item.program_port is not None]
    connections = [item for item in connections if item.program_port is None]
    parts = [f"(sport=={item.endpoint.local_port}&&dport=={item.endpoint.remote_port})" for item in connections]
    if len(parts) <= _MOST_NAMED:
        return "||".join(parts + servers)
    local = [item.endpoint.local_port for item in connections]
    ranges = list(port_ranges([item.endpoint.remote_port for item in connections]))
    if len(ranges) > _MOST_NAMED:
        ranges = [(ranges[0][0], ranges[-1][1])]
    remote = "||".join(f"(dport>={first}&&dport<={last})" for first, last in ranges)
    rest = f"sport>={min(local)}&&sport<={max(local)}&&({remote})"
    return "||".join([f"({rest})", *servers]) if servers else rest


def _of_server(item: Watched) -> str:
    """A filter for all packets that a program's server sends or receives, because the client's port may be any."""
    sends = item.program_port == item.endpoint.local_port
    return f"({'sport' if sends else 'dport'}=={item.program_port})"


def port_ranges(ports: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the first and last port of each run of consecutive ports, ascending."""
    first = last = None
    for port in sorted(set(ports)):
        if first is None or last is None:
            first = port
        elif port != last + 1:
            yield first, last
            first = port
        last = port
    if first is not None and last is not None:
        yield first, last


def parse_statistics(text: str) -> dict[str, int]:
    """Parse per_cpu/cpuN/stats of tracefs into the names of the account."""
    found = dict.fromkeys(_STATISTICS.values(), 0)
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in _STATISTICS:
            found[_STATISTICS[name.strip()]] = int(value)
    return found


def drain_interval_ns(plan: Plan, buffer_bytes: int, record_bytes: int) -> int:
    """The interval at which the buffer fills to at most 40 %, with one record a frame at the bottleneck's rate."""
    path = plan.path
    carried = path.carried_bits_per_second or path.rate_bits_per_second
    records_per_second = carried / 8 / path.frame_bytes
    seconds = 0.4 * buffer_bytes / (records_per_second * record_bytes)
    return min(max(int(seconds * 1e9), _SHORTEST_INTERVAL_NS), _LONGEST_INTERVAL_NS)


class TracepointCollector(Collector):
    """Records a tracepoint in a tracefs instance with clock ``mono``, emptied before it is half full.

    Writes ``NAME.bin`` (``NAME.bin.N`` for further processors): sub-buffers of ``per_cpu/cpuN/trace_pipe_raw`` in
    order, each ``subbuffer_bytes`` long. ``NAME.format`` describes a record's fields, ``header_page`` and
    ``header_event`` a sub-buffer's layout; all three are copies of the kernel's own files. The account counts records
    kept and lost.

    ``name`` names the file and the instance, ``event`` is the tracepoint below ``events/``, ``account`` a file's name,
    ``record_bytes`` an upper bound of a record with its header.
    """

    name: str
    event: str
    account: str
    record_bytes: int

    def __init__(self, surroundings: Surroundings, buffer_bytes: int) -> None:
        super().__init__(surroundings)
        self.interval_ns = drain_interval_ns(surroundings.planned, buffer_bytes, self.record_bytes)
        self._buffer_bytes = buffer_bytes
        self._instance = TRACEFS / "instances" / f"howdah-{self.name}"
        self._enable = f"events/{self.event}/enable"
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self._subbuffer_bytes = _PAGE_BYTES
        self._pipes: list[tuple[int, BinaryIO]] = []
        self._bytes: list[int] = []

    @classmethod
    def exists(cls) -> bool:
        """Whether the running kernel has the tracepoint; a module's tracepoint exists while it is loaded."""
        return (TRACEFS / "events" / cls.event).is_dir()

    def check(self) -> None:
        if not self.exists():
            raise CollectorError(f"{TRACEFS / 'events' / self.event} is missing: the kernel has no such tracepoint")

    def start(self, _now_ns: int) -> None:
        if self._instance.is_dir():
            self._instance.rmdir()
        self._instance.mkdir()
        processors = sorted((self._instance / "per_cpu").iterdir(), key=lambda path: int(path.name[3:]))
        self._write("trace_clock", "mono")
        self._write("options/overwrite", "0")
        for option in ("record-cmd", "record-tgid"):
            if (self._instance / "options" / option).exists():
                self._write(f"options/{option}", "0")
        if (self._instance / "buffer_subbuf_size_kb").exists():
            self._write("buffer_subbuf_size_kb", str(_SUBBUFFER_KIBIBYTES))
            self._subbuffer_bytes = _SUBBUFFER_KIBIBYTES * 1024
        self._write("buffer_size_kb", str(max(self._buffer_bytes // 1024 // len(processors), 256)))
        self._write(f"events/{self.event}/filter", event_filter(self.surroundings.connections))
        output = self.surroundings.output
        for name, source in (
            (f"{self.name}.format", self._instance / "events" / self.event / "format"),
            ("header_page", self._instance / "events/header_page"),
            ("header_event", self._instance / "events/header_event"),
        ):
            write_file(str(output.path / name), read_file(str(source)), new=True)
        for number, processor in enumerate(processors):
            pipe = os.open(processor / "trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            self._pipes.append((pipe, output.binary(self._file(number))))
            self._bytes.append(0)
        self._write(self._enable, "1")

    def _file(self, processor: int) -> str:
        return f"{self.name}.bin.{processor}" if processor else f"{self.name}.bin"

    def _write(self, name: str, value: str) -> None:
        try:
            write_file(str(self._instance / name), value)
        except OSError as error:
            raise CollectorError(f"tracefs {name}: cannot write {value!r}: {error.strerror}") from error

    def sample(self, _now_ns: int) -> None:
        """Read what is there, up to the sub-buffer that is being written.

        That is at the latest the second one that is less than half full; the first may be the rest of one that was read
        while it was written. On a processor of finite speed records arrive during the reading, and the sub-buffers with
        a record or two in each would never end.
        """
        self._drain(most_partial=2)

    def _drain(self, most_partial: int | None) -> None:
        for number, (pipe, file) in enumerate(self._pipes):
            left = most_partial
            while left is None or left > 0:
                count, partial = self._fill(pipe, left)
                if not count:
                    break
                file.write(self._buffer[:count])
                self._bytes[number] += count
                left = None if left is None else left - partial

    def _fill(self, pipe: int, most_partial: int | None) -> tuple[int, int]:
        """Read whole sub-buffers into the copy buffer until it is full, none is left, or ``most_partial`` of them were
        less than half full. Return the number of bytes, and of sub-buffers that were less than half full.
        """
        filled = partial = 0
        while filled + self._subbuffer_bytes <= _READ_BYTES and partial != most_partial:
            try:
                count = os.readv(pipe, [self._buffer[filled : filled + self._subbuffer_bytes]])
            except BlockingIOError:
                break
            if not count:
                break
            _time_ns, committed = _PAGE_HEADER.unpack_from(self._buffer, filled)
            partial += committed & _LENGTH < self._subbuffer_bytes // 2
            filled += count
        return filled, partial

    def stop(self, _now_ns: int) -> None:
        self._write(self._enable, "0")
        self._write("tracing_on", "0")
        self._drain(most_partial=None)
        totals = dict.fromkeys(_STATISTICS.values(), 0)
        processors = []
        for number, (pipe, file) in enumerate(self._pipes):
            statistics = parse_statistics((self._instance / "per_cpu" / f"cpu{number}" / "stats").read_text())
            for name, value in statistics.items():
                totals[name] += value
            os.close(pipe)
            file.close()
            processors.append(TraceFile(number, self._file(number), self._bytes[number]))
        account = TraceAccount(self._subbuffer_bytes, "mono", **totals, cpus=processors)
        self.surroundings.output.json(self.account, account)
        self._instance.rmdir()
