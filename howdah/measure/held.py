# SPDX-License-Identifier: Apache-2.0
"""What held a flow back at every instant of its life, from each ACK and the readings of tcp_info and the queues.

Between two ACKs nothing opens a window. The state at the second one (``tcp_probe`` records it before the ACK is
processed) is therefore the limit that the sender met in between, and each such interval gets one kind:

1. Nothing was outstanding when it began: the sender waited for its application, up to a round trip before its end; the
   part that falls into a client's pause between two requests is think time.
2. A retransmission timer expired in it, or data that was outstanding then is not yet acknowledged.
3. The receive window is full, and the congestion window is not (as in ``tcp_write_xmit``, which tests the latter
   first); ``receive_flags`` divides it.
4. Both windows have room, and the kernel counts a full send buffer.
5. The flow runs at the path's rate: 90 % of the whole capacity in the last round trip, or at least half of its fair
   share of a busy link.
6. The reverse path is busy.
7. Losses are repaired.
8. The congestion window is full: after a restart that followed an idle time, or a cut, until it is back at its largest
   size so far; else it grows beyond that.
9. There is room: unsent data wait and leave at the pacing rate, or there are none. The last flight of a transfer, or
   of an answer, is held back by what held back the flight before it.

An interval that fits none is ``unknown``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from howdah.held import NOTABLE_SHARE, ORDINARY, RECEIVE_WINDOW, HeldBy
from howdah.measure.capacity import FairCapacity
from howdah.measure.cut import LOSS
from howdah.measure.exit import Exit
from howdah.measure.group import thinks_ns
from howdah.measure.interval import (
    GROWS,
    Flags,
    Intervals,
    has_unsent,
    intervals_of,
    is_finite,
    nearest,
    receive_flags,
    receive_full,
    receive_kinds,
    span_ns,
    window_full,
)
from howdah.measure.measured import Measured
from howdah.measure.rounds import Restart, fell_idle, restarts_of, window_cuts
from howdah.measure.row import GroupOf, Sheet, Value
from howdah.measure.sampled import Busy, Samples
from howdah.measure.trace import SECOND_NS, FlowTrace, Integers, Reals
from howdah.plan.plan import Flow
from howdah.record.agent import FlowRecord

FULL_SHARE = 0.9  # least share of the capacity of a flow at the path's rate, as in time_to_90_percent_s
FAIR_SHARE = 0.5  # the same on a busy link, of the fair share: a new flow has less
PACED = (0.7, 1.15)  # range of what a paced sender sends in a round trip, relative to its pacing rate
_LEAST_TIMEOUT_NS = 200_000_000  # TCP_RTO_MIN
_KINDS = tuple(HeldBy)
_CODE = {kind: code for code, kind in enumerate(_KINDS)}
_CARRIED = len(_KINDS)  # code of an interval that takes the kind of the one before


@dataclass(frozen=True)
class Holding:
    """Seconds of each kind, out of ``span_s`` in which the flow could send or waited for its last ACK.

    ``window_bytes``: the largest receive window that held it back; None if none did.
    """

    seconds: dict[HeldBy, float]
    span_s: float
    window_bytes: int | None = None

    def share(self, kind: HeldBy) -> float:
        return self.seconds.get(kind, 0.0) / self.span_s


def holding(
    trace: FlowTrace,
    info: Samples,
    capacity: FairCapacity,
    link: Busy,
    way_back: Busy,
    thinks_ns: list[tuple[int, int]],
) -> Holding | None:
    """Divide the life of a flow; ``thinks_ns`` are its client's pauses. None without an ACK during its life."""
    each = intervals_of(trace, info)
    if each is None:
        return None
    idle = _idle_ns(each, trace.flow)
    code = _kinds(trace, info, each, capacity, link, way_back)
    active = each.time - each.begin - idle
    seconds = np.bincount(code, weights=active, minlength=len(_KINDS))[: len(_KINDS)]
    thought = _within(thinks_ns, each.begin, each.begin + idle)
    seconds[_CODE[HeldBy.THINK]] += thought.sum()
    seconds[_CODE[HeldBy.APPLICATION]] += (idle - thought).sum()
    tail = span_ns(trace)[1] - int(each.time[-1])
    seconds[_tail_kind(trace, each, code, tail)] += tail
    held = np.isin(code, [_CODE[kind] for kind in RECEIVE_WINDOW])
    held &= active > 0
    window = int(each.snd_wnd[held].max()) if each.snd_wnd is not None and held.any() else None
    return Holding(
        {kind: float(seconds[_CODE[kind]]) / SECOND_NS for kind in _KINDS if seconds[_CODE[kind]] > 0},
        float(seconds.sum()) / SECOND_NS,
        window,
    )


