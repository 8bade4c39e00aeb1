# SPDX-License-Identifier: Apache-2.0
"""Read the qlog of a QUIC sender: its records, whether it is complete, and the sender's state at the arrival of each
ACK.

Three forms are read: JSON text sequences (ngtcp2), one JSON object per line, and one JSON document with events in
``traces`` (aioquic). Event names are those of version 0.3 or 0.4; times count from one instant, or each from the
previous event.
"""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from howdah.record.raw import raw_value, read_raw_bytes

_SEPARATOR = b"\x1e"
_MS_NS = 1_000_000
_SENT, _RECEIVED = "transport:packet_sent", "transport:packet_received"
_LOST, _METRICS = "recovery:packet_lost", "recovery:metrics_updated"
_LEAST_INITIAL_BYTES = 1200  # of a datagram, RFC 9000, 14.1
_MOST = 2**62
_MOST_OF_STATE = 2**50  # bytes of a window, milliseconds of a round trip: as nanoseconds they fit a table
_DAMAGE = (ValueError, LookupError, TypeError, AttributeError, OverflowError)
_NAMES = {"cwnd": "congestion_window"}  # of aioquic
_EVENTS = {  # of version 0.4
    "quic:packet_sent": _SENT,
    "quic:packet_received": _RECEIVED,
    "quic:packet_lost": _LOST,
    "quic:recovery_metrics_updated": _METRICS,
}
_FROM_EVENT_BEFORE = ("delta", "relative_to_previous_event")


@dataclass(frozen=True)
class _Event:
    """A record of a log: the name in version 0.3, milliseconds since one instant, and its data."""

    name: Any
    time: Any
    data: Any


@dataclass(frozen=True)
class SenderState:
    """A sender's state at an instant. ``ssthresh_bytes`` is None while infinite; ``time_ns`` is the qlog's.

    ``acknowledged_bytes`` and ``sent_bytes`` are offsets of the stream that carries the data: everything below the
    first is acknowledged, nothing beyond the second has been sent.
    """

    time_ns: int
    cwnd_bytes: int
    ssthresh_bytes: int | None
    in_flight_bytes: int
    smoothed_rtt_us: int
    latest_rtt_us: int
    min_rtt_us: int | None
    acknowledged_bytes: int
    sent_bytes: int
    lost_packets: int


@dataclass(frozen=True)
class Left:
    """The first exit from slow start: at which ACK or timer, the window before it, and how many packets had just been
    lost."""

    time_ns: int
    cwnd_bytes: int
    ssthresh_bytes: int
    lost_packets: int
    is_cut: bool
    latest_rtt_us: int
    min_rtt_us: int | None


@dataclass
class Qlog:
    """The content of a qlog. ``acks`` has the state before each ACK was processed; ``sent_bytes`` is the UDP payload of
    ``sent_packets``."""

    problems: list[str] = field(default_factory=list)
    acks: list[SenderState] = field(default_factory=list)
    last: SenderState | None = None
    left: Left | None = None
    sent_packets: int = 0
    sent_bytes: int = 0
    lost_packets: int = 0
    datagram_bytes: int = 0  # largest packet
    stream_bytes: int = 0  # of the data stream in a largest packet
    initial_cwnd_bytes: int | None = None
    first_data_ns: int | None = None  # when the first byte of the data stream was sent
    unpadded_bytes: int = 0  # by which Initial packets are shorter than the datagrams that RFC 9000 wants for them


def read_qlog(path: Path) -> Qlog:
    """Read a qlog. ``problems`` reports damage; what precedes it counts."""
    try:
        data = read_raw_bytes(path)
    except (OSError, ValueError) as error:
        return Qlog(problems=[f"{path.name} cannot be read: {error}"])
    return parse_qlog(data, path.name)


def parse_qlog(data: bytes, name: str) -> Qlog:
    """Parse the content of a qlog; messages call the file ``name``."""
    problems: list[str] = []
    events = list(_events(data, name, problems))
    found = _Reader(events).qlog
    found.problems = problems + [f"{name}{problem}" for problem in found.problems]
    if not events and not problems:
        found.problems.append(f"{name} has no events")
    return found


def _events(data: bytes, name: str, problems: list[str]) -> Iterator[_Event]:
    separator = _SEPARATOR
    if data.lstrip().startswith(b"{"):
        separator = b"\n"
        if not _is_line(data.lstrip().partition(separator)[0]):
            try:
                document = raw_value(data)
            except ValueError:
                problems.append(f"{name} is cut short: it is not a whole JSON document of {len(data)} bytes")
                return
            try:
                trace = document["traces"][0]
                events = list(trace["events"])
            except (LookupError, TypeError):
                problems.append(f"{name} has no trace with events")
                return
            if not all(isinstance(event, dict) for event in events):
                problems.append(f"{name} has events that are no objects, as before version 0.3 of qlog")
                return
            yield from _timed(events, trace)
            return
    yield from _timed(_records(data, separator, name, problems), {})


