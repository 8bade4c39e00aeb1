# SPDX-License-Identifier: Apache-2.0
"""Turn tables into evenly spaced samples, as a scrape every few milliseconds would have seen them.

Both kinds of figures start here: OpenMetrics for Prometheus, and the report, which is drawn from Parquet.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from howdah.plan.plan import Flow, Plan
from howdah.record.delivery import Proof, arrived_bytes, carried_bytes, delivered_bytes
from howdah.record.result import Run

MANY_FLOWS = 2_000  # with more flows, not every flow has its curves
_OF_A_GROUP = 3


def shown_flows(plan: Plan) -> list[Flow]:
    """The flows to show one by one: all that the profile lists, and of each group the connections with the most data
    (of equals, the first), because the shortest end before they are recorded. Tables have all connections of a group.
    """
    shown = {flow.id for flow in plan.flows if flow.group is None}
    for group in {flow.group for flow in plan.flows if flow.group is not None}:
        mine = sorted((flow for flow in plan.flows if flow.group == group), key=lambda flow: -(flow.size_bytes or 0))
        shown |= {flow.id for flow in mine[:_OF_A_GROUP]}
    return [flow for flow in plan.flows if flow.id in shown]


Int64 = npt.NDArray[np.int64]
Float64 = npt.NDArray[np.float64]

STEPS_MS = (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000)
_UNLIMITED = 2.0**63 - 1024  # ~0UL as the tables hold it, less the resolution of a float
_SAMPLES_WANTED = 3200  # most samples of a series; a screen shows fewer, and a range query may return 11 000

Parts = list[tuple[tuple[str, ...], pa.Table]]


@dataclass(frozen=True)
class Series:
    """One time series of one run: ``time_ms`` counts from the epoch, on the run's grid; ``value`` is in the metric's
    unit."""

    metric: str
    labels: tuple[tuple[str, str], ...]
    time_ms: Int64
    value: Float64

    def label(self, name: str) -> str:
        return dict(self.labels).get(name, "")


@dataclass(frozen=True)
class ColumnSeries:
    """A series that is a table's column times ``factor``. ``traced``: tcp_probe has it as well."""

    metric: str
    column: str
    factor: float = 1.0
    traced: bool = False


SENDER = (
    ColumnSeries("howdah_flow_cwnd_packets", "cwnd_packets", traced=True),
    ColumnSeries("howdah_flow_ssthresh_packets", "ssthresh_packets", traced=True),
    ColumnSeries("howdah_flow_srtt_seconds", "rtt_us", 1e-6, traced=True),
    ColumnSeries("howdah_flow_min_rtt_seconds", "min_rtt_us", 1e-6),
    ColumnSeries("howdah_flow_pacing_rate_bytes_per_second", "pacing_rate_bytes_per_second"),
    ColumnSeries("howdah_flow_acked_bytes_total", "bytes_acked_bytes", traced=True),
    ColumnSeries("howdah_flow_retransmitted_packets_total", "total_retrans_packets"),
)
RECEIVER = (ColumnSeries("howdah_flow_received_bytes_total", "bytes_received_bytes"),)
QUEUE = (
    ColumnSeries("howdah_queue_backlog_bytes", "backlog_bytes"),
    ColumnSeries("howdah_queue_backlog_packets", "backlog_packets"),
    ColumnSeries("howdah_queue_sent_bytes_total", "sent_bytes"),
    ColumnSeries("howdah_queue_dropped_packets_total", "drops_packets"),
)
_PROCESSOR = (
    ColumnSeries("howdah_processor_busy_seconds_total", "busy_ns", 1e-9),
    ColumnSeries("howdah_processor_waiting_packets", "waiting_packets"),
    ColumnSeries("howdah_processor_dropped_packets_total", "dropped_packets"),
    ColumnSeries("howdah_processor_searched_packets_total", "searched_packets"),
)


def step_ms(plan: Plan) -> int:
    """Interval of the published series: 10 to 100 ms for runs up to five minutes, coarser for longer ones."""
    wanted = plan.duration_us / 1000 / _SAMPLES_WANTED
    return next((step for step in STEPS_MS if step >= wanted), STEPS_MS[-1])


