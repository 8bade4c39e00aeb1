# SPDX-License-Identifier: Apache-2.0
"""Defines the exporter's metrics, and formats one reading of them for Prometheus.

Queues and interfaces have the names and units of runs (howdah/publish/metric.py). Connections are summed by congestion
control, so that the number of series does not grow with them. Standard library only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from howdah.publish.metric import SERIES, PublishedMetric

_EXACT = 1e15  # below it every whole number is exact and is written as one


def header(name: str, kind: str, meaning: str) -> str:
    """HELP and TYPE of a family."""
    return f"# HELP {name} {meaning}\n# TYPE {name} {kind}\n"


def series(name: str, labels: Iterable[tuple[str, str]]) -> str:
    """A metric's name with its labels, in their order."""
    inner = ",".join(f'{label}="{_escaped(value)}"' for label, value in labels)
    return f"{name}{{{inner}}}"


def number(value: float) -> str:
    """Whole numbers without a decimal point, everything else so that it reads back equal."""
    value = float(value)
    return str(int(value)) if value.is_integer() and abs(value) < _EXACT else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


_TCP = ("node", "algorithm")
_QUEUE = ("node", "interface", "handle", "kind")
_INTERFACE = ("node", "interface")
_BY_NAME = {metric.name: metric for metric in SERIES}


def _of_runs(name: str, labels: tuple[str, ...]) -> PublishedMetric:
    """A metric of runs, without the labels of roles, which a machine does not know."""
    metric = _BY_NAME[name]
    return PublishedMetric(metric.name, metric.kind, metric.help, labels)


MACHINE: tuple[PublishedMetric, ...] = (
    PublishedMetric("howdah_tcp_connections", "gauge", "Established TCP connections.", _TCP),
    PublishedMetric(
        "howdah_tcp_slow_start_connections", "gauge", "Connections whose window is below their threshold.", _TCP
    ),
    PublishedMetric("howdah_tcp_cwnd_packets", "gauge", "Congestion windows of all connections together.", _TCP),
    PublishedMetric("howdah_tcp_largest_cwnd_packets", "gauge", "Largest congestion window of a connection.", _TCP),
    PublishedMetric(
        "howdah_tcp_inflight_packets", "gauge", "Segments of all connections sent and not acknowledged.", _TCP
    ),
    PublishedMetric("howdah_tcp_srtt_seconds", "gauge", "Mean of the connections' smoothed round-trip times.", _TCP),
    PublishedMetric("howdah_tcp_min_rtt_seconds", "gauge", "Least round-trip time a connection has seen.", _TCP),
    PublishedMetric(
        "howdah_tcp_pacing_rate_bytes_per_second", "gauge", "Pacing rates of all connections together.", _TCP
    ),
    PublishedMetric(
        "howdah_tcp_delivery_rate_bytes_per_second", "gauge", "Delivery rates of all connections together.", _TCP
    ),
    PublishedMetric(
        "howdah_tcp_sent_packets_total", "counter", "Segments the host sent, retransmissions left out.", ("node",)
    ),
    PublishedMetric("howdah_tcp_received_packets_total", "counter", "Segments the host received.", ("node",)),
    PublishedMetric("howdah_tcp_retransmitted_packets_total", "counter", "Segments the host retransmitted.", ("node",)),
    _of_runs("howdah_queue_backlog_bytes", _QUEUE),
    _of_runs("howdah_queue_backlog_packets", _QUEUE),
    _of_runs("howdah_queue_sent_bytes_total", _QUEUE),
    _of_runs("howdah_queue_dropped_packets_total", _QUEUE),
    _of_runs("howdah_interface_transmitted_bytes_total", _INTERFACE),
    _of_runs("howdah_interface_received_bytes_total", _INTERFACE),
    _of_runs("howdah_interface_dropped_packets_total", _INTERFACE),
    PublishedMetric(
        "howdah_cpu_seconds_total", "counter", "Time of all processors together, by mode.", ("node", "mode")
    ),
)
_NAMES = frozenset(metric.name for metric in MACHINE)


@dataclass(frozen=True)
class Reading:
    """One sample: ``labels`` are in the order of the metric's, ``value`` in the unit its name ends with."""

    name: str
    labels: tuple[str, ...]
    value: float


def text_format(readings: Iterable[Reading]) -> Iterator[str]:
    """Lines of Prometheus' text format, families in the order of ``MACHINE``; those without a sample are left out.

    Raises KeyError for a name that ``MACHINE`` does not have, and ValueError for a wrong number of labels.
    """
    yield from _lines(readings, lambda metric: metric.name)


def openmetrics_format(readings: Iterable[Reading]) -> Iterator[str]:
    """The same as OpenMetrics 1.0, in which a counter's family is named without ``_total``, and the end is marked."""
    yield from _lines(readings, lambda metric: metric.family)
    yield "# EOF\n"


def _lines(readings: Iterable[Reading], family: Callable[[PublishedMetric], str]) -> Iterator[str]:
    by_name: dict[str, list[Reading]] = {}
    for reading in readings:
        if reading.name not in _NAMES:
            raise KeyError(reading.name)
        by_name.setdefault(reading.name, []).append(reading)
    for metric in MACHINE:
        if metric.name not in by_name:
            continue
        yield header(family(metric), metric.kind, metric.help)
        for reading in by_name[metric.name]:
            pairs = zip(metric.labels, reading.labels, strict=True)
            yield f"{series(metric.name, pairs)} {number(reading.value)}\n"
