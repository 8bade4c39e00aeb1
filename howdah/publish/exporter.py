# SPDX-License-Identifier: Apache-2.0
"""``howdah exporter``: metrics of a live machine for Prometheus, read through inet_diag, rtnetlink and /proc and served
over HTTP on loopback or on a link to other machines. It changes nothing and needs no root.

On the hosts of several machines it runs from an archive with the machine's own Python and needs only the standard
library, because the archive includes ``prometheus_client``. Queues and interfaces have the names and units of runs
(howdah/publish/metric.py). Connections are summed by congestion control, so that their number does not affect the
number of series.
"""

from __future__ import annotations

import argparse
import ipaddress
import os
import socket
import struct
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from howdah.linux.kernelfile import parse_snmp
from howdah.linux.netlink.diag import (
    INET_DIAG_CONG,
    INET_DIAG_INFO,
    INET_DIAG_MSG_BYTES,
    SOCK_DIAG_BY_FAMILY,
    TCP_ESTABLISHED,
    diag_request,
    open_diag,
)
from howdah.linux.netlink.link import links
from howdah.linux.netlink.message import Message, NetlinkSocket, parse_attributes
from howdah.linux.netlink.qdisc import qdiscs
from howdah.publish.endpoint import ScrapeEndpoint
from howdah.publish.metric import SERIES, Families, MetricSamples, PublishedMetric

DEFAULT_PORT = 9750


class AddressError(ValueError):
    """The exporter must not listen on this address."""


