# SPDX-License-Identifier: Apache-2.0
"""iperf3's JSON: what its intervals have of the sender's window and round trip."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from howdah.errors import RecordError
from howdah.explain.explained import Explained
from howdah.explain.sender_log import SenderLog, explain_log
from howdah.record.raw import raw_value

SOURCE: Final = "iperf3"


def is_iperf3(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get("intervals"), list) and "start" in document


def of_stream(lines: bytes) -> dict[str, Any] | None:
    """The document that the lines of ``--json-stream`` make; None where they are none."""
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
    """Each stream; those that a receiver reports have no window. Raises RecordError where its test is not of TCP."""
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
    """By whether this end sends: the most streams of an interval, and their largest rate together."""
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
        name, file, SOURCE, np.array([round(each * 1e9) for each in times], np.int64), window, none, none,
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
