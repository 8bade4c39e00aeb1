# SPDX-License-Identifier: Apache-2.0
"""The catalogue of what is published to Prometheus: names, kinds, units and meaning.

Names follow Prometheus' conventions: the prefix ``howdah_``, base units (seconds, bytes, ratio), ``_total`` for
counters, ``_info`` for facts. docs/prometheus.md holds the same table; a test compares them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PREFIX = "howdah_"


@dataclass(frozen=True)
class Metric:
    """``kind`` is gauge, counter or info. ``name`` is what a query writes, with ``_total`` or ``_info``."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The name in OpenMetrics TYPE and HELP lines, without ``_total`` and ``_info``."""
        return self.name.removesuffix("_total").removesuffix("_info") if self.kind != "gauge" else self.name


RUN_LABELS = ("experiment", "scenario", "point", "algorithm", "repetition", "kernel")
_FLOW = ("flow", "role")
_QUEUE = ("node", "interface", "handle", "kind", "role")
_INTERFACE = ("node", "interface", "role")

SERIES: tuple[Metric, ...] = (
    Metric("howdah_flow_cwnd_packets", "gauge", "Congestion window of the sender.", _FLOW),
    Metric("howdah_flow_ssthresh_packets", "gauge", "Slow-start threshold; absent while it is infinite.", _FLOW),
    Metric("howdah_flow_srtt_seconds", "gauge", "Smoothed round-trip time of the sender.", _FLOW),
    Metric("howdah_flow_min_rtt_seconds", "gauge", "Least round-trip time the sender has seen (tcp_info).", _FLOW),
    Metric("howdah_flow_inflight_bytes", "gauge", "Bytes sent and not yet acknowledged (snd_nxt - snd_una).", _FLOW),
    Metric("howdah_flow_pacing_rate_bytes_per_second", "gauge", "Pacing rate of the sender (tcp_info).", _FLOW),
    Metric("howdah_flow_acked_bytes_total", "counter", "Payload bytes acknowledged, in order (snd_una).", _FLOW),
    Metric("howdah_flow_received_bytes_total", "counter", "Payload bytes received in order by the receiver.", _FLOW),
    Metric("howdah_flow_retransmitted_packets_total", "counter", "Segments retransmitted (tcp_info).", _FLOW),
    Metric("howdah_queue_backlog_bytes", "gauge", "Bytes waiting in a queueing discipline, as frames.", _QUEUE),
    Metric("howdah_queue_backlog_packets", "gauge", "Packets waiting in a queueing discipline.", _QUEUE),
    Metric("howdah_queue_sent_bytes_total", "counter", "Bytes that left a queueing discipline.", _QUEUE),
    Metric("howdah_queue_dropped_packets_total", "counter", "Packets a queueing discipline dropped.", _QUEUE),
    Metric("howdah_interface_transmitted_bytes_total", "counter", "Bytes an interface sent.", _INTERFACE),
    Metric("howdah_interface_received_bytes_total", "counter", "Bytes an interface received.", _INTERFACE),
    Metric("howdah_interface_dropped_packets_total", "counter", "Packets an interface dropped, both ways.", _INTERFACE),
)

PATH: tuple[Metric, ...] = (
    Metric("howdah_path_rate_bytes_per_second", "gauge", "Bottleneck rate, counting link-layer frames."),
    Metric("howdah_path_rtt_seconds", "gauge", "Round-trip propagation delay of the path."),
    Metric("howdah_path_buffer_bytes", "gauge", "Buffer of the bottleneck."),
    Metric("howdah_path_bdp_bytes", "gauge", "Rate times round-trip time."),
)

INFO: tuple[Metric, ...] = (
    Metric(
        "howdah_run_info",
        "info",
        "Where a run came from: always 1.",
        ("run", "verdict", "engine", "plan_sha256", "kernel_image_sha256", "revision"),
    ),
    Metric(
        "howdah_slow_start_exit_info",
        "info",
        "Why a flow left slow start: always 1.",
        ("run", "flow", "cause"),
    ),
)

