# SPDX-License-Identifier: Apache-2.0
"""Read logs of a sender's own state: ``ss -tin`` and ``ss -tinO``, repeated, with or without lines of times between
them; and iperf3's JSON, whose intervals have the sender's window and round trip.

Such a log has the sender's windows, which no capture has, and no packets, so what ACKs and losses would show stays
unknown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import numpy as np

from howdah.algorithm import ALGORITHMS
from howdah.errors import RecordError
from howdah.explain.estimate import Estimate, absent
from howdah.explain.explained import Explained, ExplainedExit, Source, partly_known
from howdah.held import HeldBy
from howdah.ingest.source import Integers
from howdah.measure.cause import LOSS
from howdah.measure.held import Holding
from howdah.measure.limit import APPLICATION, RECEIVE_WINDOW
from howdah.plan.plan import Flow
from howdah.record.raw import raw_value

Reals = np.ndarray
STAYED = "the window stayed below the threshold"
NO_TIMES = "the log has no times: times are numbers of readings, from 0"


@dataclass
class SenderLog:
    """Readings in order of time, shape (n,); -1 where a reading lacks a value or the threshold is infinite.

    ``every_ack``: there is a reading for each ACK. ``holding`` has the seconds of each kind if the sender counted them.
    """

    name: str
    file: str
    source: Source
    time_ns: Integers
    cwnd: Integers
    ssthresh: Integers
    flight_packets: Integers
    rtt_us: Integers
    retransmitted: Integers
    every_ack: bool
    timed: bool  # otherwise ``time_ns`` counts readings, as seconds
    mss_bytes: int | None = None
    min_rtt_us: float | None = None
    algorithm: str | None = None
    bytes_acked: int = 0
    window_bytes: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    fastest_bits_per_second: float | None = None
    holding: Holding | None = None
    notes: list[str] = field(default_factory=list)


def stand_in(algorithm: str) -> Flow:
    """A flow for measures that require its algorithm; a recording has no plan."""
    return Flow(
        id=1, name="flow1", sender="sender", receiver="receiver", source_address="", source_port=0,
        destination_address="", destination_port=0, algorithm=algorithm, kernel_algorithm=algorithm, traffic="recorded",
        start_us=0, stop_us=0, size_bytes=None, forward_delay_us=0, reverse_delay_us=0, rtt_us=0,
        initial_window_packets=10,
    )  # fmt: skip


def explain_log(log: SenderLog, leaves: ExplainedExit | None, why_no_exit: str) -> Explained:
    """Explain the flow of a log; ``leaves`` is the exit that its reader found."""
    no_packets = f"{log.source} has no packets"
    duration = float(log.time_ns[-1] - log.time_ns[0]) / 1e9 if log.time_ns.size and log.timed else 0.0
    known = log.cwnd[log.cwnd > 0]
    peak = float(log.flight_packets.max()) if log.flight_packets.size and log.flight_packets.max() > 0 else None
    peak = peak if peak is not None else float(known.max()) if known.size else None
    windows = log.window_bytes[log.window_bytes >= 0]
    again = log.retransmitted[log.retransmitted >= 0]
    limit = None
    if leaves is None and log.holding is not None and log.holding.span_s > 0:
        shares = {kind: log.holding.share(kind) for kind in log.holding.seconds}
        most = max(shares, key=lambda kind: shares[kind], default=None)
        limit = {"receive-buffer": RECEIVE_WINDOW, "application": APPLICATION}.get(str(most)) if most else None
    algorithm, words = _algorithm(log.algorithm)
    return partly_known(
        no_packets,
        name=log.name,
        file=log.file,
        source=log.source,
        at="sender",
        duration_s=duration,
        data_bytes=log.bytes_acked,
        options={},
        mss_bytes=log.mss_bytes,
        initial_window_packets=int(known[0]) if known.size and log.every_ack else None,
        base_rtt_us=_base(log),
        rate_bits_per_second=absent(no_packets, log.fastest_bits_per_second),
        buffer_bytes=_buffer(log, no_packets),
        goodput_bits_per_second=log.bytes_acked * 8 / duration if duration > 0 else 0.0,
        exit=leaves,
        why_no_exit=why_no_exit,
        limit=limit,
        peak_packets=Estimate(peak, peak, None, "the largest reading") if peak is not None else absent(no_packets),
        retransmitted_packets=int(again.max()) if again.size else None,
        receive_window_least_bytes=int(windows.min()) if windows.size else None,
        receive_window_most_bytes=int(windows.max()) if windows.size else None,
        algorithm=algorithm,
        algorithm_words=words,
        holding=log.holding,
        notes=log.notes,
        unknown={} if log.timed else {"time": NO_TIMES},
    )


def _algorithm(said: str | None) -> tuple[list[str], str]:
    if said is None:
        return ["cubic", "reno", "bbr"], "the log does not name it"
    known = [name for name, each in ALGORITHMS.items() if said in (name, each.kernel)]
    if known:
        return [said if said in known else known[0]], "the log names it"
    return ["cubic", "reno", "bbr"], "the log names one that is not known here"


def _base(log: SenderLog) -> Estimate:
    if log.min_rtt_us is not None:
        least = log.min_rtt_us
        return Estimate(least, None, 1.01 * least, "the sender's own minimum; a queue may have been there all the time")
    rtt = log.rtt_us[log.rtt_us > 0]
    if not rtt.size:
        return absent(f"{log.source} has no round-trip times")
    least = float(rtt.min())
    return Estimate(least, None, 1.02 * least, "the least smoothed round trip")


def _buffer(log: SenderLog, why: str) -> Estimate:
    rtt = log.rtt_us[log.rtt_us > 0]
    if not rtt.size or log.fastest_bits_per_second is None:
        return absent(why)
    return absent(why, float(rtt.max() - rtt.min()) * log.fastest_bits_per_second / 8e6)


def exit_between_readings(log: SenderLog) -> tuple[ExplainedExit | None, str]:
    """Return the exit, or why there is no exit. It lies between the first reading whose window has reached a finite
    threshold and the reading before."""
    left = np.flatnonzero((log.ssthresh >= 0) & (log.cwnd >= log.ssthresh))
    if not left.size:
        return None, STAYED
    at = int(left[0])
    if at == 0:
        return None, "the first reading is behind the exit"
    low, high = sorted((float(log.cwnd[at - 1]), float(max(log.cwnd[at], log.ssthresh[at]))))
    lost = log.retransmitted[at] > max(int(log.retransmitted[at - 1]), 0) if log.retransmitted[at] >= 0 else False
    cut = bool(log.ssthresh[at] < log.cwnd[at - 1])
    cause, evidence = None, "the threshold became finite between two readings; why does not show"
    if lost and cut:
        cause, evidence = LOSS, "the threshold fell below the window, and segments were sent again"
    packets = Estimate(high, low, max(2 * high, float(log.cwnd.max())) if cut else high, "between two readings")
    when = float(log.time_ns[at] - log.time_ns[0]) / 1e9
    return ExplainedExit(when, packets, None, cause, cause is not None, evidence), ""


_SS: Final = "ss"
_STATE = r"(?:ESTAB|CLOSE-WAIT|FIN-WAIT-[12]|LAST-ACK|CLOSING|TIME-WAIT|SYN-SENT|SYN-RECV)"
_SOCKET = re.compile(rf"^(?:tcp\s+)?{_STATE}\s+\d+\s+\d+\s+(\S{{3,80}})\s+(\S{{3,80}})(.*)$")
_INFO = re.compile(r"\bcwnd:\d")
_VALUE = re.compile(r"\b([a-z_]{2,20}):([0-9./]{1,40})")
_RATE = re.compile(r"\b(pacing_rate|delivery_rate|send) ([0-9.]{1,20})(|k|K|M|G|T)bps")
_EPOCH = re.compile(r"^\D{0,20}(\d{9,11}(?:\.\d{1,9})?)\D{0,4}$")
_SCALE = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_ALGORITHM = re.compile(
    r"(?:^|\s)(?!(?:ts|sack|ecn|ecnseen|fastopen) )([a-z][a-z0-9_]{1,15}) (?:wscale|rto|rtt|mss|cwnd):"
)
_MOST_LINES = 2_000_000  # lines that are read
Values = dict[str, float]


def is_sockets(head: str) -> bool:
    lines = head.splitlines()
    return any(_SOCKET.match(line) for line in lines) and any(_INFO.search(line) for line in lines)


def explain_sockets(lines: Iterator[str], file: str, most: int) -> list[Explained]:
    readings: dict[str, list[tuple[float | None, Values, str | None]]] = {}
    when: float | None = None
    name: str | None = None
    for number, line in enumerate(lines):
        if number >= _MOST_LINES:
            break
        stamp = _time(line)
        if stamp is not None:
            when = stamp
            continue
        socket = _SOCKET.match(line)
        rest = line
        if socket is not None:
            name, rest = f"{socket[1]} > {socket[2]}", socket[3]
        if name is not None and _INFO.search(rest):
            algorithm = _ALGORITHM.search(rest)
            readings.setdefault(name, []).append((when, _values(rest), algorithm[1] if algorithm else None))
            name = None
    found = [_flow(each, rows, file) for each, rows in readings.items()]
    return sorted((each for each in found if each.data_bytes > 0), key=lambda each: -each.data_bytes)[:most]


def _time(line: str) -> float | None:
    text = line.strip()
    epoch = _EPOCH.match(text)
    if epoch is not None:
        return float(epoch[1])
    if len(text) > 40 or len(text) < 10 or not text[:4].isdigit():
        return None
    try:
        return datetime.fromisoformat(text.replace(",", ".")).timestamp()
    except ValueError:
        return None


def _values(text: str) -> Values:
    found: Values = {}
    for name, value in _VALUE.findall(text):
        first, _, second = value.partition("/")
        try:
            found[name] = float(first)
            if name == "retrans" and second:
                found["retransmitted"] = float(second)
        except ValueError:
            continue
    for name in ("busy", "rwnd_limited", "sndbuf_limited"):
        match = re.search(rf"\b{name}:(\d{{1,15}})ms", text)
        if match is not None:
            found[name] = float(match[1])
    for name, value, unit in _RATE.findall(text):
        try:
            found[name] = float(value) * _SCALE[unit]
        except ValueError:
            continue
    return found


def _flow(name: str, rows: list[tuple[float | None, Values, str | None]], file: str) -> Explained:
    timed = all(when is not None for when, _, _ in rows)
    times = [float(when if timed and when is not None else at) for at, (when, _, _) in enumerate(rows)]
    order = sorted(range(len(rows)), key=lambda at: times[at])
    values = [rows[at][1] for at in order]

    def column(key: str, factor: float = 1.0) -> np.ndarray:
        return np.array([round(min(each[key] * factor, 1e15)) if key in each else -1 for each in values], np.int64)

    last = values[-1]
    minimum = [each["minrtt"] for each in values if each.get("minrtt")]
    rates = [each["delivery_rate"] for each in values if "delivery_rate" in each]
    named = [algorithm for _, _, algorithm in rows if algorithm is not None]
    log = SenderLog(
        name, file, _SS, np.array([round(times[at] * 1e9) for at in order], np.int64), column("cwnd"),
        column("ssthresh"), column("unacked"), column("rtt", 1000), column("retransmitted"), every_ack=False,
        timed=timed,
        mss_bytes=round(last["mss"]) if last.get("mss") else None, min_rtt_us=min(minimum) * 1000 if minimum else None,
        algorithm=named[-1] if named else None, bytes_acked=round(min(last.get("bytes_acked", 0.0), 1e15)),
        window_bytes=column("snd_wnd"), fastest_bits_per_second=max(rates) if rates else None, holding=_holding(last),
    )  # fmt: skip
    return explain_log(log, *exit_between_readings(log))


def _holding(last: Values) -> Holding | None:
    """What the kernel counts: the time with data to send, and how much of it the receive window or the send buffer
    limited."""
    busy = last.get("busy", 0.0) / 1000
    if busy <= 0:
        return None
    receive = min(last.get("rwnd_limited", 0.0) / 1000, busy)
    buffer = min(last.get("sndbuf_limited", 0.0) / 1000, busy - receive)
    seconds = {HeldBy.RECEIVE_BUFFER: receive, HeldBy.SEND_BUFFER: buffer, HeldBy.UNKNOWN: busy - receive - buffer}
    return Holding({kind: each for kind, each in seconds.items() if each > 0}, busy)


_IPERF3: Final = "iperf3"


def is_iperf3(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get("intervals"), list) and "start" in document


def document_of_stream(lines: bytes) -> dict[str, Any] | None:
    """The document that the lines of ``--json-stream`` make; None if they are something else."""
    found: dict[str, Any] = {"intervals": []}
    for line in lines.splitlines():
        try:
            value = raw_value(line)
        except ValueError:
            break  # cut off
        event, data = (value.get("event"), value.get("data")) if isinstance(value, dict) else (None, None)
        if event == "interval":
            found["intervals"].append(data)
        elif event in ("start", "end", "error"):
            found[event] = data
        else:
            break
    return found if "start" in found else None


def explain_iperf3(document: dict[str, Any], file: str, most: int) -> list[Explained]:
    """Explain each stream; streams that a receiver reports have no window. Raise RecordError if the test does not use
    TCP."""
    if _dict(_dict(document, "start"), "test_start").get("protocol", "TCP") != "TCP":
        raise RecordError("this is a test of iperf3 without TCP, so it has no window", where=file)
    if not document["intervals"]:
        raise RecordError("this test of iperf3 ended before its first interval", where=file)
    streams: dict[int, list[dict[str, Any]]] = {}
    for interval in document["intervals"]:
        for each in _list(interval, "streams"):
            if isinstance(each, dict) and not each.get("omitted"):
                streams.setdefault(round(_number(each, "socket")), []).append(each)
    end, start = _dict(document, "end"), _dict(document, "start")
    ends = {round(_number(_dict(each, "sender"), "socket")): _dict(each, "sender") for each in _list(end, "streams")}
    said = end.get("sender_tcp_congestion")
    mss = round(_number(start, "tcp_mss_default")) or None
    most_at_once = _most_at_once(document["intervals"])
    found = []
    for number, (socket, rows) in enumerate(list(streams.items())[:most]):
        log = _log(
            f"stream {number + 1}", rows, ends.get(socket, {}), file, mss, said if isinstance(said, str) else None
        )
        sends = bool(rows[0].get("sender", True))
        together, bits = most_at_once[sends]
        if together > 1:
            log.fastest_bits_per_second = bits
            log.notes.append(f"{together} streams that way shared the path; the rate's bound is of all of them")
        if "error" in document:
            log.notes.append("iperf3 reports an error: the test may have ended too early")
        why = "readings are an interval apart, and iperf3 does not report the threshold"
        found.append(explain_log(log, None, why))
        found[-1].hosts = ("here", "there") if sends else ("there", "here")
        found[-1].begins_s = float(log.time_ns[0]) / 1e9
    return found


def _most_at_once(intervals: list[Any]) -> dict[bool, tuple[int, float]]:
    """For sending and for receiving: the most streams in an interval, and their largest total rate."""
    found = {True: (0, 0.0), False: (0, 0.0)}
    for interval in intervals:
        for sends, (count, bits) in found.items():
            rows = [each for each in _list(interval, "streams") if isinstance(each, dict)]
            rows = [each for each in rows if bool(each.get("sender", True)) == sends]
            rate = sum(_number(each, "bits_per_second") for each in rows)
            found[sends] = max(count, len(rows)), max(bits, rate)
    return found


def _log(
    name: str, rows: list[dict[str, Any]], end: dict[str, Any], file: str, mss: int | None, algorithm: str | None
) -> SenderLog:
    def column(key: str, by: float = 1.0) -> np.ndarray:
        return np.array([round(_number(row, key) * by) if key in row else -1 for row in rows], np.int64)

    least = _number(end, "min_rtt")
    again = column("retransmits")
    times = [_number(rows[0], "start"), *(_number(row, "end") for row in rows)]
    none = np.full(len(times), -1, np.int64)
    window = np.concatenate([[-1], column("snd_cwnd", 1 / mss if mss else 1.0)])
    rates = [_number(row, "bits_per_second") for row in rows]
    return SenderLog(
        name, file, _IPERF3, np.array([round(each * 1e9) for each in times], np.int64), window, none, none,
        np.concatenate([[-1], column("rtt")]), np.concatenate([[0], np.cumsum(np.maximum(again, 0))]) if (
            again.max(initial=-1) >= 0) else none,
        every_ack=False, timed=True, mss_bytes=mss, min_rtt_us=least if least > 0 else None, algorithm=algorithm,
        bytes_acked=round(sum(_number(row, "bytes") for row in rows)),
        window_bytes=column("snd_wnd"), fastest_bits_per_second=max(rates, default=0.0) or None,
        notes=["its numbers are means of intervals: what is shorter does not show"],
    )  # fmt: skip


def _number(row: dict[str, Any], key: str) -> float:
    value = row.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e15:
        return 0.0
    return float(value)


def _dict(row: Any, key: str) -> dict[str, Any]:
    value = row.get(key) if isinstance(row, dict) else None
    return value if isinstance(value, dict) else {}


def _list(row: Any, key: str) -> list[Any]:
    value = row.get(key) if isinstance(row, dict) else None
    return value if isinstance(value, list) else []
