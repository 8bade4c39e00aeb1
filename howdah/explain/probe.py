# SPDX-License-Identifier: Apache-2.0
"""Read tcp_probe as text: from ftrace, ``perf script``, or the former kernel module of that name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from howdah.explain.estimate import Estimate
from howdah.explain.explained import Explained, ExplainedExit
from howdah.explain.sender_log import STAYED, SenderLog, explain_log, stand_in
from howdah.ingest.tracepoint import unwrap
from howdah.measure.cause import INITIAL_SSTHRESH, LOSS, OWN_THRESHOLD
from howdah.measure.exit import find_exit
from howdah.measure.trace import FlowTrace
from howdah.record.schema import INFINITE_SSTHRESH

SOURCE: Final = "tcp_probe"
_LINE = re.compile(r"\s(\d{1,12}\.\d{1,9}): (?:\w+:)?tcp_probe: (.{1,600})$")
_FIELD = re.compile(r"(\w{1,16})=(\S{1,64})")
_OLD = re.compile(
    r"^(\d{1,12}\.\d{1,9}) (\S{3,60}) (\S{3,60}) (\d{1,6}) (0x[0-9a-f]{1,16}) (0x[0-9a-f]{1,16}) (\d{1,10}) (\d{1,10})"
    r" (\d{1,10}) (\d{1,10})"
)
_NUMBERS = ("snd_nxt", "snd_una", "snd_cwnd", "ssthresh", "snd_wnd", "srtt")
_MOST_LINES = 5_000_000  # lines that are read
_FEWEST = 5  # records of a flow, at least
Row = tuple[float, str, tuple[int, ...]]


def is_probe(head: str) -> bool:
    return any(_row(line) is not None for line in head.splitlines()[:200])


def _row(line: str) -> Row | None:
    """Parse a line: time in seconds, both ends, and the numbers; None if it has no record."""
    if "tcp_probe" in line:
        match = _LINE.search(line)
        if match is None:
            return None
        fields = dict(_FIELD.findall(match[2]))
        try:
            numbers = tuple(int(fields[name], 0) for name in _NUMBERS)
            return float(match[1]), f"{fields['src']} > {fields['dest']}", numbers
        except (KeyError, ValueError):
            return None
    old = _OLD.match(line)
    if old is None:
        return None
    nxt, una, *rest = (int(each, 0) for each in old.groups()[4:])
    return float(old[1]), f"{old[2]} > {old[3]}", (nxt, una, *rest)


def explain_probe(text: Iterator[str], file: str, most: int) -> list[Explained]:
    by_flow: dict[str, list[Row]] = {}
    for number, line in enumerate(text):
        if number >= _MOST_LINES:
            break
        row = _row(line)
        if row is not None and all(0 <= each < 1 << 63 for each in row[2]):
            by_flow.setdefault(row[1], []).append(row)
    found = [_flow(name, rows, file) for name, rows in by_flow.items() if len(rows) >= _FEWEST]
    senders = [each for each in found if each is not None]
    return sorted(senders, key=lambda each: -each.data_bytes)[:most]


def _flow(name: str, rows: list[Row], file: str) -> Explained | None:
    rows.sort(key=lambda row: row[0])
    time_ns = np.array([round(row[0] * 1e9) for row in rows], np.int64)
    columns = {each: np.array([row[2][at] for row in rows]) for at, each in enumerate(_NUMBERS)}
    una = unwrap((columns["snd_una"] & 0xFFFFFFFF).astype(np.int64))
    ahead = ((columns["snd_nxt"] - columns["snd_una"]) & 0xFFFFFFFF).astype(np.int64)
    if not ahead.max() or una[-1] <= 0 or ahead.max() >= 1 << 31:
        return None  # a receiver, which has nothing outstanding
    cwnd = np.minimum(columns["snd_cwnd"], 1 << 30).astype(np.int64)
    infinite = columns["ssthresh"] >= INFINITE_SSTHRESH
    mss = _segment_bytes(una)
    srtt = np.minimum(columns["srtt"], 1 << 40).astype(np.int64)
    log = SenderLog(
        name, file, SOURCE, time_ns, cwnd, np.where(infinite, -1, columns["ssthresh"]).astype(np.int64), ahead // mss,
        srtt, np.full(cwnd.size, -1), every_ack=True, timed=True, mss_bytes=mss,
        bytes_acked=int(una.max()), window_bytes=columns["snd_wnd"].astype(np.int64),
    )  # fmt: skip
    trace = FlowTrace(
        flow=stand_in("unknown"), mss_bytes=mss, start_ns=int(time_ns[0]), connected_ns=None, stop_ns=int(time_ns[-1]),
        time_ns=time_ns, snd_nxt=una + ahead, snd_una=una, cwnd=cwnd,
        ssthresh=np.where(infinite, np.inf, columns["ssthresh"].astype(np.float64)), srtt_ns=srtt * 1000,
        snd_wnd=log.window_bytes,
    )  # fmt: skip
    leaves = find_exit(trace)
    if leaves is None or leaves.record == 0:
        return explain_log(log, None, STAYED if leaves is None else
                           "the first record is behind the exit")  # fmt: skip
    cause, evidence = _cause(
        trace, leaves.record, leaves.from_initial_ssthresh, leaves.from_own_threshold, leaves.reduced
    )
    packets = Estimate(float(leaves.cwnd_packets), float(leaves.cwnd_packets), float(leaves.cwnd_packets), "the window")
    number = int(np.searchsorted(log.time_ns, leaves.time_ns))
    when = (leaves.time_ns - int(time_ns[0])) / 1e9
    return explain_log(log, ExplainedExit(when, packets, _round(trace, number), cause, cause is not None, evidence), "")


def _round(trace: FlowTrace, record: int) -> int:
    from howdah.measure.rounds import rounds

    return max(int(np.searchsorted(rounds(trace), record, side="right")) - 1, 0)


def _cause(trace: FlowTrace, record: int, initial: bool, own: bool, reduced: bool) -> tuple[str | None, str]:
    if initial:
        return INITIAL_SSTHRESH, "the window reached the threshold that the connection began with"
    if own:
        return OWN_THRESHOLD, "the window reached a threshold that was set on the way"
    near = slice(max(record - 8, 0), record + 1)
    still = int((np.diff(trace.snd_una[near]) == 0).sum())
    if reduced and still >= 3:
        return LOSS, "ACKs repeated, then the threshold fell below the window"
    if reduced:
        return None, "the threshold fell below the window; whether by a loss does not show"
    return None, "the threshold was set to the window, as HyStart does; which of its detectors spoke does not show"


def _segment_bytes(una: np.ndarray) -> int:
    steps = np.diff(una)
    steps = steps[(steps > 0) & (steps < 65536)]
    return max(int(np.gcd.reduce(steps[:2000])), int(steps.min()), 1) if steps.size else 1448
