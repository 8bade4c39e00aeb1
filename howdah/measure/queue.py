# SPDX-License-Identifier: Apache-2.0
"""The bottleneck: its largest backlog, by the queue's own counter and by the flows' round-trip times; and how busy its
link was, including packets that were lost later."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from howdah.measure.measured import Measured
from howdah.measure.rounds import raw_rtt, send_time_doubt_ns, sent_once
from howdah.measure.row import Sheet
from howdah.measure.sampled import Samples
from howdah.measure.trace import SECOND_NS, FlowTrace


@dataclass(frozen=True)
class QueuePeak:
    """Peaks in bytes (None: no data), and by how much the two may differ without contradiction."""

    sampled_bytes: int | None
    by_rtt_bytes: float | None
    tolerance_bytes: float

    @property
    def agree(self) -> bool:
        if self.sampled_bytes is None or self.by_rtt_bytes is None:
            return True
        return abs(self.sampled_bytes - self.by_rtt_bytes) <= self.tolerance_bytes


def sampled_peak_bytes(bottleneck: Samples) -> int | None:
    """Return the largest backlog in the readings of the queue."""
    return int(bottleneck["backlog_bytes"].max()) if bottleneck.has("backlog_bytes") else None


def backlog_bytes(bottleneck: Samples, at_ns: int) -> int | None:
    """Return the backlog at the last reading not later than ``at_ns``; None without one."""
    index = int(np.searchsorted(bottleneck.time_ns, at_ns, side="right")) - 1
    return int(bottleneck["backlog_bytes"][index]) if bottleneck.has("backlog_bytes") and index >= 0 else None


def drop_ratio(bottleneck: Samples) -> float | None:
    """Return packets dropped over packets that arrived at the queue, of all flows, from first to last reading."""
    if not (bottleneck.has("drops_packets") and bottleneck.has("sent_packets")):
        return None
    dropped, sent = (int(bottleneck[name][-1] - bottleneck[name][0]) for name in ("drops_packets", "sent_packets"))
    return dropped / (dropped + sent) if dropped + sent else None


def rtt_peak_bytes(trace: FlowTrace, resent: Samples, rate_bits_per_second: int, frame_bytes: int) -> float | None:
    """Return a FIFO's content when the packet with the longest round trip arrived: (RTT - configured RTT) x rate.

    One frame is subtracted: the packet itself on the wire. With a queue that is not FIFO, delay variation or a
    congested reverse path this is not a queue length. ``resent``: see :func:`sent_once`.
    """
    rtt, good = raw_rtt(trace)
    good = good & sent_once(trace, resent) & (trace.time_ns >= trace.start_ns) & (trace.time_ns <= trace.stop_ns)
    if not good.any():
        return None
    waited = float(rtt[good].max()) - trace.flow.rtt_us * 1000
    return max(waited * rate_bits_per_second / 8 / SECOND_NS - frame_bytes, 0.0)


def queue_peak(
    flows: list[tuple[FlowTrace, Samples]], bottleneck: Samples, rate_bits_per_second: int, frame_bytes: int, fifo: bool
) -> QueuePeak:
    """Return both peaks of the whole run; ``flows`` are traces and readings of their senders' ``tcp_info``.

    Between two readings a queue can grow by what arrives beyond the rate: in slow start, as much again as the rate. So
    the tolerance is rate x (longest gap between readings + uncertainty of a byte's send time), plus two frames.
    """
    by_rtt: list[float] = []
    doubt = 0
    for trace, info in flows:
        if fifo and len(trace):
            value = rtt_peak_bytes(trace, info, rate_bits_per_second, frame_bytes)
            by_rtt += [] if value is None else [value]
            doubt = max(doubt, send_time_doubt_ns(trace))
    gap = float(np.diff(bottleneck.time_ns).max()) if len(bottleneck) > 1 else 0.0
    tolerance = (gap + doubt) * rate_bits_per_second / 8 / SECOND_NS + 2 * frame_bytes
    return QueuePeak(sampled_peak_bytes(bottleneck), max(by_rtt) if by_rtt else None, tolerance)


def link_utilisation(data: Measured, begin_ns: int, end_ns: int) -> float | None:
    """Return what the bottleneck sent in an interval over what it can send, both in frames.

    Retransmissions and background count, as do packets that are lost later: this measures the link, as in the HyStart
    paper (section 5.1), not what the receivers got.
    """
    path = data.plan.path
    sent = data.bottleneck.grown("sent_bytes", begin_ns, end_ns)  # in frames on the wire
    if sent is None:
        return None
    carried = data.capacity.whole_bytes(begin_ns, end_ns)
    return sent / (carried * path.frame_bytes / path.mss_bytes) if carried else None


def link_rows(sheet: Sheet, data: Measured) -> None:
    """Add ``link_utilisation`` of the measurement window."""
    begin, end = (edge * 1000 for edge in data.plan.measure_window_us)
    why = "the window is empty, or the queue was not read all through it"
    sheet.add(None, "link_utilisation", link_utilisation(data, begin, end), why)