def _idle_ns(each: Intervals, flow: Flow) -> Integers:
    """Return how long each interval began with nothing outstanding, up to a round trip before an ACK at its end."""
    lasts = each.time - each.begin
    nothing = each.una >= each.nxt_before
    waits = np.where(each.flight > 0, np.maximum(lasts - each.window_ns, 0), lasts)
    idle = np.where(nothing, waits, 0)
    if not is_finite(flow):
        idle[0] = 0 if each.flight[0] > 0 else idle[0]
    return np.asarray(idle)


def _within(spans_ns: list[tuple[int, int]], begin: Integers, end: Integers) -> Reals:
    """Return how much of each interval is in one of the spans, which are sorted and disjoint."""
    if not spans_ns:
        return np.zeros(begin.size)
    edges = np.array(spans_ns, dtype=np.float64)
    until = np.cumsum(edges[:, 1] - edges[:, 0])
    total = np.column_stack([np.concatenate([[0.0], until[:-1]]), until]).ravel()
    edges = edges.ravel()
    return np.asarray(np.interp(end, edges, total) - np.interp(begin, edges, total))


def _kinds(
    trace: FlowTrace, info: Samples, each: Intervals, capacity: FairCapacity, link: Busy, way_back: Busy
) -> Integers:
    """Return the kind of each interval, apart from idle time."""
    unsent = has_unsent(trace, info, each)
    full = window_full(each, unsent)
    found = receive_full(each, unsent)
    limited = np.zeros_like(full) if found is None else found
    receive = receive_flags(each, limited)
    buffer = _send_buffer(info, each, unsent) & ~full & ~limited & ~each.repairs
    busy = full | each.repairs | unsent
    paced = unsent & _paced(trace, info, each)
    ending = np.full(full.size, True) if is_finite(trace.flow) else each.nxt_before >= each.nxt[-1]
    cases: list[tuple[Flags, Integers | int]] = [
        (_timeouts(info, each), _CODE[HeldBy.TIMEOUT]),
        *((receive[kind], _CODE[kind]) for kind in RECEIVE_WINDOW),
        (buffer, _CODE[HeldBy.SEND_BUFFER]),
        (busy & _at_rate(trace, info, each, capacity, link), _CODE[HeldBy.BANDWIDTH]),
        ((full | unsent) & way_back.at(each.time), _CODE[HeldBy.WAY_BACK]),
        (each.repairs & ~(paced & ~full), _CODE[HeldBy.RECOVERY]),
        (full, _window_codes(each)),
        (paced, _CODE[HeldBy.PACING]),
        (ending & ~unsent, _CARRIED),
        (~unsent, _CODE[HeldBy.APPLICATION]),
    ]
    code = np.select([where for where, _ in cases], [kind for _, kind in cases], _CODE[HeldBy.UNKNOWN])
    return _carry(np.asarray(code))


def _carry(code: Integers) -> Integers:
    known = np.maximum.accumulate(np.where(code != _CARRIED, np.arange(code.size), -1))
    return np.where(known >= 0, code[np.maximum(known, 0)], _CODE[HeldBy.APPLICATION])


def _window_codes(each: Intervals) -> Integers:
    """Return the kinds of a full congestion window: restart, cut, or growth."""
    fell = np.concatenate([[False], each.cwnd[1:] < each.cwnd[:-1]])
    last = np.maximum.accumulate(np.where(fell, np.arange(fell.size), -1))
    restarted = (last >= 0) & fell_idle(each.cwnd, each.una, each.nxt)[np.maximum(last, 0)]
    below = each.cwnd < np.maximum.accumulate(each.cwnd)
    kinds = np.where(restarted, _CODE[HeldBy.IDLE_RESTART], _CODE[HeldBy.WINDOW_CUT])
    return np.where(below, kinds, _CODE[HeldBy.CONGESTION_WINDOW])


def _timeouts(info: Samples, each: Intervals) -> Flags:
    """Return the intervals in which a timer expired, and those until everything outstanding then is acknowledged.

    A timer expired in a silence of at least 200 ms and a smoothed round trip with data outstanding, after which the
    window is less than half, or near which tcp_info shows the state Loss.
    """
    lasts = each.time - each.begin
    silent = (lasts >= _patience_ns(each)) & (each.una < each.nxt_before)
    found = np.zeros(lasts.size, dtype=bool)
    if info.has("ca_state"):
        lost = info.time_ns[info["ca_state"] == LOSS]
        near = np.searchsorted(each.time, lost)
        found[near[near < found.size]] = True
        in_loss = np.searchsorted(lost, each.time + each.window_ns) > np.searchsorted(lost, each.begin)
    else:
        in_loss = np.zeros(lasts.size, dtype=bool)
    before = np.concatenate([each.cwnd[:1], each.cwnd[:-1]])
    for at in np.flatnonzero(silent & (in_loss | (2 * each.cwnd < before))).tolist():
        until = int(np.searchsorted(each.una, each.nxt_before[at]))
        found[at : max(until, at + 1)] = True
    return found


