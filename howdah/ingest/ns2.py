# SPDX-License-Identifier: Apache-2.0
"""Ingest ns-2's output in raw/ into tables with the names and columns of a kernel's.

acks.tr is the trace of the senders' variables (Trace/Var of ns-2), one line per change, in order. An ACK changes the
count of ACKs (``nackpack_``) before any other variable, so the values known before that line are what tcp_probe
records: the state before the ACK is processed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from howdah.ingest.source import Context, Integers, Made, SourceReport, texts
from howdah.linux.netlink.diag import TCP_ESTABLISHED
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.raw import open_raw, read_raw_text
from howdah.record.schema import SLOW_START, TABLES

ACKS, QUEUE, INFO, FLOWS, LINKS = "acks.tr", "queue.tsv", "info.tsv", "flows.tsv", "links.tsv"
_SRTT_BITS = 3  # T_SRTT_BITS: srtt_ is in eighths of a tick
_TICK_S = 0.01  # tcpTick_ by default
_LINUX_TICK_S = 0.001  # of Agent/TCP/Linux, which has Linux' jiffies
_TIMEOUTS = "TcpExtTCPTimeouts"
_STATE = ("maxseq_", "ack_", "cwnd_", "ssthresh_", "srtt_", "nrexmitpack_")


@dataclass
class FlowAcks:
    """ACKs of one flow; rows are (time, maxseq, ack, cwnd, ssthresh, srtt, retransmissions) before each ACK.

    ``advances`` are (time in ns, packets of data acknowledged), ``timeouts`` (time in ns, their number so far). ``syn``
    is 1 if packet 0 is a SYN. Packets are numbered as in ns-2; -1: none.
    """

    start_ns: int
    syn: int
    rows: list[tuple[float, ...]] = field(default_factory=list)
    advances: list[tuple[int, int]] = field(default_factory=list)
    timeouts: list[tuple[int, int]] = field(default_factory=list)

    @property
    def connected_ns(self) -> int | None:
        """When the SYN was acknowledged; the start without a SYN, None without an ACK."""
        if not self.syn:
            return self.start_ns
        return self.advances[0][0] if self.advances else None

    @property
    def acknowledged_packets(self) -> int:
        return self.advances[-1][1] if self.advances else 0

    def time_of(self, packets: int) -> int:
        """When this many packets of data had been acknowledged. Raise LookupError if they never were."""
        return next(time for time, acknowledged in self.advances if acknowledged >= packets)


def read_ends(raw: Path) -> dict[int, dict[str, int]]:
    """Read the senders' own counts at the end, by flow."""
    found = {}
    for row in _rows(raw, FLOWS):
        if row[1] == "end":
            found[int(row[0])] = {"sent_packets": int(row[3]), "retransmitted_packets": int(row[4])}
    return found


def read_release(raw: Path) -> str:
    """Read the simulator's version, as plans have it: ``ns-2 2.35``. Raise LookupError without one."""
    return next(f"ns-2 {row[2]}" for row in _rows(raw, FLOWS) if row[1] == "release")


def read_links(raw: Path) -> dict[str, dict[str, int]]:
    """Read each queue's packets over the whole run: arrivals, departures, drops, and what was left in it."""
    names = ("arrivals", "departures", "drops", "left")
    return {row[0]: dict(zip(names, map(int, row[1:]), strict=True)) for row in _rows(raw, LINKS)}


def read_acks(raw: Path, plan: Plan) -> dict[int, FlowAcks]:
    """Read the ACKs of each flow. Raise OSError if a file is missing, ValueError or LookupError if ns-2 did not write
    it."""
    flows: dict[int, FlowAcks] = {}
    of_agent: dict[str, FlowAcks] = {}
    for row in _rows(raw, FLOWS):
        if row[1] == "start":
            flow = int(row[0])
            flows[flow] = of_agent[row[3]] = FlowAcks(_nanoseconds(row[2]), _syn(plan, flow))
    states: dict[str, dict[str, float]] = {}
    with open_raw(raw / ACKS) as file:
        for line in file:
            _kind, time, agent, name, value = line.decode("ascii").split()
            agent, name, number = agent[1:], name[1:], float(value[1:])  # each has the letter of its kind before it
            state = states.setdefault(agent, dict.fromkeys(_STATE, 0.0))
            if name == "nackpack_":
                if number and agent in of_agent:
                    _arrived(of_agent[agent], time, state)
                continue
            state[name] = number
            if name == "nrexmit_" and number and agent in of_agent:
                of_agent[agent].timeouts.append((_nanoseconds(time[1:]), int(number)))
            if name == "ack_" and agent in of_agent:
                acked = int(number) + 1 - of_agent[agent].syn
                if acked >= 0:
                    of_agent[agent].advances.append((_nanoseconds(time[1:]), acked))
    return flows


