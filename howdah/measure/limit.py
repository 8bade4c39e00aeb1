# SPDX-License-Identifier: Apache-2.0
"""What held a sender back, by its own kernel: the receive window, the send buffer, or having nothing to send.

Linux counts the time a flow is limited by the receive window and by its send buffer (``tcpi_rwnd_limited``,
``tcpi_sndbuf_limited``). The second count is blind in a recovery. ``tcp_cwnd_validate()`` starts it, which
``tcp_write_xmit()`` calls only after it has sent new data, and only if the flow is not limited by its window. In a
recovery the data beyond the gap fill the send buffer: no new data are sent, so nothing starts the count. Without SACK
that lasts for as many round trips as there are gaps. An application that stops is not counted at all. So this measure
does not use these counts: a flow has nothing to send while a reading of tcp_info shows no unsent data, nothing left to
retransmit, and room in both windows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from howdah.linux.netlink.diag import TCP_ESTABLISHED
from howdah.measure.row import Sheet
from howdah.measure.sampled import Samples
from howdah.measure.trace import SECOND_NS, FlowTrace
from howdah.plan.plan import Flow

RECEIVE_WINDOW = "receive-window"
SEND_BUFFER = "send-buffer"
APPLICATION = "application"

# A limit held a flow back if it was active for more than this share of the time.
HELD_SHARE = 0.5
# Rounds before an event whose limits count: as many as an algorithm looks back on (BBR: three).
ROUNDS = 3


RECOVERY = 3  # tcpi_ca_state: Open 0, Disorder 1, CWR 2, Recovery 3, Loss 4
_NEEDED = ("state", "notsent_bytes", "unacked_packets", "sacked_packets", "lost_packets", "retrans_packets")


@dataclass(frozen=True)
class Nothing:
    """How long a sender had nothing to send, out of ``span_s`` seconds; ``recovery_s`` of it in recoveries."""

    time_s: float
    recovery_s: float
    span_s: float

    @property
    def share(self) -> float:
        return self.time_s / self.span_s


def has_nothing(info: Samples) -> npt.NDArray[np.bool_] | None:
    """Return at which readings the sender had nothing to send while its window had room, shape (readings,).

    None if the kernel does not report that.
    """
    if not all(info.has(name) for name in (*_NEEDED, "cwnd_packets")):
        return None
    flight = info["unacked_packets"] - info["sacked_packets"] - info["lost_packets"] + info["retrans_packets"]
    room = flight < info["cwnd_packets"]
    if info.has("snd_wnd_bytes") and info.has("mss_bytes"):
        room &= (info["unacked_packets"] + 1) * info["mss_bytes"] <= info["snd_wnd_bytes"]
    repaired = info["lost_packets"] <= info["retrans_packets"]
    return np.asarray(room & repaired & (info["notsent_bytes"] == 0) & (info["state"] == TCP_ESTABLISHED))


def promises_data(flow: Flow) -> bool:
    """Whether the flow's traffic always has data to send until it ends, so that a sender without data is at fault."""
    asks = flow.request_bytes is not None or flow.http is not None or flow.exchange is not None
    return not asks and flow.datagram_bytes is None


def nothing_to_send(trace: FlowTrace, info: Samples) -> Nothing | None:
    """Return how long the flow had nothing to send although it should have sent: each reading holds until the next one.

    From the first reading of the connection (for iperf3, the first one after its cookie) to its end; for a flow of
    fixed size, until all of it had been sent once. None without two readings in that time.
    """
    nothing = has_nothing(info)
    if nothing is None:
        return None
    begin = _begun_ns(trace, info)
    end = _sent_ns(trace, info)
    inside = (info.time_ns >= begin) & (info.time_ns <= end)
    if inside.sum() < 2:
        return None
    times, idle = info.time_ns[inside], nothing[inside]
    lasts = np.diff(np.append(times, end))
    repairs = info["ca_state"][inside] >= RECOVERY
    return Nothing(
        float(lasts[idle].sum()) / SECOND_NS,
        float(lasts[idle & repairs].sum()) / SECOND_NS,
        float(lasts.sum()) / SECOND_NS,
    )


