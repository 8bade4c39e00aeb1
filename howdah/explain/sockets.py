# SPDX-License-Identifier: Apache-2.0
"""Logs of ``ss -tin`` and ``ss -tinO``, taken again and again; lines between them may say when."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from typing import Final

import numpy as np

from howdah.explain.explained import Explained
from howdah.explain.sender_log import SenderLog, exit_between, explain_log
from howdah.held import HeldBy
from howdah.measure.held import Holding

SOURCE: Final = "ss"
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
_MOST_LINES = 2_000_000
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
        name, file, SOURCE, np.array([round(times[at] * 1e9) for at in order], np.int64), column("cwnd"),
        column("ssthresh"), column("unacked"), column("rtt", 1000), column("retransmitted"), every_ack=False,
        timed=timed,
        mss_bytes=round(last["mss"]) if last.get("mss") else None, min_rtt_us=min(minimum) * 1000 if minimum else None,
        algorithm=named[-1] if named else None, bytes_acked=round(min(last.get("bytes_acked", 0.0), 1e15)),
        window_bytes=column("snd_wnd"), fastest_bits_per_second=max(rates) if rates else None, holding=_holding(last),
    )  # fmt: skip
    return explain_log(log, *exit_between(log))


def _holding(last: Values) -> Holding | None:
    """What the kernel counts: the time with data to send, and that of it in which the other's window or the own buffer
    held it back."""
    busy = last.get("busy", 0.0) / 1000
    if busy <= 0:
        return None
    receive = min(last.get("rwnd_limited", 0.0) / 1000, busy)
    buffer = min(last.get("sndbuf_limited", 0.0) / 1000, busy - receive)
    seconds = {HeldBy.RECEIVE_BUFFER: receive, HeldBy.SEND_BUFFER: buffer, HeldBy.UNKNOWN: busy - receive - buffer}
    return Holding({kind: each for kind, each in seconds.items() if each > 0}, busy)