def _patience_ns(each: Intervals) -> Integers:
    return each.window_ns + _LEAST_TIMEOUT_NS


def _tail_kind(trace: FlowTrace, each: Intervals, code: Integers, tail_ns: int) -> int:
    outstanding = int(each.nxt[-1]) > int(trace.una_after[-1])
    if outstanding and tail_ns >= int(_patience_ns(each)[-1]):
        return _CODE[HeldBy.TIMEOUT]
    return int(code[-1])


def _at_rate(trace: FlowTrace, info: Samples, each: Intervals, capacity: FairCapacity, link: Busy) -> Flags:
    begin = each.time - each.window_ns
    got = (trace.acked_bytes(each.time) - trace.acked_bytes(begin)).astype(np.float64)
    whole = capacity.carried_bytes(begin, each.time)
    share = np.maximum(got / np.maximum(whole, 1.0), _delivered_share(info, each, capacity))
    fair = capacity.fair_bytes(begin, each.time) / np.maximum(whole, 1.0)
    return np.asarray((share >= FULL_SHARE) | (link.at(each.time) & (share >= FAIR_SHARE * fair)))


def _delivered_share(info: Samples, each: Intervals, capacity: FairCapacity) -> Reals:
    """Return what SACK and ACKs show as delivered between the readings around each interval's end, over the capacity:
    in a recovery ``snd_una`` stands still while data arrive."""
    if len(info) < 2 or not info.has("delivered_packets"):
        return np.zeros(each.time.size)
    whole = capacity.carried_bytes(info.time_ns[:-1], info.time_ns[1:])
    delivered = np.diff(info["delivered_packets"]) * each.mss_bytes / np.maximum(whole, 1.0)
    return np.asarray(delivered[_reading(info, each.time)])


def _reading(info: Samples, time_ns: Integers) -> Integers:
    """Return the interval between two readings that contains each time."""
    return np.clip(np.searchsorted(info.time_ns, time_ns) - 1, 0, len(info) - 2)


def _send_buffer(info: Samples, each: Intervals, unsent: Flags) -> Flags:
    """Whether the kernel's count of a full send buffer grew between the readings around each interval's end, or as much
    is in flight as while it grew: the count begins only after new data were sent."""
    if len(info) < 2 or not info.has("sndbuf_limited_us"):
        return np.zeros(each.time.size, dtype=bool)
    counted = (np.diff(info["sndbuf_limited_us"]) > 0)[_reading(info, each.time)]
    if not counted.any():
        return np.asarray(counted)
    return np.asarray(counted | (~unsent & (each.flight * GROWS >= np.median(each.flight[counted]))))


def _paced(trace: FlowTrace, info: Samples, each: Intervals) -> Flags:
    """Whether the data sent in the last round trip fit the pacing rate of the nearest reading."""
    if not info.has("pacing_rate_bytes_per_second"):
        return np.zeros(each.time.size, dtype=bool)
    rate = info["pacing_rate_bytes_per_second"][nearest(info.time_ns, each.time)].astype(np.float64)
    record = np.searchsorted(trace.time_ns, each.time - each.window_ns, side="right") - 1
    left = each.nxt - np.where(record >= 0, trace.snd_nxt[np.maximum(record, 0)], 0)
    part = left / np.maximum(rate * each.window_ns / SECOND_NS, 1.0)
    return np.asarray((part >= PACED[0]) & (part <= PACED[1]))


_NO_ACK = "no ACK of it was traced while it could send"
_NOT_HELD = "no receive window held it back"
_NO_WINDOW = "the window that the receiver offered was not traced"
_SAME_SHARE = 0.05  # tolerance between trace and kernel about the receive window, as a share of the flow's time
_NO_RESTART = "the window did not restart"


@dataclass
class GroupHoldings:
    """The collected results of the connections of a group."""

    holdings: list[Holding] = field(default_factory=list)
    largest_bytes: list[int] = field(default_factory=list)
    restarts: list[Restart] = field(default_factory=list)


def has_kernel_report(flow: Flow) -> bool:
    """Whether a kernel reports what held back the flow's sender: it is TCP, and not a stack of its own."""
    return flow.is_tcp and flow.sender_stack is None


def held_rows(sheet: Sheet, data: Measured, trace: FlowTrace, found: Exit | None) -> None:
    """Add all rows of a flow outside of groups; ``window_cuts`` are those from its exit ``found`` on.

    ``receive_window_limited_s``: ``tcpi_rwnd_limited`` at the last reading.
    """
    if not has_kernel_report(trace.flow):
        return
    together = GroupHoldings()
    collect(together, data, trace, FlowRecord(id=trace.flow.id))
    holding_rows(sheet, trace.flow, together)
    _compare(sheet, data, trace)
    why = "the flow did not leave slow start" if len(trace) else _NO_ACK
    info = data.info[trace.flow.id]
    limited_s = int(info["rwnd_limited_us"].max()) / 1e6 if info.has("rwnd_limited_us") else None
    untold = "tcp_info was not read, or does not tell it"
    sheet.add(trace.flow, "receive_window_limited_s", limited_s, untold)
    cuts = None if found is None else window_cuts(trace, found.time_ns)
    sheet.add(trace.flow, "window_cuts", cuts, why)