def require_address(address: str) -> None:
    """Raise AddressError unless this is a single address: a wildcard would listen on every interface."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        raise AddressError(f"{address!r} is not an address") from None
    if parsed.is_unspecified or parsed.is_multicast:
        raise AddressError(
            f"{address} is not the address of one interface; take 127.0.0.1, or that of a link to other machines"
        )


class Exporter(ScrapeEndpoint):
    """Reads the machine at every scrape, one at a time. Raises AddressError, or OSError if it cannot listen."""

    def __init__(self, address: str, port: int, machine: LiveMachine) -> None:
        require_address(address)
        super().__init__(lambda: families_of(machine.read()), address=address, port=port)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--address", default="127.0.0.1", help="one address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"port (default: {DEFAULT_PORT})")
    parser.add_argument("--node", help="name of this machine in the label node (default: its own)")


def serve(options: argparse.Namespace) -> None:
    """Serve until interrupted. Raises AddressError, OSError, or OverflowError for an invalid port."""
    with Exporter(options.address, options.port, LiveMachine(options.node)) as exporter:
        sys.stdout.write(f"metrics: http://{exporter.address}/metrics\n")
        sys.stdout.flush()
        exporter.serve_forever()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="howdah exporter", description="A live machine for Prometheus.")
    add_arguments(parser)
    options = parser.parse_args(arguments)
    try:
        serve(options)
    except KeyboardInterrupt:
        return 0
    except (AddressError, OSError, OverflowError) as error:
        sys.stderr.write(f"howdah exporter: {options.address}, port {options.port}: {error}\n")
        return 1
    return 0


_TCP = ("node", "algorithm")
_QUEUE = ("node", "interface", "handle", "kind")
_INTERFACE = ("node", "interface")
_OF_RUNS = {metric.name: metric for metric in SERIES}


def _of_runs(name: str, labels: tuple[str, ...]) -> PublishedMetric:
    """A metric of runs without its ``role`` label, which a machine does not know."""
    metric = _OF_RUNS[name]
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
_BY_NAME = {metric.name: metric for metric in MACHINE}


@dataclass(frozen=True)
class Reading:
    """One sample: ``labels`` are in the metric's order, ``value`` is in the unit that ends the metric's name."""

    name: str
    labels: tuple[str, ...]
    value: float


def families_of(readings: Iterable[Reading]) -> Families:
    """Group readings by metric, with their labels.

    Raises KeyError for a name that ``MACHINE`` lacks, and ValueError for a wrong number of labels.
    """
    found: Families = {}
    for each in readings:
        metric = _BY_NAME[each.name]
        labels = dict(zip(metric.labels, each.labels, strict=True))
        found.setdefault(metric, []).append(MetricSamples(labels, [0], [each.value]))
    return found


_EXTENSIONS = 1 << (INET_DIAG_INFO - 1) | 1 << (INET_DIAG_CONG - 1)
_INFINITE = 0x7FFFFFFF
_NO_RTT = 0xFFFFFFFF
_NO_PACING = 0xFFFFFFFFFFFFFFFF
# Offsets inside struct tcp_info (include/uapi/linux/tcp.h), which only ever grows at its end.
_UNACKED, _RTT, _SSTHRESH, _CWND, _PACING, _MIN_RTT, _DELIVERY = 24, 68, 76, 80, 104, 148, 160
_CPU_MODES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


@dataclass(frozen=True)
class LiveConnection:
    """One established connection. Times are in microseconds, rates in bytes per second; None means unknown."""

    algorithm: str
    cwnd_packets: int
    ssthresh_packets: int | None
    unacked_packets: int
    srtt_us: int
    min_rtt_us: int | None
    pacing_rate_bytes_per_second: int | None
    delivery_rate_bytes_per_second: int

    @property
    def in_slow_start(self) -> bool:
        return self.ssthresh_packets is None or self.cwnd_packets < self.ssthresh_packets


def parse_connection(message: Message) -> LiveConnection | None:
    """Parse one inet_diag answer; None unless it is an established connection with a complete struct tcp_info."""
    if len(message.payload) < INET_DIAG_MSG_BYTES or message.payload[1] != TCP_ESTABLISHED:
        return None
    found = parse_attributes(message.payload[INET_DIAG_MSG_BYTES:])
    info = found.get(INET_DIAG_INFO, b"")
    if len(info) < _DELIVERY + 8:
        return None

    def u32(offset: int) -> int:
        return int(struct.unpack_from("=I", info, offset)[0])

    def u64(offset: int) -> int:
        return int(struct.unpack_from("=Q", info, offset)[0])

    ssthresh, min_rtt, pacing = u32(_SSTHRESH), u32(_MIN_RTT), u64(_PACING)
    return LiveConnection(
        algorithm=found.get(INET_DIAG_CONG, b"").rstrip(b"\0").decode("ascii", "replace") or "unknown",
        cwnd_packets=u32(_CWND),
        ssthresh_packets=None if ssthresh >= _INFINITE else ssthresh,
        unacked_packets=u32(_UNACKED),
        srtt_us=u32(_RTT),
        min_rtt_us=None if min_rtt == _NO_RTT else min_rtt,
        pacing_rate_bytes_per_second=None if pacing == _NO_PACING else pacing,
        delivery_rate_bytes_per_second=u64(_DELIVERY),
    )


def aggregate(node: str, connections: list[LiveConnection]) -> Iterator[Reading]:
    """Sum the connections by algorithm."""
    by_algorithm: dict[str, list[LiveConnection]] = {}
    for connection in connections:
        by_algorithm.setdefault(connection.algorithm, []).append(connection)
    for algorithm, ours in sorted(by_algorithm.items()):
        labels = (node, algorithm)
        windows = [each.cwnd_packets for each in ours]
        times = [each.srtt_us for each in ours if each.srtt_us]
        least = [each.min_rtt_us for each in ours if each.min_rtt_us is not None]
        paced = [each.pacing_rate_bytes_per_second for each in ours if each.pacing_rate_bytes_per_second is not None]
        yield Reading("howdah_tcp_connections", labels, len(ours))
        yield Reading("howdah_tcp_slow_start_connections", labels, sum(each.in_slow_start for each in ours))
        yield Reading("howdah_tcp_cwnd_packets", labels, sum(windows))
        yield Reading("howdah_tcp_largest_cwnd_packets", labels, max(windows))
        yield Reading("howdah_tcp_inflight_packets", labels, sum(each.unacked_packets for each in ours))
        if times:
            yield Reading("howdah_tcp_srtt_seconds", labels, sum(times) / len(times) / 1e6)
        if least:
            yield Reading("howdah_tcp_min_rtt_seconds", labels, min(least) / 1e6)
        yield Reading("howdah_tcp_pacing_rate_bytes_per_second", labels, sum(paced))
        delivered = sum(each.delivery_rate_bytes_per_second for each in ours)
        yield Reading("howdah_tcp_delivery_rate_bytes_per_second", labels, delivered)


def cpu_seconds(node: str, stat: str, ticks_per_second: int) -> Iterator[Reading]:
    """Yield the processor times from the first line of /proc/stat, whose fields are ticks."""
    fields = stat.split("\n", 1)[0].split()
    for mode, ticks in zip(_CPU_MODES, fields[1:], strict=False):
        yield Reading("howdah_cpu_seconds_total", (node, mode), int(ticks) / ticks_per_second)


class LiveMachine:
    """The machine this runs on. Not thread-safe: it keeps its sockets open."""

    def __init__(self, node: str | None = None) -> None:
        self.node = node or socket.gethostname()
        self._route = NetlinkSocket()
        self._diag = open_diag()
        self._ticks_per_second = os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        self._route.close()
        self._diag.close()

    def read(self) -> list[Reading]:
        """Read everything once. Raises OSError (NetlinkError) if the kernel rejects a request."""
        return [*aggregate(self.node, self._connections()), *self._counters(), *self._network(), *self._cpu()]

    def _connections(self) -> list[LiveConnection]:
        found = []
        for family in (socket.AF_INET, socket.AF_INET6):
            # diag_request asks for IPv4 where no connection is named; the family is the first byte.
            request = bytes([family]) + diag_request(None, _EXTENSIONS)[1:]
            answers = self._diag.dump(SOCK_DIAG_BY_FAMILY, request)
            found += [connection for answer in answers if (connection := parse_connection(answer)) is not None]
        return found

    def _counters(self) -> Iterator[Reading]:
        values = parse_snmp(Path("/proc/net/snmp").read_text(encoding="ascii"))
        for name, counter in (("sent", "TcpOutSegs"), ("received", "TcpInSegs"), ("retransmitted", "TcpRetransSegs")):
            yield Reading(f"howdah_tcp_{name}_packets_total", (self.node,), values[counter])

    def _network(self) -> Iterator[Reading]:
        there = {link.index: link for link in links(self._route)}
        for state in qdiscs(self._route):
            if state.index not in there:
                continue  # an interface that went between the two questions
            labels = (self.node, there[state.index].name, _where(state.handle, state.parent), state.kind)
            yield Reading("howdah_queue_backlog_bytes", labels, state.backlog_bytes)
            yield Reading("howdah_queue_backlog_packets", labels, state.backlog_packets)
            yield Reading("howdah_queue_sent_bytes_total", labels, state.bytes)
            yield Reading("howdah_queue_dropped_packets_total", labels, state.drops)
        for link in there.values():
            if link.name == "lo":
                continue
            names, values = (self.node, link.name), link.statistics
            yield Reading("howdah_interface_transmitted_bytes_total", names, values["tx_bytes"])
            yield Reading("howdah_interface_received_bytes_total", names, values["rx_bytes"])
            dropped = values["rx_dropped"] + values["tx_dropped"]
            yield Reading("howdah_interface_dropped_packets_total", names, dropped)

    def _cpu(self) -> Iterator[Reading]:
        return cpu_seconds(self.node, Path("/proc/stat").read_text(encoding="ascii"), self._ticks_per_second)


def _where(handle: str, parent: str) -> str:
    """The handle of a queue. The kernel's own queues have no handle (``0:``) and get their parent, which is unique."""
    return handle if handle not in ("0:", "0:0") else f"0:@{parent}"


if __name__ == "__main__":
    sys.exit(main())