def _syn(plan: Plan, flow: int) -> int:
    """1 if the flow's packet 0 is a SYN. Raise LookupError for a flow that the plan lacks."""
    assert plan.model is not None
    return int(plan.model.flows[str(flow)].handshake)


def _arrived(flow: FlowAcks, time: str, state: dict[str, float]) -> None:
    if state["ack_"] + 1 >= flow.syn:  # the SYN's own ACK is none of data, and tcp_probe has no record of it
        flow.rows.append((_nanoseconds(time[1:]), *(state[name] for name in _STATE)))


def _nanoseconds(text: str) -> int:
    return round(float(text) * 1e9)


def _rows(raw: Path, name: str) -> list[list[str]]:
    return [line.split("\t") for line in read_raw_text(raw / name).splitlines()]


def ingest_model(context: Context) -> Made:
    """Make the tables of a simulation. It has no interfaces and no modules; of a kernel's counters it has only
    timeouts."""
    empty = {"slow_start": SLOW_START, "interface": TABLES["interface"]}
    made: Made = {name: (schema.empty_table(), SourceReport()) for name, schema in empty.items()}
    raw, plan = context.directory.raw, context.plan
    for name, read in (("tcp_probe", _tcp_probe), ("tcp_info", _tcp_info), ("qdisc", _qdisc), ("counter", _counter)):
        report = SourceReport()
        try:
            table = read(raw, plan)
        except (OSError, ValueError, LookupError) as error:
            report.problems.append(f"ns-2's trace cannot be read: {error}")
            table = TABLES[name].empty_table()
        report.rows = table.num_rows
        made[name] = (table, report)
    return made


def _tcp_probe(raw: Path, plan: Plan) -> pa.Table:
    if not plan.collect.tcp_probe:
        return TABLES["tcp_probe"].empty_table()
    assert plan.model is not None
    mss, window = plan.path.mss_bytes, int(plan.model.window_packets)
    ids: list[int] = []
    rows: list[tuple[float, ...]] = []
    syns: list[int] = []
    for flow, acks in read_acks(raw, plan).items():
        ids += [flow] * len(acks.rows)
        syns += [acks.syn] * len(acks.rows)
        rows += acks.rows
    values = np.array(rows, dtype=np.float64).reshape(len(rows), 1 + len(_STATE))
    flows = np.array(ids, dtype=np.int64)
    order = np.argsort(values[:, 0], kind="stable")
    values, flows, syn = values[order], flows[order], np.array(syns, dtype=np.int64)[order]
    time, maxseq, ack, cwnd, ssthresh, srtt, _ = values.T
    ticks = np.array([_tick_s(plan, flow.id) for flow in plan.flows])
    place = np.searchsorted([flow.id for flow in plan.flows], flows)
    seconds = np.floor(srtt / (1 << _SRTT_BITS)) * (ticks[place] if flows.size else 0.0)
    constant = np.zeros(len(rows), dtype=np.int64)
    return store.table_of(
        "tcp_probe",
        {
            "flow": flows,
            "time_ns": _whole(time),
            "data_len_bytes": constant,
            "snd_nxt_bytes": (_whole(maxseq) + 1 - syn) * mss,
            "snd_una_bytes": (_whole(ack) + 1 - syn) * mss,
            "cwnd_packets": _whole(np.floor(cwnd)),
            "ssthresh_packets": pa.array(_whole(ssthresh), pa.int64(), mask=ssthresh >= window),
            "snd_wnd_bytes": constant + window * mss,
            "srtt_us": _whole(np.round(seconds * 1e6)),
            "rcv_wnd_bytes": constant,
        },
    )


def _whole(values: Any) -> Integers:
    return np.asarray(values, dtype=np.int64)