def _compare(sheet: Sheet, data: Measured, trace: FlowTrace) -> None:
    """Cross-check the time with a full receive window: by the trace, and by the sender's kernel, in jiffies."""
    info = data.info[trace.flow.id]
    begin, end = span_ns(trace)
    counted_us = info.growth("rwnd_limited_us", begin, end)
    if counted_us is None or not trace.snd_wnd.size:
        return
    traced_s = sum(receive_kinds(trace, info).values(), 0.0)
    gap_s = float(np.diff(info.time_ns).max()) / SECOND_NS
    tolerance_s = _SAME_SHARE * (end - begin) / SECOND_NS + 2 * gap_s
    sheet.cross_check(
        trace.flow.id,
        "held_receive_window_share",
        {"tcp_probe": traced_s, "tcp_info": counted_us / 1e6},
        abs(traced_s - counted_us / 1e6) <= tolerance_s,
        f"the trace and the kernel's count of time with a full receive window differ by more than {tolerance_s:.3g} s",
    )


def collect(together: GroupHoldings, data: Measured, trace: FlowTrace, record: FlowRecord) -> None:
    """Add a flow, or a connection of a group with its agent's record."""
    if not has_kernel_report(trace.flow):
        return
    shift_ns = trace.flow.reverse_delay_us * 1000
    thinks = [(begin + shift_ns, end + shift_ns) for begin, end in thinks_ns(record)]
    info = data.info[trace.flow.id]
    divided = holding(trace, info, data.capacity, data.link_busy, data.way_back_busy, thinks)
    together.holdings += [] if divided is None else [divided]
    together.largest_bytes += [int(trace.snd_wnd.max())] if trace.snd_wnd.size else []
    together.restarts += restarts_of(trace)


def holding_rows(sheet: Sheet, of: Flow | GroupOf, together: GroupHoldings) -> None:
    """Add the shares, ``held_back_by`` and ``held_back_share``, the windows, and the restarts."""

    def add(metric: str, value: Value, why: str) -> None:
        sheet.add(of, metric, value, why)

    shares = _shares(together.holdings)
    for kind in HeldBy:
        add(f"held_{kind.stem}_share", None if shares is None else shares[kind], _NO_ACK)
    window = None if shares is None else sum(shares[kind] for kind in RECEIVE_WINDOW)
    add("held_receive_window_share", window, _NO_ACK)
    most = None if shares is None else held_most(shares)
    add("held_back_by", None if most is None else most.value, _NO_ACK)
    add("held_back_share", None if most is None or shares is None else without_think(shares)[most], _NO_ACK)
    windows = [each.window_bytes for each in together.holdings if each.window_bytes is not None]
    add("held_window_bytes", max(windows, default=None), _NOT_HELD)
    add("receive_window_peak_bytes", max(together.largest_bytes, default=None), _NO_WINDOW)
    add("idle_restarts", len(together.restarts) if shares is not None else None, _NO_ACK)
    for side in ("before", "after"):
        sizes = [getattr(each, f"{side}_packets") for each in together.restarts]
        add(f"idle_restart_{side}_packets", float(np.median(sizes)) if sizes else None, _NO_RESTART)


def _shares(holdings: list[Holding]) -> dict[HeldBy, float] | None:
    span_s = sum(each.span_s for each in holdings)
    if not span_s:
        return None
    return {kind: sum(each.seconds.get(kind, 0.0) for each in holdings) / span_s for kind in HeldBy}


def without_think(shares: dict[HeldBy, float]) -> dict[HeldBy, float]:
    """Return shares of the time without think time, which no sender can use; that of think time of all time."""
    rest = sum(share for kind, share in shares.items() if kind is not HeldBy.THINK)
    if not rest:
        return shares
    return {kind: share if kind is HeldBy.THINK else share / rest for kind, share in shares.items()}


def held_most(shares: dict[HeldBy, float]) -> HeldBy:
    """Return the kind with the largest share, apart from the ordinary ones (howdah/held.py); an ordinary one if no
    other exceeds :data:`NOTABLE_SHARE` of the time without the client's think time."""
    other = max((kind for kind in shares if kind not in ORDINARY), key=lambda kind: shares[kind])
    notable = without_think(shares)[other] > NOTABLE_SHARE
    return other if notable else max(shares, key=lambda kind: shares[kind])