def _is_line(text: bytes) -> bool:
    """Whether this is the first of records in lines: a complete object without traces."""
    try:
        return b'"traces"' not in text and isinstance(raw_value(text), dict)
    except ValueError:
        return False


def _timed(events: Iterable[Any], trace: object) -> Iterator[_Event]:
    """Yield the events. A record that is not an event may hold common fields, like the trace of a document."""
    form, since = _time_format(trace), 0.0
    for event in events:
        if "name" not in event:
            form = _time_format(event.get("trace")) or form
            continue
        named, time = event["name"], event.get("time")
        if form in _FROM_EVENT_BEFORE and isinstance(time, int | float):
            time = since = since + time
        yield _Event(_EVENTS.get(named, named) if isinstance(named, str) else named, time, event.get("data") or {})


def _time_format(trace: object) -> object:
    common = trace.get("common_fields") if isinstance(trace, dict) else None
    return common.get("time_format") if isinstance(common, dict) else None


def _records(data: bytes, separator: bytes, name: str, problems: list[str]) -> Iterator[Any]:
    for number, record in enumerate(part for part in data.split(separator) if part.strip()):
        try:
            value = raw_value(record)
            if not isinstance(value, dict):
                raise ValueError("it is not an object")
        except ValueError:
            problems.append(f"{name} is cut short, or damaged, in its record {number + 1}")
            return
        yield value


def _number(data: Any) -> tuple[str, int]:
    """The packet number space and the number of a packet. In aioquic's record of a loss they are not inside a
    header."""
    header = data.get("header") or data
    kind = header.get("packet_type") or header.get("type")
    return kind if kind in ("initial", "handshake") else "data", int(header["packet_number"])


