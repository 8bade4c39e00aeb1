# SPDX-License-Identifier: Apache-2.0
"""What each receiver did: how it acknowledged, which gaps it reported, and which window it offered.

The source is the capture at the receiver's interface (the table ``segment``), so receivers on any system are measured
by the packets they send.

A train of slow start consists of the packets of a round as they reach the receiver, and of their ACKs as they reach the
sender. Terms are those of section 4.2.1 of the HyStart paper: Delta(N) is the time from the first to the last packet of
a train, Lambda(N) from its first ACK to its last. Algorithm 1 of the paper regards ACKs 2 ms apart as spaced.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from howdah.measure.capacity import bdp_packets
from howdah.measure.conversation import Conversation, conversation, quantile_us, shares
from howdah.measure.exit_rows import find_startup
from howdah.measure.measured import Measured
from howdah.measure.rounds import rounds
from howdah.measure.row import Sheet, Value
from howdah.measure.trace import SECOND_NS, FlowTrace, Integers, Reals
from howdah.plan.path import Path
from howdah.plan.plan import BACKGROUND, Flow
from howdah.record import table as store
from howdah.record.directory import RunDirectory

_RECEIVER = "receiver"
_SYN = 2
_TIME_STAMPS_BYTES = 12  # the option and its padding
_EDGES = (1, 2, 3, 9)  # upper edges of the histogram's bins, in data segments per ACK
_NO_ACKS = "the receiver sent no ACK of data in its capture"
_NOTHING_FINE = "the receiver sent no ACK while nothing was missing"
_NO_HOLES = "no data arrived beyond a gap"
_NO_TRAIN = "no round of slow start was over by the exit, or packets of the last one were lost"
_NO_WINDOW = "the capture has no window of the receiver, or not the handshake that says its scale"

Add = Callable[[str, Value, str], None]  # metric, value, reason if there is none


def receiver_rows(sheet: Sheet, directory: RunDirectory, data: Measured) -> None:
    """Add the rows of every measured flow whose receiver was captured; none if no packets were captured.

    Of ACKs sent while nothing is missing: ``segments_per_ack`` = data segments that arrived since the ACK before, their
    mean; ``most_segments_per_ack``; and the shares of ACKs of none, one, two, 3 to 8 and more segments.
    ``ack_delay_*_us``: from the arrival of an expected segment to the ACK that covers it. Of ACKs sent while data is
    missing: ``sack_blocks_per_ack`` and ``most_sack_blocks``. ``holes``, and ``hole_repair_*_s``: from the first
    duplicate ACK or SACK of a hole to the cumulative ACK that passes it. The window: ``window_rows``; trains of slow
    start: ``train_rows``.
    """
    plan = data.plan
    captured = {place.partition(":")[0] for place in plan.collect.pcap}
    flows = [flow for flow in plan.flows if flow.receiver in captured and _is_measured(flow)]
    if not flows or not directory.table("segment").exists():
        return
    table = store.read(directory, "segment")
    for flow in flows:
        syn = receivers_syn(table, flow.id)
        seen = conversation(table, flow.id, _RECEIVER, segment_bytes(syn, plan.path))
        trace = data.trace(flow)
        found = find_startup(data, trace).found
        exit_ns = trace.stop_ns if found is None else found.time_ns
        add = partial(_add, sheet, flow)
        add("receiver_options", syn.text() if syn else None, "the receiver's SYN is not in its capture")
        ack_rows(add, seen)
        hole_rows(add, seen)
        window_rows(add, seen, trace, exit_ns, partial(bdp_packets, data.capacity, flow, plan.path))
        train_rows(add, seen, trace, exit_ns)


def _add(sheet: Sheet, flow: Flow, name: str, value: Value, why: str) -> None:
    sheet.add(flow, name, value, why)


def _is_measured(flow: Flow) -> bool:
    return flow.role != BACKGROUND and flow.group is None and flow.datagram_bytes is None


@dataclass(frozen=True)
class Syn:
    """The options of a SYN."""

    mss_bytes: int | None
    window_scale_bits: int | None
    sack_permitted: bool | None
    time_stamps: bool | None

    def text(self) -> str:
        """Return the options as found on the wire: ``MSS 1460, window scale 7, SACK, time stamps``, or ``none``."""
        words = [f"MSS {self.mss_bytes}"] if self.mss_bytes is not None else []
        words += [f"window scale {self.window_scale_bits}"] if self.window_scale_bits is not None else []
        words += ["SACK"] * bool(self.sack_permitted) + ["time stamps"] * bool(self.time_stamps)
        return ", ".join(words) or "none"


def first_syn(table: pa.Table) -> Syn | None:
    """Return the SYN in the first row."""
    found = table.select([each.name for each in fields(Syn)]).slice(0, 1).to_pylist()
    return Syn(**found[0]) if found else None


def receivers_syn(table: pa.Table, flow: int) -> Syn | None:
    """Return the receiver's own SYN in its capture."""
    of_flow = pc.and_(pc.equal(table["flow"], flow), pc.equal(table["end"], _RECEIVER))
    sent = pc.and_(pc.equal(table["sent_by"], _RECEIVER), pc.greater(pc.bit_wise_and(table["flags"], _SYN), 0))
    return first_syn(table.filter(pc.and_(of_flow, sent)))