def queue_step_ms(plan: Plan) -> int:
    """Interval of the bottleneck's queue: the run's, or that of its readings if it is longer."""
    return _coarsest(step_ms(plan), (plan.collect.qdisc_us or 0) * 1000)


def flow_step_ms(plan: Plan) -> int:
    """Interval of the flows' series: the run's, or that of tcp_info if tcp_probe is off."""
    return step_ms(plan) if plan.collect.tcp_probe else _coarsest(step_ms(plan), (plan.collect.tcp_info_us or 0) * 1000)


def _coarsest(step: int, interval_ns: int) -> int:
    return max(step, next((each for each in STEPS_MS if each * 1_000_000 >= interval_ns), STEPS_MS[-1]))


_OF_FLOWS = {"tcp_probe": ["flow"], "tcp_info": ["flow", "end"]}  # columns that identify a series


def sample_run(run: Run) -> Iterator[Series]:
    """Yield every series of a run that has a plan and tables."""
    plan = run.plan
    if plan is None:
        return
    step = step_ms(plan)
    probed: set[int] = set()
    probes, infos = (_parts(_of_shown(run.table(name), plan), keys) for name, keys in _OF_FLOWS.items())
    for series in _tcp_probe(probes, plan, step):
        probed.add(int(series.label("flow")))
        yield series
    yield from _tcp_info(infos, plan, step, probed)
    yield from _deliveries(probes, infos, plan, step)
    yield from _queues(run.table("qdisc"), plan, step)
    yield from _interfaces(run.table("interface"), plan, step)
    yield from _processors(run.table("processor"), plan, step)