class _Reader:
    """Reads the events once. Packet numbers are kept apart by packet number space."""

    def __init__(self, events: list[_Event]) -> None:
        self.qlog = Qlog()
        self._stream = _data_stream(events)
        self._outstanding: dict[tuple[str, int], list[tuple[int, int]]] = {}
        self._given_up: dict[tuple[str, int], list[tuple[int, int]]] = {}
        self._acked: list[tuple[int, int]] = []
        self._una = self._nxt = 0
        self._state: dict[str, float] = {}
        self._lost_at: tuple[int, int] = (0, 0)  # of the ACK or timer in progress: since when, how many
        self._before: SenderState | None = None
        last_ns = 0
        for number, event in enumerate(events, 1):
            try:
                last_ns = _count(round(float(event.time) * _MS_NS))
                self._take(event, last_ns)
            except _DAMAGE:
                self.qlog.problems.append(f" is damaged in its event {number}")
                break
        if events and self._state:
            self.qlog.last = self._known(last_ns)

    def _take(self, event: _Event, time_ns: int) -> None:
        name, data = event.name, event.data
        if name == _SENT:
            self._sent(time_ns, data)
        elif name == _RECEIVED:
            acks = [frame for frame in data.get("frames", []) if frame.get("frame_type") == "ack"]
            if acks:
                self._acknowledged(time_ns, _number(data)[0], acks)
        elif name == _LOST:
            self.qlog.lost_packets += 1
            key = _number(data)
            self._given_up[key] = self._outstanding.pop(key, [])
            since, count = self._lost_at
            self._lost_at = (time_ns, count + 1 if since == time_ns else 1)
        elif name == _METRICS:
            self._measured(time_ns, data)

    def _sent(self, time_ns: int, data: Any) -> None:
        length = _count((data.get("raw") or {}).get("length", 0))
        ranges = [
            (_count(frame["offset"]), _count(frame["length"]))
            for frame in data.get("frames", [])
            if frame.get("frame_type") == "stream" and frame["stream_id"] == self._stream
        ]
        qlog = self.qlog
        qlog.sent_packets += 1
        qlog.sent_bytes += length
        if ranges and qlog.first_data_ns is None:
            qlog.first_data_ns = time_ns
        if ranges and length >= qlog.datagram_bytes:
            qlog.datagram_bytes = length
            qlog.stream_bytes = max(sum(size for _, size in ranges), qlog.stream_bytes)
        self._nxt = max([self._nxt, *(offset + size for offset, size in ranges)])
        number = _number(data)
        self._outstanding[number] = ranges
        if number[0] == "initial":
            qlog.unpadded_bytes += max(_LEAST_INITIAL_BYTES - length, 0)

    def _acknowledged(self, time_ns: int, space: str, frames: list[Any]) -> None:
        if self._state and space == "data":
            self.qlog.acks.append(self._known(time_ns))
        least = next((number for kind, number in self._outstanding if kind == space), None)
        for frame in frames:
            for first, *rest in frame["acked_ranges"]:
                last = int(rest[0]) if rest else int(first)
                begin = int(first) if least is None else max(int(first), least)
                if last - begin > len(self._outstanding):  # a range of any length, of a stranger's
                    numbers = sorted(n for kind, n in self._outstanding if kind == space and begin <= n <= last)
                else:
                    numbers = list(range(begin, last + 1))
                for number in numbers:
                    self._arrived((space, number))
                for key in [key for key in self._given_up if key[0] == space and int(first) <= key[1] <= last]:
                    self._acked += [(offset, offset + size) for offset, size in self._given_up.pop(key)]
        heapq.heapify(self._acked)
        while self._acked and self._acked[0][0] <= self._una:
            self._una = max(self._una, heapq.heappop(self._acked)[1])

    def _arrived(self, key: tuple[str, int]) -> None:
        ranges = self._outstanding.pop(key, None)
        if ranges:
            self._acked += [(offset, offset + size) for offset, size in ranges]

    def _measured(self, time_ns: int, data: Any) -> None:
        new = {_NAMES.get(name, name): value for name, value in data.items() if isinstance(value, (int, float))}
        if not all(value >= 0 for value in new.values()):
            raise ValueError("a window or a time below 0")
        new = {name: min(value, _MOST_OF_STATE) for name, value in new.items()}
        before = self._known(time_ns) if self._state else None
        self._state |= new
        if self.qlog.initial_cwnd_bytes is None and "congestion_window" in self._state:
            self.qlog.initial_cwnd_bytes = int(self._state["congestion_window"])
        if self.qlog.left is None and before is not None:
            self.qlog.left = self._exit(time_ns, before)

    def _exit(self, time_ns: int, before: SenderState) -> Left | None:
        """The exit, if the window has reached the threshold or is above it."""
        now = self._known(time_ns)
        if now.ssthresh_bytes is None or now.cwnd_bytes < now.ssthresh_bytes:
            return None
        acked = self.qlog.acks[-1].time_ns if self.qlog.acks else time_ns
        since, count = self._lost_at
        lost = count if count and since >= min(acked, time_ns) - _MS_NS else 0
        is_cut = now.cwnd_bytes < before.cwnd_bytes
        cwnd = before.cwnd_bytes if is_cut else now.cwnd_bytes
        return Left(acked, cwnd, now.ssthresh_bytes, lost, is_cut, now.latest_rtt_us, now.min_rtt_us)

    def _known(self, time_ns: int) -> SenderState:
        state = self._state
        ssthresh, least = state.get("ssthresh"), state.get("min_rtt")
        return SenderState(
            time_ns=time_ns,
            cwnd_bytes=int(state.get("congestion_window", 0)),
            ssthresh_bytes=None if ssthresh is None else int(ssthresh),
            in_flight_bytes=int(state.get("bytes_in_flight", 0)),
            smoothed_rtt_us=round(state.get("smoothed_rtt", 0) * 1000),
            latest_rtt_us=round(state.get("latest_rtt", 0) * 1000),
            min_rtt_us=None if least is None else round(least * 1000),
            acknowledged_bytes=self._una,
            sent_bytes=self._nxt,
            lost_packets=self.qlog.lost_packets,
        )


def _data_stream(events: list[_Event]) -> int | None:
    """The stream with the largest offset sent."""
    farthest: dict[int, int] = {}
    for event in events:
        if event.name != _SENT:
            continue
        with contextlib.suppress(*_DAMAGE):  # the reader tells of it
            for frame in event.data.get("frames", []):
                if frame.get("frame_type") == "stream":
                    end = _count(frame["offset"]) + _count(frame["length"])
                    stream = int(frame["stream_id"])
                    farthest[stream] = max(farthest.get(stream, 0), end)
    return max(farthest, key=lambda stream: farthest[stream], default=None)


def _count(value: Any) -> int:
    """Raise ValueError unless this is a count of bytes, packets or nanoseconds."""
    number = int(value)
    if not 0 <= number <= _MOST:
        raise ValueError(f"{number} is too much")
    return number