def segment_bytes(syn: Syn | None, path: Path) -> int:
    """Return the data in a full segment, which is larger without time stamps."""
    return path.mss_bytes if syn is None or syn.time_stamps else path.mss_bytes + _TIME_STAMPS_BYTES


def ack_rows(add: Add, seen: Conversation) -> None:
    """Add how it acknowledged while nothing was missing."""
    counts = seen.waited_for[~seen.missing]
    why = _NOTHING_FINE if seen.acks.order.size else _NO_ACKS
    there = counts.size > 0
    add("acks_sent_packets", seen.acks.order.size, "")
    add("segments_per_ack", float(counts.mean()) if there else None, why)
    add("most_segments_per_ack", int(counts.max()) if there else None, why)
    bins = shares(counts, _EDGES) if there else None
    for metric, number in (
        ("acks_of_none_share", 0),
        ("acks_of_one_share", 1),
        ("acks_of_two_share", 2),
        ("acks_of_3_to_8_share", 3),
        ("acks_of_more_share", 4),
    ):
        add(metric, None if bins is None else float(bins[number]), why)
    why = "no segment arrived in order and was acknowledged"
    for metric, share in (("ack_delay_median_us", 0.5), ("ack_delay_p95_us", 0.95), ("ack_delay_most_us", 1.0)):
        add(metric, quantile_us(seen.delays_ns, share), why)


def hole_rows(add: Add, seen: Conversation) -> None:
    """Add which gaps it reported, and how long they lasted."""
    blocks = seen.acks.sack_blocks[seen.missing]
    add("sack_blocks_per_ack", float(blocks.mean()) if blocks.size else None, _NO_HOLES)
    add("most_sack_blocks", int(blocks.max()) if blocks.size else None, _NO_HOLES)
    add("holes", seen.holes.order.size, "")
    why = "no hole was repaired" if seen.holes.order.size else _NO_HOLES
    for metric, share in (("hole_repair_median_s", 0.5), ("hole_repair_most_s", 1.0)):
        time_us = quantile_us(seen.repairs_ns, share)
        add(metric, None if time_us is None else time_us / 1e6, why)


