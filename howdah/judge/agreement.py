# SPDX-License-Identifier: Apache-2.0
"""Check that sources which report the same fact agree: per-ACK trace, tcp_info, the host's counters, the receiver.

Each source has limits: the trace has no ACK of a socket that has sent a FIN, a reading is late, a counter covers a
whole host. A difference that the times of the readings do not explain means that one source is wrong, and it is unknown
which measures that affects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from howdah.linux.netlink.diag import TCP_ESTABLISHED
from howdah.measure.measured import Measured
from howdah.measure.sampled import MISSING, CounterSeries, Samples
from howdah.measure.trace import FlowTrace, Integers
from howdah.plan.plan import Flow
from howdah.record.verdict import COLLECTION, Check

_MOST_NAMED = 3
_HANDSHAKE = 2  # bytes: tcpi_bytes_acked counts the opener's SYN, and the FIN
_DELAYED_ACK_NS = 200_000_000  # the longest delay of an ACK by receivers
_TRAIN, _DELAY = "TcpExtTCPHystartTrain", "TcpExtTCPHystartDelay"


@dataclass(frozen=True)
class _TwoSources:
    """A flow with trace records and tcp_info readings. A reading was taken between the times of its neighbours, so it
    may have seen any record from the previous reading to the next one, and the record after that."""

    trace: FlowTrace
    info: Samples

    @property
    def first(self) -> Integers:
        """For each reading, the index of the first record that it may have seen."""
        before = np.concatenate([self.info.time_ns[:1], self.info.time_ns[:-1]])
        found: Integers = np.searchsorted(self.trace.time_ns, before, side="left").astype(np.int64)
        return np.maximum(found - 1, 0)

    @property
    def last(self) -> Integers:
        """For each reading, the index of the last record that it may have seen."""
        after = np.concatenate([self.info.time_ns[1:], self.info.time_ns[-1:]])
        found: Integers = np.searchsorted(self.trace.time_ns, after, side="right").astype(np.int64)
        return np.minimum(found + 1, len(self.trace) - 1)

    @property
    def comparable(self) -> list[int]:
        """Readings of an established connection between the trace's first and last record.

        Effects of timers before the first ACK, and of the last ACK, are in no record.
        """
        times = self.info.time_ns
        known = (self.info["state"] == TCP_ESTABLISHED) & (times >= self.trace.time_ns[0])
        return [int(each) for each in np.flatnonzero(known & (times < self.trace.time_ns[-1]))]


def agreement_checks(data: Measured) -> list[Check]:
    """Return the checks of the kernel's TCP flows, for the sources that were collected."""
    collect = data.plan.collect
    if not collect.tcp_probe:
        return []
    traces = [trace for trace in data.traces if _is_kernels(trace.flow) and len(trace)]
    checks = [_all_agree("bytes of trace and receiver", _bytes(data, traces), "the receiver got what was acknowledged")]
    if collect.tcp_info_us is not None:
        both = [
            _TwoSources(trace, data.info[trace.flow.id]) for trace in traces if data.info[trace.flow.id].has("state")
        ]
        for name, what, good in _COMPARED:
            found = (problem for each in both if (problem := what(each)) is not None)
            checks.append(_all_agree(name, found, good))
    for host in dict.fromkeys(trace.flow.sender for trace in traces):
        flows = [trace for trace in data.traces if trace.flow.sender == host and trace.flow.is_tcp]
        if all(_is_kernels(trace.flow) and not trace.flow.kind.opens_others for trace in flows):
            checks += _host_checks(data, host, flows)
    return checks


def _is_kernels(flow: Flow) -> bool:
    return flow.is_tcp and flow.sender_stack is None and flow.quic is None


def _all_agree(name: str, found: Iterator[str], good: str) -> Check:
    wrong = list(found)
    more = f"; and of {len(wrong) - _MOST_NAMED} more" if len(wrong) > _MOST_NAMED else ""
    message = "; ".join(wrong[:_MOST_NAMED]) + more if wrong else good
    return Check(name, COLLECTION, not wrong, message, 0, len(wrong), 0, "flows")


