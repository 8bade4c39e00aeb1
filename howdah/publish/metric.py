# SPDX-License-Identifier: Apache-2.0
"""The catalogue of metrics published to Prometheus: names, kinds, units and meaning.

Names follow Prometheus' conventions: the prefix ``howdah_``, base units (seconds, bytes, ratio), ``_total`` for
counters, ``_info`` for facts. docs/prometheus.md holds the same table; a test compares them.
"""

from __future__ import annotations

from dataclasses import dataclass

PREFIX = "howdah_"
LIVE_JOB, NODE_JOB, RESULTS_JOB = "howdah-live", "node", "howdah-results"  # of what a server scrapes


@dataclass(frozen=True)
class PublishedMetric:
    """A metric. ``kind`` is gauge, counter or info; ``name`` is as in queries, with ``_total`` or ``_info``."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()

    @property
    def family(self) -> str:
        """The name in OpenMetrics TYPE and HELP lines, without ``_total`` and ``_info``."""
        return self.name.removesuffix("_total").removesuffix("_info") if self.kind != "gauge" else self.name


@dataclass(frozen=True)
class MetricSamples:
    """Samples of one label set of one metric. ``time_ms`` counts from 1970."""

    labels: dict[str, str]
    time_ms: list[int]
    values: list[float]


Families = dict[PublishedMetric, list[MetricSamples]]
# OpenMetrics UNIT lines are allowed only when the family's name ends in the unit.
_UNITS = ("seconds", "bytes", "packets", "ratio")


def unit_of(metric: PublishedMetric) -> str:
    """The family's unit for a UNIT line; empty if it must have none."""
    unit = next((unit for unit in _UNITS if metric.family.endswith("_" + unit)), "")
    return "" if metric.kind == "info" else unit


RUN_LABELS = ("experiment", "scenario", "point", "algorithm", "receiver", "repetition", "kernel")
_FLOW = ("flow", "number", "role")
_QUEUE = ("node", "interface", "handle", "kind", "role")
_INTERFACE = ("node", "interface", "role")

SERIES: tuple[PublishedMetric, ...] = (
    PublishedMetric("howdah_flow_cwnd_packets", "gauge", "Congestion window of the sender.", _FLOW),
    PublishedMetric(
        "howdah_flow_ssthresh_packets", "gauge", "Slow-start threshold; absent while it is infinite.", _FLOW
    ),
    PublishedMetric("howdah_flow_srtt_seconds", "gauge", "Smoothed round-trip time of the sender.", _FLOW),
    PublishedMetric(
        "howdah_flow_min_rtt_seconds", "gauge", "Least round-trip time the sender has seen (tcp_info).", _FLOW
    ),
    PublishedMetric(
        "howdah_flow_inflight_bytes", "gauge", "Bytes sent and not yet acknowledged (snd_nxt - snd_una).", _FLOW
    ),
    PublishedMetric(
        "howdah_flow_pacing_rate_bytes_per_second", "gauge", "Pacing rate of the sender (tcp_info).", _FLOW
    ),
    PublishedMetric(
        "howdah_flow_acked_bytes_total", "counter", "Payload bytes acknowledged, in order (snd_una).", _FLOW
    ),
    PublishedMetric(
        "howdah_flow_delivered_bytes_total", "counter", "Payload bytes that arrived, in order or not.", _FLOW
    ),
    PublishedMetric(
        "howdah_flow_received_bytes_total", "counter", "Payload bytes received in order by the receiver.", _FLOW
    ),
    PublishedMetric("howdah_flow_retransmitted_packets_total", "counter", "Segments retransmitted (tcp_info).", _FLOW),
    PublishedMetric(
        "howdah_queue_backlog_bytes", "gauge", "Bytes waiting in a queueing discipline, as frames.", _QUEUE
    ),
    PublishedMetric("howdah_queue_backlog_packets", "gauge", "Packets waiting in a queueing discipline.", _QUEUE),
    PublishedMetric("howdah_queue_sent_bytes_total", "counter", "Bytes that left a queueing discipline.", _QUEUE),
    PublishedMetric("howdah_queue_dropped_packets_total", "counter", "Packets a queueing discipline dropped.", _QUEUE),
    PublishedMetric("howdah_interface_transmitted_bytes_total", "counter", "Bytes an interface sent.", _INTERFACE),
    PublishedMetric("howdah_interface_received_bytes_total", "counter", "Bytes an interface received.", _INTERFACE),
    PublishedMetric(
        "howdah_interface_dropped_packets_total", "counter", "Packets an interface dropped, both ways.", _INTERFACE
    ),
    PublishedMetric(
        "howdah_processor_busy_seconds_total", "counter", "Time that the processor of a flow's end was busy.", _FLOW
    ),
    PublishedMetric(
        "howdah_processor_waiting_packets", "gauge", "Segments that wait for the processor of a flow's end.", _FLOW
    ),
    PublishedMetric(
        "howdah_processor_dropped_packets_total", "counter", "Segments dropped because too many waited.", _FLOW
    ),
    PublishedMetric(
        "howdah_processor_searched_packets_total", "counter", "Packets that the processor passed in searches.", _FLOW
    ),
)

PATH: tuple[PublishedMetric, ...] = (
    PublishedMetric("howdah_path_rate_bytes_per_second", "gauge", "Bottleneck rate, counting link-layer frames."),
    PublishedMetric("howdah_path_rtt_seconds", "gauge", "Round-trip propagation delay of the path."),
    PublishedMetric("howdah_path_buffer_bytes", "gauge", "Buffer of the bottleneck."),
    PublishedMetric("howdah_path_bdp_bytes", "gauge", "Rate times round-trip time."),
)

END = PublishedMetric(
    "howdah_run_end_timestamp_seconds", "gauge", "When the run ended, in seconds since 1970.", ("run",)
)

INFO: tuple[PublishedMetric, ...] = (
    PublishedMetric(
        "howdah_run_info",
        "info",
        "Where a run came from: always 1.",
        ("run", "verdict", "engine", "plan_sha256", "kernel_image_sha256", "revision"),
    ),
    PublishedMetric(
        "howdah_slow_start_exit_info",
        "info",
        "Why a flow left slow start: always 1.",
        ("run", "flow", "number", "cause"),
    ),
)