def window_rows(
    add: Add, seen: Conversation, trace: FlowTrace, exit_ns: int, bdp_at: Callable[[Integers], Reals]
) -> None:
    """Add the window it offered, in BDP of the flow: whole segments over :func:`howdah.measure.capacity.bdp_packets`.

    ``offered_window_least_bdp``: the smallest until the exit from slow start; ``offered_window_most_bdp``: the largest.
    ``offered_window_growth``: the largest over that of its first ACK of data; 1 without tuning.
    ``offered_window_bdp_time_s``: from the flow's start to the first ACK that offers a BDP.

    ``autotuning_lag_s``: Linux grows the window so that it offers twice what the application read in the last round
    trip (``tcp_rcv_space_adjust``), because a sender in slow start sends twice as much in the next one. After each ACK
    of slow start 2 · cwnd · MSS is needed. The lag is the longest time from such an ACK until the receiver first offers
    as much, at most until the exit; 0 if it always did.
    """
    known = seen.acks.window_bytes >= 0
    window, time_ns = seen.acks.window_bytes[known], seen.acks.time_ns[known]
    bdp = bdp_at(time_ns)
    carries = bdp > 0
    offered = window[carries] / trace.mss_bytes / bdp[carries]
    early = offered[time_ns[carries] <= exit_ns]
    add("offered_window_least_bdp", float(early.min()) if early.size else None, _NO_WINDOW)
    add("offered_window_most_bdp", float(offered.max()) if offered.size else None, _NO_WINDOW)
    add("offered_window_growth", float(window.max() / window[0]) if window.size and window[0] else None, _NO_WINDOW)
    enough = np.flatnonzero(offered >= 1)
    reached = (int(time_ns[carries][enough[0]]) - trace.start_ns) / SECOND_NS if enough.size else None
    add("offered_window_bdp_time_s", reached, "the window never was a BDP" if window.size else _NO_WINDOW)
    known_start = window.size > 0 and len(trace) > 0
    why = _NO_WINDOW if not window.size else "no ACK of this flow was traced"
    add("autotuning_lag_s", _lag_ns(window, time_ns, trace, exit_ns) / SECOND_NS if known_start else None, why)


def _lag_ns(window: Integers, time_ns: Integers, trace: FlowTrace, exit_ns: int) -> int:
    after = np.concatenate([trace.cwnd[1:], trace.cwnd[-1:]])
    early = trace.time_ns <= exit_ns
    needed, since = 2 * after[early] * trace.mss_bytes, trace.time_ns[early]
    if not needed.size:
        return 0
    place = np.searchsorted(np.maximum.accumulate(window), needed)
    until = np.append(time_ns, exit_ns)[place]
    return max(0, int((np.minimum(until, exit_ns) - since).max()))


def train_rows(add: Add, seen: Conversation, trace: FlowTrace, exit_ns: int) -> None:
    """Add ``packet_train_us`` and ``ack_train_us`` of the last whole round of slow start, from first to last.

    ``lone_acks_packets``: ACKs of slow start that are more than 2 ms away from the one before and the one after;
    ``lone_ack_share``: their share of the ACKs of slow start.
    """
    train = last_train(trace, seen, exit_ns)
    add("packet_train_us", None if train is None else train.packets_ns / 1000, _NO_TRAIN)
    add("ack_train_us", None if train is None else train.acks_ns / 1000, _NO_TRAIN)
    lone, acks = lone_acks(trace, exit_ns)
    add("lone_acks_packets", lone if acks else None, _NO_ACKS)
    add("lone_ack_share", lone / acks if acks else None, _NO_ACKS)


SPACED_NS = 2_000_000


@dataclass(frozen=True)
class Train:
    """The ``packets`` of a round, and the times (ns) in which they arrived and were acknowledged."""

    packets: int
    packets_ns: int
    acks_ns: int


def last_train(trace: FlowTrace, seen: Conversation, exit_ns: int) -> Train | None:
    """Return the train of the last round that was acknowledged by the exit; None without such a round of two packets.

    ``seen`` is the capture at the receiver. None also if bytes of the round were sent twice.
    """
    starts = rounds(trace)
    ended = np.flatnonzero(trace.time_ns[starts[1:]] <= exit_ns)
    if not ended.size:
        return None
    first, behind = int(starts[ended[-1]]), int(starts[ended[-1] + 1])
    begin, end = int(trace.snd_una[first]), int(trace.snd_una[behind])
    inside = np.flatnonzero((seen.data.begin >= begin) & (seen.data.begin < end))
    if inside.size < 2 or np.unique(seen.data.begin[inside]).size < inside.size:
        return None
    arrived = seen.data.time_ns[inside]
    acks = trace.time_ns[first:behind]
    return Train(int(seen.data.segments[inside].sum()), int(arrived[-1] - arrived[0]), int(acks[-1] - acks[0]))


def lone_acks(trace: FlowTrace, exit_ns: int) -> tuple[int, int]:
    """Return the ACKs until the exit that are more than 2 ms away from both neighbours, and all ACKs until then."""
    times = trace.time_ns[trace.time_ns <= exit_ns]
    apart = np.concatenate([[True], np.diff(times) > SPACED_NS, [True]])
    return int((apart[:-1] & apart[1:]).sum()) if times.size else 0, int(times.size)