def _bytes(data: Measured, traces: list[FlowTrace]) -> Iterator[str]:
    """Report flows with more bytes acknowledged than received, or, for a flow of fixed size, fewer."""
    rows = {row["flow"]: row for row in data.flows.to_pylist()}
    for trace in traces:
        row = rows.get(trace.flow.id, {})
        received = row.get("bytes_received_bytes")
        # iperf3's receiver stops counting before everything has arrived; programs' receivers report nothing.
        if not row.get("complete") or received is None or not trace.flow.kind.single:
            continue
        label, acknowledged = trace.flow.title, int(trace.una_after[-1])
        if acknowledged > received:
            yield f"{label}: tcp_probe has {acknowledged} bytes acknowledged, the receiver got {received}"
        elif _ended_in_time(trace) and acknowledged < received:
            yield (
                f"{label}: tcp_probe ends with {acknowledged} bytes acknowledged, the receiver got {received}: "
                "the last ACKs are missing, so nothing that is measured goes to the flow's end"
            )


def _ended_in_time(trace: FlowTrace) -> bool:
    """Return whether a flow's receiver had all data early enough that even a delayed last ACK was traced."""
    if trace.received_ns is None:
        return False
    return trace.received_ns + int(trace.window_ns[-1]) + _DELAYED_ACK_NS < trace.flow.stop_us * 1000


def _acknowledged(each: _TwoSources) -> str | None:
    """Compare ``tcpi_bytes_acked`` with the trace's ``snd_una``."""
    if not each.info.has("bytes_acked_bytes"):
        return None
    una, reported, most_una = each.trace.una_after, each.info["bytes_acked_bytes"], each.trace.una_after.copy()
    if each.trace.acknowledged_bytes is None:  # no record has the bytes of the last ACK
        most_una[-1] = each.trace.snd_nxt[-1]
    first, last = each.first, each.last
    for reading in each.comparable:
        least, most = int(una[first[reading]]), int(most_una[last[reading]])
        if first[reading] == 0:
            least = 0
        if not least <= reported[reading] <= most + _HANDSHAKE:
            at = each.info.time_ns[reading] / 1e9
            return (
                f"{each.trace.flow.title} at {at:.6f} s: tcp_info has {reported[reading]} bytes acknowledged, "
                f"tcp_probe around it {least} to {most}"
            )
    return None


def _windows(each: _TwoSources) -> str | None:
    """Compare ``tcpi_snd_cwnd`` with the windows of the trace.

    If a timer cuts the window before the next ACK, no record has the window after the previous ACK. So a reading may
    exceed the windows of the trace where these fall.
    """
    window, reported = each.trace.cwnd, each.info["cwnd_packets"]
    added = np.diff(each.trace.snd_una, prepend=0) // each.trace.mss_bytes + 1
    first, last = each.first, each.last
    for reading in each.comparable:
        around = slice(int(first[reading]), int(last[reading]) + 1)
        least, most = int(window[around].min()), int(window[around].max())
        falls = bool((np.diff(window[around]) < 0).any())
        if reported[reading] < least or (reported[reading] > most + int(added[around].max()) and not falls):
            at = each.info.time_ns[reading] / 1e9
            return (
                f"{each.trace.flow.title} at {at:.6f} s: tcp_info has a window of {reported[reading]} packets, "
                f"tcp_probe around it {least} to {most}"
            )
    return None


def _thresholds(each: _TwoSources) -> str | None:
    """Compare whether ssthresh is infinite in ``tcpi_snd_ssthresh`` and in the trace: an exit from slow start makes it
    finite."""
    finite, reported = np.isfinite(each.trace.ssthresh), each.info["ssthresh_packets"] != MISSING
    first, last = each.first, each.last
    for reading in each.comparable:
        around = finite[int(first[reading]) : int(last[reading]) + 1]
        if bool(reported[reading]) not in around:
            at = each.info.time_ns[reading] / 1e9
            is_, was = ("finite", "infinite") if reported[reading] else ("infinite", "finite")
            return (
                f"{each.trace.flow.title} at {at:.6f} s: ssthresh is {is_} in tcp_info "
                f"({ssthresh_text(each.info, reading)}) and {was} in tcp_probe: only one of them shows an exit"
            )
    return None


