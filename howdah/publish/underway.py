# SPDX-License-Identifier: Apache-2.0
"""Metrics of runs in progress: the last reading of each collector, from raw/ as it grows, under the published names.

It reads the files that the collectors write and asks neither the kernel nor the agent. For a run in virtual time it
reads the trace (acktrace.py), because simulated seconds differ from those of the scrape.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from howdah.errors import HowdahError
from howdah.ingest import interface, qdisc, tcp_info
from howdah.ingest.framed import LARGEST_ANSWER, Frames, Locate, Records, parse
from howdah.ingest.source import Context
from howdah.linux.netlink.message import NLMSG_DONE
from howdah.linux.output import FRAME
from howdah.plan.plan import Flow, Plan
from howdah.publish.acktrace import AckTrace
from howdah.publish.metric import PATH, SERIES, Families, MetricSamples, PublishedMetric
from howdah.publish.openmetrics import flow_labels, run_labels
from howdah.publish.phase import Position, position
from howdah.record.agent import AgentRecord
from howdah.record.directory import PARTIAL
from howdah.record.result import Run, load_run
from howdah.record.sample import QUEUE, RECEIVER, SENDER
from howdah.record.schema import INFINITE_SSTHRESH
from howdah.running import is_running

_TYPE, _DONE = slice(4, 6), NLMSG_DONE.to_bytes(2, "little")  # of the first netlink header of an answer
_FRESH_S = 5.0  # a node whose readings ended this long ago shows none
_UNLIMITED = 2**63 - 1024

LIVE: tuple[PublishedMetric, ...] = (
    PublishedMetric("howdah_live_run_info", "info", "A run that is being made: always 1.", ("run", "engine", "phase")),
    PublishedMetric("howdah_live_progress_ratio", "gauge", "Share of a run's duration that has passed.", ("run",)),
    PublishedMetric("howdah_live_simulated_seconds", "gauge", "Simulated time since the guest's boot.", ("run",)),
    PublishedMetric(
        "howdah_live_acks_per_second", "gauge", "ACKs in a second of simulated time, in the newest part of the trace."
    ),
    PublishedMetric(
        "howdah_live_exit_seconds", "gauge", "Exit from slow start so far, after the flow's start.", ("flow", "role")
    ),
    PublishedMetric("howdah_live_exit_cwnd_packets", "gauge", "Congestion window at that exit.", ("flow", "role")),
    PublishedMetric("howdah_live_connections", "gauge", "TCP connections that are being read.", ("role",)),
    PublishedMetric("howdah_live_unacked_packets", "gauge", "Packets not yet acknowledged, of all senders."),
    PublishedMetric("howdah_live_mean_srtt_seconds", "gauge", "Smoothed round-trip time, mean over the senders."),
)
_CATALOGUE = {metric.name: metric for metric in (*SERIES, *LIVE)}

# From this on a value means nothing.
_LIMITS = {"ssthresh_packets": INFINITE_SSTHRESH, "min_rtt_us": 0xFFFFFFFF}
_SOCKET_COLUMNS = (
    *(each.column for each in (*SENDER, *RECEIVER)),
    "unacked_packets",
    "sacked_packets",
    "data_segs_in_packets",
)
_INTERFACE_COLUMNS = ("tx_bytes", "rx_bytes", "tx_dropped_packets", "rx_dropped_packets")


@dataclass
class Tail:
    """The newest frame of each node in a framed file that is being written; continues from the last position."""

    path: Path
    clock: Callable[[], float] = time.monotonic
    _offset: int = 0
    _latest: dict[int, tuple[float, int, int, bytes]] = field(default_factory=dict)  # seen, time, kind, answer

    def frames(self) -> Frames:
        """One frame for each node that was read lately. An incomplete frame waits."""
        self._read_on()
        now = self.clock()
        nodes = [node for node, (seen, *_) in sorted(self._latest.items()) if now - seen <= _FRESH_S]
        answers = [self._latest[node][3] for node in nodes]
        lengths = np.array([len(answer) for answer in answers], dtype=np.int64)
        return Frames(
            self.path.name,
            np.frombuffer(b"".join(answers), dtype=np.uint8),
            np.array([self._latest[node][1] for node in nodes], dtype=np.int64),
            np.array(nodes, dtype=np.int64),
            np.array([self._latest[node][2] for node in nodes], dtype=np.int64),
            np.cumsum(lengths) - lengths,
            lengths,
        )

    def _read_on(self) -> None:
        try:
            with self.path.open("rb") as file:
                file.seek(self._offset)
                new = file.read()
        except OSError:
            return  # not there yet, or no longer: the run ended and its directory has another name
        at = 0
        while at + FRAME.size <= len(new):
            time_ns, length, node, kind = FRAME.unpack_from(new, at)
            begin = at + FRAME.size
            if length > LARGEST_ANSWER or begin + length > len(new):
                break
            answer = new[begin : begin + length]
            if answer[_TYPE] != _DONE:  # the end of a dump is no reading
                self._latest[node] = (self.clock(), time_ns, kind, answer)
            at = begin + length
        self._offset += at


class LiveRun:
    """One run in progress. Raises HowdahError if its directory has no readable plan."""

    def __init__(self, directory: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.run: Run = load_run(directory, directory.parent.name)
        if self.run.plan is None:
            raise HowdahError(f"not shown live: {self.run.problem}", where=str(directory))
        self.plan: Plan = self.run.plan
        self.directory = directory
        self._tails = {
            name: Tail(directory / "raw" / f"{name}.bin", clock) for name in ("tcp_info", "qdisc", "interface")
        }
        # In virtual time seconds are not those of whoever looks: rates are told by the trace's own clock.
        self.trace = AckTrace(directory / "raw", self.plan) if self.plan.traits.exact_uptime else None
        self._flows = _flows_by_address(self.plan.flows)
        self._delivered: dict[int, int] = {}  # a counter does not fall, also where the last segment was a short one
        self._roles = {host.name: host.role for host in self.plan.hosts}

    def families(self) -> Families:
        """The metrics of this run now."""
        found: Families = {}
        labels = run_labels(self.run)

        def add(metric: PublishedMetric, extra: dict[str, str], value: float) -> None:
            found.setdefault(metric, []).append(MetricSamples(labels | extra, [0], [float(value)]))

        name = {"run": self.run.name}
        where = self.position()
        add(_CATALOGUE["howdah_live_run_info"], name | {"engine": self.plan.engine, "phase": where.phase}, 1.0)
        add(_CATALOGUE["howdah_live_progress_ratio"], name, where.share)
        path = self.plan.path
        facts = (path.rate_bits_per_second / 8, path.rtt_us / 1e6, path.buffer_bytes, path.bdp_bytes)
        for metric, value in zip(PATH, facts, strict=True):
            add(metric, name, float(value))
        if self.trace is None:
            for metric_name, extra, value in (*self._sockets(), *self._queues_and_interfaces()):
                add(_CATALOGUE[metric_name], extra, value)
        else:
            add(_CATALOGUE["howdah_live_simulated_seconds"], name, where.time_us / 1e6)
            for metric_name, extra, value in self._traced(self.trace):
                add(_CATALOGUE[metric_name], extra, value)
        return found

    def position(self) -> Position:
        return position(self.run.directory)

    def _traced(self, trace: AckTrace) -> Iterator[tuple[str, dict[str, str], float]]:
        """Yield the newest ACK of each flow. No counters: their growth in a second of the scrape means nothing."""
        trace.look()
        if trace.acks_per_second is not None:
            yield "howdah_live_acks_per_second", {}, trace.acks_per_second
        for each in trace.flows:
            labels = flow_labels(self.plan, each.flow.id) | {"role": "sender"}
            if each.acks:
                yield "howdah_flow_cwnd_packets", labels, each.cwnd_packets
                yield "howdah_flow_srtt_seconds", labels, each.srtt_us / 1e6
                if each.ssthresh_packets is not None:
                    yield "howdah_flow_ssthresh_packets", labels, each.ssthresh_packets
            if each.exit is not None:
                yield "howdah_live_exit_seconds", labels, each.exit.after_start_s
                yield "howdah_live_exit_cwnd_packets", labels, each.exit.cwnd_packets

    def _parsed(self, name: str, locate: Locate, columns: tuple[str, ...]) -> tuple[Frames, Records]:
        frames = self._tails[name].frames()
        return frames, parse(frames, locate, columns)

    def _sockets(self) -> Iterator[tuple[str, dict[str, str], float]]:
        """Yield the samples of single flows; connections of groups only count in the sums."""
        _frames, records = self._parsed("tcp_info", tcp_info.locate, _SOCKET_COLUMNS)
        count = {"sender": 0, "receiver": 0}
        unacked, rtts = 0.0, []
        arrived: dict[int, int] = {}  # at receivers that count segments; those that came twice count twice
        confirmed: dict[int, int] = {}
        for row, code in enumerate(records.identity.tolist()):
            found = self._flow_of(records.identities[code])
            if found is None:
                continue
            flow, role = found
            count[role] += 1
            values = {name: int(records.columns[name][row]) for name in _SOCKET_COLUMNS if records.known[name][row]}
            if role == "sender":
                unacked += values.get("unacked_packets", 0)
                rtts.append(values.get("rtt_us", 0) / 1e6)
            if flow.group is not None:
                continue
            for each in SENDER if role == "sender" else RECEIVER:
                if each.column in values and values[each.column] < _LIMITS.get(each.column, _UNLIMITED):
                    labels = flow_labels(self.plan, flow.id) | {"role": role}
                    yield each.metric, labels, values[each.column] * each.factor
            if role == "receiver" and "data_segs_in_packets" in values:
                arrived[flow.id] = values["data_segs_in_packets"] * self.plan.path.mss_bytes
            elif role == "sender" and "bytes_acked_bytes" in values:
                held = values.get("sacked_packets", 0) * self.plan.path.mss_bytes
                confirmed[flow.id] = values["bytes_acked_bytes"] + held
        yield from self._deliveries(confirmed | arrived)
        for role, number in count.items():
            yield "howdah_live_connections", {"role": role}, float(number)
        yield "howdah_live_unacked_packets", {}, unacked
        if rtts:
            yield "howdah_live_mean_srtt_seconds", {}, sum(rtts) / len(rtts)

    def _deliveries(self, found: dict[int, int]) -> Iterator[tuple[str, dict[str, str], float]]:
        for number, delivered in sorted(found.items()):
            self._delivered[number] = max(delivered, self._delivered.get(number, 0))
            labels = flow_labels(self.plan, number) | {"role": "receiver"}
            yield "howdah_flow_delivered_bytes_total", labels, self._delivered[number]

    def _flow_of(self, identity: tuple[str, ...]) -> tuple[Flow, str] | None:
        source, source_port, destination, destination_port = identity[:4]
        for role, key, port in (
            ("sender", (source, destination, destination_port), source_port),
            ("receiver", (destination, source, source_port), destination_port),
        ):
            flows = self._flows.get(key, [])
            # Where the kernel chose the sender's port, the plan's is not it: the rest tells a single flow as well.
            exact = [flow for flow in flows if str(flow.source_port) == port]
            if len(exact or flows) == 1:
                return (exact or flows)[0], role
        return None

    def _queues_and_interfaces(self) -> Iterator[tuple[str, dict[str, str], float]]:
        nodes = [host.name for host in self.plan.hosts]
        _frames, links = self._parsed("interface", interface.locate, _INTERFACE_COLUMNS)
        names = interface.interface_names(Context(self.run.directory, self.plan, AgentRecord(), 0), links)
        for row, code in enumerate(links.identity.tolist()):
            node = nodes[int(links.node[row])]
            labels = {"node": node, "interface": links.identities[code][1], "role": self._roles.get(node, "router")}
            sent, received, lost, missed = (int(links.columns[name][row]) for name in _INTERFACE_COLUMNS)
            yield "howdah_interface_transmitted_bytes_total", labels, sent
            yield "howdah_interface_received_bytes_total", labels, received
            yield "howdah_interface_dropped_packets_total", labels, lost + missed
        _frames, queues = self._parsed("qdisc", qdisc.locate, tuple(each.column for each in QUEUE))
        bottleneck = self.plan.calibration.bottleneck
        for row, code in enumerate(queues.identity.tolist()):
            index, handle, _parent, kind = queues.identities[code]
            number = int(queues.node[row])
            node, interface_name = nodes[number], names.get((number, int(index)), f"if{index}")
            role = "bottleneck" if (node, interface_name, handle) == bottleneck else self._roles.get(node, "router")
            labels = {"node": node, "interface": interface_name, "handle": handle, "kind": kind, "role": role}
            for each in QUEUE:
                if queues.known[each.column][row]:
                    yield each.metric, labels, int(queues.columns[each.column][row])


def _flows_by_address(flows: list[Flow]) -> dict[tuple[str, str, str], list[Flow]]:
    found: dict[tuple[str, str, str], list[Flow]] = {}
    for flow in flows:
        key = (flow.source_address, flow.destination_address, str(flow.destination_port))
        found.setdefault(key, []).append(flow)
    return found


class Watch:
    """All runs in progress below a directory."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self._known: dict[Path, LiveRun] = {}

    @property
    def underway(self) -> list[LiveRun]:
        """The runs that the last look found, by directory."""
        return [self._known[path] for path in sorted(self._known)]

    def families(self) -> Families:
        """The metrics of all runs now. Skips directories whose process has ended."""
        present = {path for path in self._runs.glob(f"*/{PARTIAL}*") if _is_alive(path)}
        self._known = {path: live for path, live in self._known.items() if path in present}
        found: Families = {}
        for path in sorted(present):
            try:
                if path not in self._known:
                    self._known[path] = LiveRun(path)
                shown = self._known[path].families()
            except (HowdahError, OSError):
                continue  # it is only being begun, or it has just ended
            for metric, samples in shown.items():
                found.setdefault(metric, []).extend(samples)
        return found


def _is_alive(path: Path) -> bool:
    """Whether the process that a partial directory's name ends with is running."""
    number = path.name.rpartition("-")[2]
    return number.isdigit() and not path.parent.is_symlink() and is_running(number)