def _tick_s(plan: Plan, flow: int) -> float:
    assert plan.model is not None
    if plan.model.flows[str(flow)].congestion_control is not None:
        return _LINUX_TICK_S
    return float(plan.model.settings.get("tcpTick_", _TICK_S))


def _tcp_info(raw: Path, plan: Plan) -> pa.Table:
    """One row per reading and sender; fields without a counterpart in the simulation are null."""
    assert plan.model is not None
    if plan.collect.tcp_info_us is None:
        return TABLES["tcp_info"].empty_table()
    mss, window = plan.path.mss_bytes, int(plan.model.window_packets)
    rows = _rows(raw, INFO)
    count = len(rows)
    values = np.array([[float(value) for value in row] for row in rows]).reshape(count, 8)
    time, flow, cwnd, ssthresh, ack, maxseq, sent, again = values.T
    syn = np.array([_syn(plan, int(each)) for each in flow], dtype=np.int64)
    columns = {
        "flow": _whole(flow),
        "end": texts(np.zeros(count, dtype=np.int64), ["sender"]),
        "time_ns": _whole(np.round(time * 1e9)),
        "state": np.full(count, TCP_ESTABLISHED, dtype=np.int64),
        "cwnd_packets": _whole(np.floor(cwnd)),
        "ssthresh_packets": pa.array(_whole(ssthresh), pa.int64(), mask=ssthresh >= window),
        "mss_bytes": np.full(count, mss, dtype=np.int64),
        "unacked_packets": _whole(maxseq - ack),
        "total_retrans_packets": _whole(again),
        "data_segs_out_packets": np.maximum(_whole(sent) - syn, 0),
        "bytes_acked_bytes": np.maximum(_whole(ack) + 1 - syn, 0) * mss,
    }
    return store.sparse_table_of("tcp_info", columns)


def _qdisc(raw: Path, plan: Plan) -> pa.Table:
    """Readings of the forward bottleneck queue, under the plan's names for it."""
    if plan.collect.qdisc_us is None:
        return TABLES["qdisc"].empty_table()
    rows = [row for row in _rows(raw, QUEUE) if row[1] == "forward"]
    values = np.array([[float(row[0]), *map(float, row[2:])] for row in rows]).reshape(len(rows), 6)
    time, size, packets, sent_bytes, sent, drops = values.T
    at, count = plan.calibration, len(rows)
    named = {
        "node": at.bottleneck_node,
        "interface": at.bottleneck_interface,
        "handle": at.bottleneck_handle,
        "parent": "ns-2",
        "kind": "DropTail",
    }
    one = np.zeros(count, dtype=np.int64)
    return store.table_of(
        "qdisc",
        {
            **{name: texts(one, [value]) for name, value in named.items()},
            "time_ns": _whole(np.round(time * 1e9)),
            "backlog_bytes": _whole(size),
            "backlog_packets": _whole(packets),
            "sent_bytes": _whole(sent_bytes),
            "sent_packets": _whole(sent),
            "drops_packets": _whole(drops),
            "overlimits": one,
            "marks_packets": pa.nulls(count, pa.int64()),
        },
    )


def _counter(raw: Path, plan: Plan) -> pa.Table:
    """Timeouts of each sender's host, read before and after each of them, under the kernel's name of the counter."""
    acks = read_acks(raw, plan)
    rows: list[tuple[str, int, int]] = []
    for host in dict.fromkeys(flow.sender for flow in plan.flows):
        mine = sorted(time for flow in plan.flows if flow.sender == host for time, _ in acks[flow.id].timeouts)
        rows.append((host, 0, 0))
        for number, time in enumerate(mine):
            rows += [(host, time - 1, number), (host, time, number + 1)]
        rows.append((host, plan.duration_us * 1000, len(mine)))
    hosts = [host for host, _, _ in rows]
    one = np.zeros(len(rows), dtype=np.int64)
    return store.table_of(
        "counter",
        {
            "node": texts(np.arange(len(rows)), hosts),
            "source": texts(one, ["netstat"]),
            "name": texts(one, [_TIMEOUTS]),
            "time_ns": np.array([time for _, time, _ in rows], dtype=np.int64),
            "value": np.array([value for _, _, value in rows], dtype=np.int64),
        },
    )