def ssthresh_text(info: Samples, reading: int) -> str:
    """Return a reading's ssthresh in words."""
    value = int(info["ssthresh_packets"][reading])
    return "none" if value == MISSING else f"{value} packets"


_COMPARED: tuple[tuple[str, Callable[[_TwoSources], str | None], str], ...] = (
    ("bytes of trace and tcp_info", _acknowledged, "tcp_info has the bytes that the trace has"),
    ("windows of trace and tcp_info", _windows, "tcp_info has the windows that the trace has"),
    ("exits of trace and tcp_info", _thresholds, "tcp_info has a threshold where the trace has one"),
)


def _host_checks(data: Measured, host: str, flows: list[FlowTrace]) -> Iterator[Check]:
    """Compare a host's counters with the sum over its flows."""
    # After its stop, a flow without a size still sends its buffer, which is not traced.
    until = min((trace.stop_ns for trace in flows if trace.received_ns is None), default=None)
    moved = [_growth(data.counters.series(host, f"{name}Detect"), until) for name in (_TRAIN, _DELAY)]
    windows = [_growth(data.counters.series(host, f"{name}Cwnd"), until) for name in (_TRAIN, _DELAY)]
    if None not in moved:
        yield _hystart_check(host, flows, sum(each or 0 for each in moved), sum(each or 0 for each in windows))
    infos = [data.info[trace.flow.id] for trace in flows]
    counted = data.counters.total(host, "TcpRetransSegs")
    if counted is not None and all(info.has("total_retrans_packets") for info in infos):
        reported = sum(int(info["total_retrans_packets"].max()) for info in infos)
        good = "the host's counter has the retransmissions of its sockets"
        bad = f"{host} counts {counted} retransmissions (TcpRetransSegs), tcp_info of its sockets {reported}"
        name = f"retransmissions of counters and tcp_info, {host}"
        yield Check(
            name, COLLECTION, reported <= counted, good if reported <= counted else bad, counted, reported, 0, "packets"
        )


def _growth(series: CounterSeries | None, until_ns: int | None) -> int | None:
    """Return the growth from the first reading to the last one at or before ``until_ns``; None if the kernel lacks the
    counter."""
    if series is None:
        return None
    inside = series.value if until_ns is None else series.value[series.time_ns <= until_ns]
    return int(inside[-1] - inside[0]) if inside.size else 0


def _hystart_check(host: str, flows: list[FlowTrace], detections: int, windows: int) -> Check:
    """Check that a flow left slow start if HyStart counted an exit, and for a single exit, that it did so at the window
    that HyStart recorded."""
    name = f"HyStart's counters and the trace, {host}"
    exited = [trace for trace in flows if np.isfinite(trace.ssthresh).any()]
    if detections and not exited:
        what = f"{host} counts {detections} exits from slow start (TCPHystart…Detect, windows {windows} packets in all)"
        message = f"{what}, tcp_probe shows none: ssthresh stays infinite in every record"
        return Check(name, COLLECTION, False, message, detections, 0, 0, "exits")
    if detections == 1 and not any(_has_exit_at(trace, windows) for trace in exited):
        message = f"{host} counts an exit at {windows} packets (TCPHystart…Cwnd), tcp_probe shows none at that window"
        return Check(name, COLLECTION, False, message, windows, None, 0, "packets")
    good = "the trace shows the exits that HyStart counted" if detections else "HyStart counted no exit"
    return Check(name, COLLECTION, True, good, detections, len(exited), None, "exits")


def _has_exit_at(trace: FlowTrace, window: int) -> bool:
    """Return whether ssthresh became finite, or changed, at this window. HyStart records the window before the ACK
    increases it, or before a recovery sets another threshold and reduces it."""
    before = np.concatenate([[np.inf], trace.ssthresh[:-1]])
    smaller = np.concatenate([trace.cwnd[:1], trace.cwnd[:-1]])
    changed = np.isfinite(trace.ssthresh) & (trace.ssthresh != before)
    larger = np.maximum(smaller, np.maximum(trace.cwnd, trace.ssthresh))
    return bool((changed & (smaller <= window) & (window <= larger)).any())