SUMMARY_HELP: dict[str, str] = {
    "exit_time_s": "Time from the start of the flow to its exit from slow start.",
    "exit_cwnd_packets": "Congestion window at the exit from slow start.",
    "exit_cwnd_bdp": "Congestion window at the exit from slow start, as a share of the BDP.",
    "exit_quantity": "The number that decided a flow's exit, as its module told; the unit is that of the cause.",
    "exit_threshold": "What the number that decided a flow's exit was compared with.",
    "exits": "Exits from slow start that a flow's module told of.",
    "phases": "Changes to another phase of slow start that a flow's module told of.",
    "resumes": "Returns to the phase before that a flow's module told of.",
    "estimates": "Thresholds set from an estimate that a flow's module told of.",
    "exit_round": "Round trips from the start of the flow to its exit from slow start.",
    "peak_cwnd_packets": "Largest congestion window up to one round trip after the exit.",
    "dropped_packets": "Packets the bottleneck dropped in the first loss episode.",
    "first_loss_retransmitted_packets": "Segments retransmitted in the first loss episode.",
    "goodput_bits_per_second": "Goodput of a flow in the measurement window.",
    "min_rtt_us": "Least round-trip time, from sequence numbers.",
    "max_rtt_us": "Largest round-trip time, from sequence numbers.",
    "bottleneck_drops_packets": "Packets the bottleneck dropped in the whole run.",
    "overshoot_packets": "Peak packets in flight beyond BDP and buffer.",
    "retransmitted_packets": "Segments retransmitted by a flow.",
    "time_to_90_percent_s": "Time to the first round trip at 90 % of the fair capacity.",
    "utilisation": "Share of the path's goodput capacity used in the measurement window.",
    "queue_peak_bytes": "Largest backlog of the bottleneck.",
    "blackout_s": "Time in round trips with goodput below 1 % of capacity.",
    "completion_time_s": "Time to transfer a flow of fixed size.",
    "completion_time_median_s": "Median time to transfer a connection of a group.",
    "completed_share": "Share of the connections of a group that transferred all their bytes.",
    "retransmission_ratio": "Share of the segments of a group's connections that were retransmissions.",
    "retransmission_free_share": "Share of the connections of a group without a retransmission.",
    "delivered_share": "Share of the bytes of a group's datagrams that arrived.",
    "jain_index": "Jain's fairness index of the flows.",
}

# Suffix of a measure's name -> (suffix of the metric, factor to the base unit)
_BASE_UNITS: tuple[tuple[str, str, float], ...] = (
    ("_ns", "_seconds", 1e-9),
    ("_us", "_seconds", 1e-6),
    ("_ms", "_seconds", 1e-3),
    ("_s", "_seconds", 1.0),
    ("_bits_per_second", "_bytes_per_second", 1 / 8),
    ("_bits", "_bytes", 1 / 8),
    ("_percent", "_ratio", 0.01),
    ("_bdp", "_bdp_ratio", 1.0),
)


# Measures whose unit is that of each row: it becomes part of the name, since a metric has one unit.
_UNIT_OF_ROW = ("exit_quantity", "exit_threshold")
_UNIT_SUFFIX = {"bit/s": "bits_per_second"}


def summary_metric(measure: str, unit: str) -> tuple[Metric, float]:
    """The metric that holds a measure of metrics.json, and the factor from the measure's unit to the metric's.

    ``exit_time_s`` becomes ``howdah_exit_time_seconds``; a measure without a unit that is a ratio gains ``_ratio``;
    ``exit_quantity`` in microseconds becomes ``howdah_exit_quantity_seconds``.
    """
    full = f"{measure}_{_UNIT_SUFFIX.get(unit, unit)}" if measure in _UNIT_OF_ROW else measure
    name = re.sub(r"[^a-z0-9]+", "_", full.lower()).strip("_") or "measure"
    factor = 1.0
    for suffix, replacement, scale in _BASE_UNITS:
        if name.endswith(suffix):
            name, factor = name.removesuffix(suffix) + replacement, scale
            break
    else:
        if unit == "ratio" and not name.endswith("_ratio"):
            name += "_ratio"
    for reserved in ("_total", "_count", "_sum", "_bucket", "_info"):
        if name.endswith(reserved):
            name += "_value"
    text = SUMMARY_HELP.get(measure, f"The measure {name} of metrics.json.")
    return Metric(f"{PREFIX}{name}", "gauge", text, ("run", "flow")), factor