def _begun_ns(trace: FlowTrace, info: Samples) -> int:
    """Return when the flow may send. iperf3 sends a cookie, and waits for its server's word on another connection."""
    begin = trace.start_ns if trace.connected_ns is None else trace.connected_ns
    if trace.flow.kind.cookie_bytes and info.has("bytes_sent_bytes"):
        sends = info.time_ns[info["bytes_sent_bytes"] > trace.flow.kind.cookie_bytes]
        return max(begin, int(sends[0])) if sends.size else begin
    return begin


def _sent_ns(trace: FlowTrace, info: Samples) -> int:
    """Return when the flow had sent all of its data.

    A record of the trace belongs to an ACK, so it shows what left after the ACK before a round trip late. The kernel's
    count at a reading does not.
    """
    size = trace.flow.size_bytes
    if size is None:
        return trace.stop_ns
    ends = [trace.stop_ns, *trace.time_ns[trace.snd_nxt >= size][:1].tolist()]
    if info.has("bytes_sent_bytes") and info.has("bytes_retrans_bytes"):
        once = info["bytes_sent_bytes"] - info["bytes_retrans_bytes"]
        ends += info.time_ns[once >= size][:1].tolist()
    return int(min(ends))


def limit_of(info: Samples, begin_ns: int, end_ns: int) -> str | None:
    """Return what held the flow back for more than half of the time between two instants, or None.

    The receive window by ``tcpi_rwnd_limited``; the send buffer by ``tcpi_sndbuf_limited``, both as shares of
    ``tcpi_busy_time``; the application if the readings around the time had nothing to send, or were marked
    ``tcpi_delivery_rate_app_limited`` and had no data waiting.
    """
    busy = info.growth("busy_time_us", begin_ns, end_ns)
    for column, cause in (("rwnd_limited_us", RECEIVE_WINDOW), ("sndbuf_limited_us", SEND_BUFFER)):
        held = info.growth(column, begin_ns, end_ns)
        if busy and held is not None and held > HELD_SHARE * busy:
            return cause
    around = enclosing(info, begin_ns, end_ns)
    if around.stop - around.start < 2:
        return None
    nothing = has_nothing(info)
    if nothing is not None and nothing[around].mean() > HELD_SHARE:
        return APPLICATION
    if info.has("app_limited") and _is_marked(info)[around].mean() > HELD_SHARE:
        return APPLICATION
    return None


def _is_marked(info: Samples) -> npt.NDArray[np.bool_]:
    """Return at which readings the last delivery rate is marked as limited by the application, shape (readings,).

    The mark refers to data sent a round trip ago, and a new connection begins with it. So it counts only if the
    connection is established and has no data waiting.
    """
    marked = info["app_limited"] > 0
    if info.has("state"):
        marked = marked & (info["state"] == TCP_ESTABLISHED)
    if info.has("notsent_bytes"):
        marked = marked & (info["notsent_bytes"] == 0)
    return np.asarray(marked)


def limit_before(trace: FlowTrace, info: Samples, time_ns: int) -> str | None:
    """Return what held the flow back in the last three round trips before an instant."""
    return limit_of(info, rounds_before(trace, time_ns), time_ns)


def rounds_before(trace: FlowTrace, time_ns: int, count: int = ROUNDS) -> int:
    """Return the time ``count`` round trips before ``time_ns``, each as long as the smoothed RTT at its end; in ns."""
    for _ in range(count):
        record = int(np.searchsorted(trace.time_ns, time_ns, side="right")) - 1
        time_ns -= int(trace.window_ns[record]) if record >= 0 else trace.flow.rtt_us * 1000
    return max(time_ns, trace.start_ns)


def enclosing(info: Samples, begin_ns: int, end_ns: int) -> slice:
    """Return the readings from the last at or before ``begin_ns`` to the first at or after ``end_ns``."""
    first = max(int(np.searchsorted(info.time_ns, begin_ns, side="right")) - 1, 0)
    last = min(int(np.searchsorted(info.time_ns, end_ns, side="left")), len(info) - 1)
    return slice(first, last + 1)


def limit_rows(sheet: Sheet, trace: FlowTrace, info: Samples) -> None:
    """Add ``nothing_to_send_share`` of a flow."""
    found = nothing_to_send(trace, info)
    why = "tcp_info was not read twice while the flow was to send"
    share = None if found is None else found.share
    sheet.add(trace.flow, "nothing_to_send_share", share, why)
