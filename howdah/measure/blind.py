# SPDX-License-Identifier: Apache-2.0
"""Flows whose sender closed before its last bytes were acknowledged: the per-ACK trace misses their end.

``tcp_probe`` is in ``tcp_rcv_established()``. howdah's sources close when the last byte is acknowledged; iperf3 and
programs close at any time. Measures that depend on the rest of such a flow are unknown.
"""

from __future__ import annotations

import numpy as np

from howdah.measure.measured import Measured
from howdah.measure.sampled import MISSING, Samples
from howdah.measure.trace import FlowTrace

# TCP states (include/net/tcp_states.h) of a socket that is not established and may have data in flight:
# FIN_WAIT1, CLOSE_WAIT, LAST_ACK, CLOSING.
CLOSING = (4, 8, 9, 11)
_FIN = 1  # packets of a FIN, which tcpi_unacked includes
# Metrics that unseen ACKs may have made larger, or later.
_OF_THE_END = (
    *("peak_cwnd_packets", "largest_cwnd_packets", "final_cwnd_packets", "final_cwnd_bdp", "overshoot_packets"),
    *(
        "max_rtt_us",
        "blackout_s",
        "longest_blackout_s",
        "long_blackout",
        "window_open_time_s",
        "window_open_sent_bytes",
    ),
)
_OF_ALL_BYTES = ("goodput_bits_per_second", "packet_throughput_bits_per_second")


def seen_until_ns(trace: FlowTrace, info: Samples) -> int | None:
    """Return when a flow's trace ends if that is before the flow ends; None if it has every ACK of the flow's time."""
    flow = trace.flow
    if flow.kind.single or not flow.is_tcp or flow.sender_stack is not None or not len(trace):
        return None
    end_ns, size = int(trace.time_ns[-1]), flow.size_bytes
    if trace.received_ns is not None and size is not None and int(trace.snd_nxt[-1]) < size:
        return end_ns
    if not info.has("state") or not info.has("unacked_packets"):
        return None
    closing = np.isin(info["state"], CLOSING) & (info.time_ns < flow.stop_us * 1000)
    closing &= info["unacked_packets"] != MISSING
    return end_ns if bool((info["unacked_packets"][closing] > _FIN).any()) else None


def ends_unseen(data: Measured) -> dict[int, str]:
    """Map each flow whose end the trace misses to the reason for its missing measures."""
    found = {}
    for trace in data.traces:
        until = seen_until_ns(trace, data.info[trace.flow.id])
        if until is not None:
            at = (until - trace.start_ns) / 1e9
            found[trace.flow.id] = (
                f"the sender closed before its last bytes were acknowledged: tcp_probe sees no ACK after {at:.3f} s"
            )
    return found


def unseen_at_the_end(data: Measured, ends: dict[int, str]) -> dict[tuple[int | None, str], str]:
    """Return the metrics that depend on an unseen end, so that any value would be chance, with the reason for null."""
    found: dict[tuple[int | None, str], str] = {}
    for trace in data.traces:
        flow, why = trace.flow, ends.get(trace.flow.id)
        if why is None:
            continue
        # The goodput of a flow of fixed size comes from its receiver.
        metrics = _OF_THE_END if flow.size_bytes else (*_OF_THE_END, *_OF_ALL_BYTES)
        if not np.isfinite(trace.ssthresh).any():
            metrics = (*metrics, "startup_left")
        found |= {(flow.id, metric): why for metric in metrics}
        found[None, "utilisation"] = f"{flow.title}: {why}"
    return found