def _grid(first_ns: int, last_ns: int, step: int, plan: Plan) -> Int64:
    """Multiples of ``step`` ms within both the records and the experiment."""
    first = max(0, -(-int(first_ns) // (step * 1_000_000)))
    last = min(int(last_ns) // 1_000_000, plan.duration_us // 1000) // step
    return np.arange(first, last + 1, dtype=np.int64) * step


def column(table: pa.Table, name: str) -> Float64:
    """A column as floats; null and the kernel's *unlimited* (the pacing rate of an unpaced flow) become NaN."""
    values: Float64 = np.array(table.column(name).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False))
    values[values >= _UNLIMITED] = np.nan
    return values


def _times(table: pa.Table) -> Int64:
    return np.asarray(table.column("time_ns").to_numpy(), dtype=np.int64)


def _present(metric: str, labels: dict[str, str], grid: Int64, values: Float64) -> Iterator[Series]:
    """Yield the series without grid points that lack a value; nothing if all do."""
    known = ~np.isnan(values)
    if known.any():
        yield Series(metric, tuple(sorted(labels.items())), grid[known], values[known])


def _columns(
    shown: Iterable[ColumnSeries], labels: dict[str, str], grid: Int64, part: pa.Table, at: Int64
) -> Iterator[Series]:
    for each in shown:
        yield from _present(each.metric, labels, grid, column(part, each.column)[at] * each.factor)


def _groups(table: pa.Table, keys: list[str]) -> Iterator[tuple[tuple[str, ...], pa.Table]]:
    """Yield the parts of a table with equal keys, each in order of time, without rows that lack a key."""
    columns = [_coded(table.column(key)) for key in keys]
    known = np.all([codes >= 0 for codes, _ in columns], axis=0)
    number = np.zeros(len(table), dtype=np.int64)  # of the part of each row, in the order of the keys
    for codes, texts in columns:
        number = number * len(texts) + codes
    order = np.lexsort((_times(table), number))
    order = order[known[order]]
    if not np.array_equal(order, np.arange(len(table))):
        table, number = table.take(pa.array(order)), number[order]
    begins = np.flatnonzero(np.diff(number, prepend=-1)).tolist()
    for begin, end in pairwise([*begins, len(number)]):
        place, names = int(number[begin]), []
        for _, texts in reversed(columns):
            place, code = divmod(place, len(texts))
            names.append(texts[code])
        yield tuple(reversed(names)), table.slice(begin, end - begin)


def _coded(column: pa.ChunkedArray) -> tuple[Int64, list[str]]:
    """The index of each row's text in the sorted list of texts, -1 without one; and that list."""
    whole = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    encoded = whole if pa.types.is_dictionary(whole.type) else whole.dictionary_encode()
    texts = [str(text) for text in encoded.dictionary.cast(pa.string()).to_pylist()]
    ordered = sorted(set(texts))
    place = {text: number for number, text in enumerate(ordered)}
    codes = np.array([*(place[text] for text in texts), -1], dtype=np.int64)
    rows = encoded.indices.cast(pa.int64()).fill_null(len(texts))
    return codes[rows.to_numpy(zero_copy_only=False)], ordered


def _of_shown(table: pa.Table | None, plan: Plan) -> pa.Table | None:
    """The rows of all flows or, if there are very many, of the flows shown one by one."""
    if table is None or len(plan.flows) <= MANY_FLOWS:
        return table
    import pyarrow.compute as pc  # loading it takes half as long as everything else that reads tables

    ids = pa.array([flow.id for flow in shown_flows(plan)], table.column("flow").type)
    return table.filter(pc.is_in(table.column("flow"), ids))


def _parts(table: pa.Table | None, keys: list[str]) -> Parts:
    return [] if table is None else list(_groups(table, keys))


def _deliveries(probes: Parts, infos: Parts, plan: Plan, step: int) -> Iterator[Series]:
    """Yield the bytes of each flow that had arrived at its receiver, from its start to the last recorded ACK."""
    proofs: dict[str, list[Proof]] = {}
    last_ack: dict[str, int] = {}
    for (flow,), part in probes:
        time, acked = _times(part), np.maximum.accumulate(column(part, "snd_una_bytes"))
        proofs[flow] = [Proof(time, np.append(acked[1:], acked[-1]))]  # a record is the state before its ACK
        last_ack[flow] = int(time[-1])
    for (flow, end), part in infos:
        values = _arrived(part, plan) if end == "receiver" else _confirmed(part, plan)
        known = ~np.isnan(values)
        if known.any():
            proof = Proof(_times(part)[known], values[known], own=end == "receiver")
            proofs.setdefault(flow, []).append(proof)
    flows = {str(flow.id): flow for flow in plan.flows}
    for name in sorted(proofs.keys() & flows.keys(), key=int):
        first = min(flows[name].start_us * 1000, *(int(each.time_ns[0]) for each in proofs[name]))
        last = last_ack.get(name, max(int(each.time_ns[-1]) for each in proofs[name]))
        grid = _grid(first, last, step, plan)
        if len(grid):
            proved = np.max([each.at(grid) for each in proofs[name]], axis=0)
            delivered = delivered_bytes(np.maximum.accumulate(proved), carried_bytes(plan, flows[name], grid))
            labels = {"flow": name, "role": "receiver"}
            yield from _present("howdah_flow_delivered_bytes_total", labels, grid, delivered)


def _arrived(part: pa.Table, plan: Plan) -> Float64:
    """Bytes that had arrived at a receiver; NaN if its kernel does not count segments."""
    segments, in_order = column(part, "data_segs_in_packets"), column(part, "bytes_received_bytes")
    known = ~np.isnan(segments + in_order)
    found = np.full(len(known), np.nan)
    found[known] = arrived_bytes(segments[known], in_order[known], plan.path.mss_bytes)
    return found


def _confirmed(part: pa.Table, plan: Plan) -> Float64:
    """Bytes confirmed at a sender: acknowledged, or reported by SACK beyond a hole, in full segments."""
    held = np.nan_to_num(column(part, "sacked_packets")) * plan.path.mss_bytes
    return np.asarray(column(part, "bytes_acked_bytes") + held, dtype=np.float64)


def _tcp_probe(probes: Parts, plan: Plan, step: int) -> Iterator[Series]:
    """Yield the series of tcp_probe. A record is the state before its ACK is processed, so the state at an instant is
    that of the *next* record."""
    for (flow,), part in probes:
        time = _times(part)
        grid = _grid(time[0], time[-1], step, plan)
        if not len(grid):
            continue
        at = np.searchsorted(time, grid * 1_000_000, side="left")
        labels = {"flow": flow, "role": "sender"}
        acked = column(part, "snd_una_bytes")
        yield from _present("howdah_flow_cwnd_packets", labels, grid, column(part, "cwnd_packets")[at])
        yield from _present("howdah_flow_ssthresh_packets", labels, grid, column(part, "ssthresh_packets")[at])
        yield from _present("howdah_flow_srtt_seconds", labels, grid, column(part, "srtt_us")[at] / 1e6)
        flight = column(part, "snd_nxt_bytes") - acked
        yield from _present("howdah_flow_inflight_bytes", labels, grid, flight[at])
        yield from _present("howdah_flow_acked_bytes_total", labels, grid, np.maximum.accumulate(acked)[at])


def _held(part: pa.Table, step: int, plan: Plan) -> tuple[Int64, Int64] | None:
    """The grid, and for each of its points the index of the last snapshot up to then."""
    time = _times(part)
    usual = int(np.median(np.diff(time))) if len(time) > 1 else 0
    step = _coarsest(step, usual)
    grid = _grid(time[0], time[-1], step, plan)
    if not len(grid):
        return None
    at = np.searchsorted(time, grid * 1_000_000, side="right") - 1
    fresh = grid * 1_000_000 - time[at] <= max(2 * usual, step * 1_000_000)
    return grid[fresh], np.asarray(at[fresh], dtype=np.int64)


def _tcp_info(infos: Parts, plan: Plan, step: int, probed: set[int]) -> Iterator[Series]:
    """Yield what tcp_probe does not record; for flows without tcp_probe, its series too."""
    for (flow, end), part in infos:
        held = _held(part, step, plan)
        if held is None:
            continue
        grid, at = held
        alone = end == "sender" and int(flow) not in probed
        # Series that only tcp_info has come first, as with tcp_probe on.
        sender = [each for each in sorted(SENDER, key=lambda each: each.traced) if alone or not each.traced]
        wanted = RECEIVER if end == "receiver" else sender
        yield from _columns(wanted, {"flow": flow, "role": end}, grid, part, at)


def _queues(table: pa.Table | None, plan: Plan, step: int) -> Iterator[Series]:
    """Yield the queues: the bottleneck at the run's interval, others at 100 ms or more."""
    if table is None:
        return
    roles = {host.name: host.role for host in plan.hosts}
    bottleneck = plan.calibration.bottleneck
    for (node, interface, handle, kind), part in _groups(table, ["node", "interface", "handle", "kind"]):
        is_bottleneck = (node, interface, handle) == bottleneck
        held = _held(part, step if is_bottleneck else max(step, 100), plan)
        if held is None:
            continue
        grid, at = held
        role = "bottleneck" if is_bottleneck else roles.get(node, "router")
        labels = {"node": node, "interface": interface, "handle": handle, "kind": kind, "role": role}
        yield from _columns(QUEUE, labels, grid, part, at)


def _interfaces(table: pa.Table | None, plan: Plan, step: int) -> Iterator[Series]:
    if table is None:
        return
    roles = {host.name: host.role for host in plan.hosts}
    for (node, interface), part in _groups(table, ["node", "interface"]):
        held = _held(part, max(step, 100), plan)
        if held is None:
            continue
        grid, at = held
        labels = {"node": node, "interface": interface, "role": roles.get(node, "router")}
        dropped = column(part, "rx_dropped_packets") + column(part, "tx_dropped_packets")
        yield from _present("howdah_interface_transmitted_bytes_total", labels, grid, column(part, "tx_bytes")[at])
        yield from _present("howdah_interface_received_bytes_total", labels, grid, column(part, "rx_bytes")[at])
        yield from _present("howdah_interface_dropped_packets_total", labels, grid, dropped[at])


def _processors(table: pa.Table | None, plan: Plan, step: int) -> Iterator[Series]:
    """Yield the processors of each flow's ends; flows of one host share them."""
    if table is None:
        return
    for (node,), part in _groups(table, ["node"]):
        held = _held(part, step, plan)
        if held is None:
            continue
        grid, at = held
        flows = [flow for flow in plan.flows if flow.group is None]
        ends = [(flow, "sender") for flow in flows if flow.sender == node]
        ends += [(flow, "receiver") for flow in flows if flow.receiver == node]
        for flow, role in ends:
            yield from _columns(_PROCESSOR, {"flow": str(flow.id), "role": role}, grid, part, at)
