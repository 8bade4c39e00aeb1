# SPDX-License-Identifier: Apache-2.0
"""Rows of what held flows back: shares of each flow, and of each group over the time of all its connections."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from howdah.held import NOTABLE_SHARE, ORDINARY, RECEIVE_WINDOW, HeldBy
from howdah.measure.exit import Exit
from howdah.measure.held import Holding, holding
from howdah.measure.interval import receive_kinds, span_ns
from howdah.measure.measured import Measured
from howdah.measure.restart import Restart, restarts_of, window_cuts
from howdah.measure.row import Sheet, Value
from howdah.measure.trace import SECOND_NS, FlowTrace
from howdah.measure.transaction import thinks_ns
from howdah.plan.plan import Flow
from howdah.record.agent import FlowRecord

_NO_ACK = "no ACK of it was traced while it could send"
_NOT_HELD = "no receive window held it back"
_NO_WINDOW = "the window that the receiver offered was not traced"
_SAME_SHARE = 0.05  # of a flow's time: trace and kernel agree on the receive window within so much
_NO_RESTART = "the window did not restart"


@dataclass
class Together:
    """What is known of the connections of a group."""

    holdings: list[Holding] = field(default_factory=list)
    largest_bytes: list[int] = field(default_factory=list)
    restarts: list[Restart] = field(default_factory=list)


def is_told(flow: Flow) -> bool:
    """Whether a kernel reports what held the flow's sender back: it is TCP, and not a stack of its own."""
    return flow.is_tcp and flow.sender_stack is None


def held_rows(sheet: Sheet, data: Measured, trace: FlowTrace, found: Exit | None) -> None:
    """All rows of a flow of no group; ``window_cuts`` are those from its exit ``found`` on.

    ``receive_window_limited_s``: ``tcpi_rwnd_limited`` at the last reading.
    """
    if not is_told(trace.flow):
        return
    together = Together()
    collect(together, data, trace, FlowRecord(id=trace.flow.id))
    name = {"algorithm": trace.flow.algorithm}
    together_rows(sheet, trace.flow.id, together, **name)
    _compare(sheet, data, trace)
    why = "the flow did not leave slow start" if len(trace) else _NO_ACK
    info = data.info[trace.flow.id]
    limited_s = int(info["rwnd_limited_us"].max()) / 1e6 if info.has("rwnd_limited_us") else None
    untold = "tcp_info was not read, or does not tell it"
    sheet.add(trace.flow.id, "receive_window_limited_s", limited_s, untold, **name)
    cuts = None if found is None else window_cuts(trace, found.time_ns)
    sheet.add(trace.flow.id, "window_cuts", cuts, why, **name)


def _compare(sheet: Sheet, data: Measured, trace: FlowTrace) -> None:
    """Time with a full receive window: by the trace, and by the sender's kernel, which counts in jiffies."""
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


def collect(together: Together, data: Measured, trace: FlowTrace, record: FlowRecord) -> None:
    """Add a flow, or a connection of a group with the agent's record of it."""
    if not is_told(trace.flow):
        return
    shift_ns = trace.flow.reverse_delay_us * 1000
    thinks = [(begin + shift_ns, end + shift_ns) for begin, end in thinks_ns(record)]
    info = data.info[trace.flow.id]
    divided = holding(trace, info, data.capacity, data.link_busy, data.way_back_busy, thinks)
    together.holdings += [] if divided is None else [divided]
    together.largest_bytes += [int(trace.snd_wnd.max())] if trace.snd_wnd.size else []
    together.restarts += restarts_of(trace)


def together_rows(sheet: Sheet, flow: int | None, together: Together, **name: Any) -> None:
    """The shares, ``held_back_by`` and ``held_back_share``, the windows, and the restarts."""

    def add(metric: str, value: Value, why: str) -> None:
        sheet.add(flow, metric, value, why, **name)

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
    """Of the time in which the client did not think, which no sender can use; think time itself of the whole."""
    rest = sum(share for kind, share in shares.items() if kind is not HeldBy.THINK)
    if not rest:
        return shares
    return {kind: share if kind is HeldBy.THINK else share / rest for kind, share in shares.items()}


def held_most(shares: dict[HeldBy, float]) -> HeldBy:
    """The kind with the largest share beside those that are ordinary (howdah/held.py); one of these where none has
    more than :data:`NOTABLE_SHARE` of the time in which the client did not think."""
    other = max((kind for kind in shares if kind not in ORDINARY), key=lambda kind: shares[kind])
    notable = without_think(shares)[other] > NOTABLE_SHARE
    return other if notable else max(shares, key=lambda kind: shares[kind])
