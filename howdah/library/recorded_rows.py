# SPDX-License-Identifier: Apache-2.0
"""Tables of what was estimated from recorded flows: paths, measures, exits, rounds, round trips, legs.

Each table begins with the same axes as those of runs; the experiment is ``recorded`` and the run is the file. Measures
have the same names as in runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from howdah.explain.estimate import Estimate, absent
from howdah.explain.explained import Explained
from howdah.explain.read import Read
from howdah.explain.seen import Seen
from howdah.explain.words import EstimateShape, shown_joined
from howdah.library.axis import EXPERIMENT, TEXT, table
from howdah.library.result import Types, exit_measures
from howdah.metric import known_metrics, unit_by_suffix
from howdah.record.model import Scalar
from howdah.record.table import AXES, FLOW_NAME

RECORDED = "recorded"
_ROUNDS = {"round": pa.int64(), "time_ns": pa.int64(), "inflight_packets": pa.float64(), "sent_packets": pa.float64()}
_LEG_TEXTS = ("near", "far", "loss_by", "loss_words")
_LEG_NUMBERS = (
    "packets", "lost_packets", "unseen_packets", "acks", "lost_acks", "queue_most_us", "queue_back_most_us",
    "one_way_us", "clock_offset_us", "clock_skew_ppm",
)  # fmt: skip


def axis_columns() -> Types:
    return {EXPERIMENT: TEXT, **dict.fromkeys(AXES, TEXT), "repetition": pa.int64()}


def _axes_of(flow: Explained) -> dict[str, Scalar]:
    return {EXPERIMENT: RECORDED, "run": flow.file, "algorithm": flow.algorithm[0] if flow.algorithm else None}


def _rows_of(read: Read) -> Iterator[tuple[Explained, dict[str, Scalar]]]:
    for number, flow in enumerate(read.flows, 1):
        yield flow, {**_axes_of(flow), "flow": number, FLOW_NAME: flow.name}


def _types(more: Types) -> Types:
    return {**axis_columns(), "flow": pa.int16(), FLOW_NAME: TEXT, **more}


def _table(rows: Sequence[Mapping[str, Scalar]], more: Types) -> pa.Table:
    units = {name: unit.name for name in more if (unit := unit_by_suffix(name)) is not None}
    return table(rows, _types(more), units)


def in_front(read: Read, found: pa.Table) -> pa.Table:
    """Prepend the axes and the flow's name to a table that has the column ``flow``."""
    number = np.asarray(found["flow"].to_numpy(), dtype=np.int64)
    own = _table([row for _, row in _rows_of(read)], {}).drop_columns(["flow"])
    taken = own.take(pa.array(number - 1))
    units = {name: unit.name for name in found.column_names if (unit := unit_by_suffix(name)) is not None}
    fields = [
        field.with_metadata({"unit": units[field.name]}) if field.name in units else field for field in found.schema
    ]
    return pa.Table.from_arrays([*taken.columns, *found.columns], schema=pa.schema([*taken.schema, *fields]))


def began_ns(seen: Seen) -> int:
    """The timestamp of a flow's first packet, the origin of its times."""
    return next((stamp for stamp in seen.syn_ns if stamp is not None), int(seen.sent.time_ns[0]))


def path_rows(read: Read) -> pa.Table:
    rows = []
    for flow, row in _rows_of(read):
        lost, size = flow.retransmitted_packets, flow.mss_bytes
        rows.append(
            {
                **row,
                "source": flow.source,
                "at": flow.at,
                "begins_ns": began_ns(flow.parts[0]) if flow.parts is not None else None,
                "duration_s": flow.duration_s,
                "rate_bits_per_second": flow.rate_bits_per_second.value,
                "rtt_us": flow.base_rtt_us.value,
                "buffer_bytes": flow.buffer_bytes.value,
                "bdp_packets": flow.bdp_packets,
                "loss_ratio": lost * size / flow.data_bytes if lost is not None and size and flow.data_bytes else None,
            }
        )
    types: Types = {"source": TEXT, "at": TEXT, "begins_ns": pa.int64(), "duration_s": pa.float64()}
    numbers = ("rate_bits_per_second", "rtt_us", "buffer_bytes", "bdp_packets", "loss_ratio")
    return _table(rows, types | dict.fromkeys(numbers, pa.float64()))


@dataclass(frozen=True)
class _Measure:
    """One measure: an interval, or a word."""

    name: str
    found: Estimate | str | None
    explanation: str | None = None  # how the word was found, or why it is missing


def _measures(flow: Explained) -> Iterator[_Measure]:
    leaves, none = flow.exit, flow.why_no_exit or "it does not show"
    yield _Measure("exit_time_s", _exact(leaves.time_s if leaves is not None else None, none))
    yield _Measure("exit_cwnd_packets", leaves.packets if leaves is not None else absent(none))
    yield _Measure("exit_cwnd_bdp", _of_bdp(flow, none))
    yield _Measure("exit_round", _exact(leaves.round if leaves is not None else None, none))
    cause = leaves.cause if leaves is not None else None
    yield _Measure("exit_cause", cause, leaves.evidence if leaves is not None else none)
    yield _Measure("inflight_peak_packets", flow.peak_packets)
    yield _Measure("overshoot_packets", flow.overshoot_packets)
    yield _Measure("round_growth", _exact(flow.growth, "no round grew"))
    yield _Measure("initial_flight_packets", _exact(flow.initial_window_packets, "the first flight does not show"))
    yield _Measure("retransmitted_packets", _exact(flow.retransmitted_packets, "no packets"))
    yield _Measure("spurious_packets", _exact(flow.spurious_packets, "no packets"))
    yield _Measure("late_packets", _exact(flow.late_packets, "no packets"))
    yield _Measure("lost_before_packets", _exact(flow.lost_before_packets, "no packets"))
    yield _Measure("loss_by", flow.loss_by, flow.loss_words or None)
    yield _Measure("timeouts", _exact(flow.timeouts, "the base round trip does not show"))
    yield _Measure("goodput_bits_per_second", _exact(flow.goodput_bits_per_second, ""))
    yield _Measure("min_rtt_us", flow.base_rtt_us)
    for name in ("rate_bits_per_second", "sender_interface_bits_per_second", "buffer_bytes", "delay_variation_us"):
        yield _Measure(name, getattr(flow, name))
    yield _Measure("receive_window_peak_bytes", _exact(flow.receive_window_most_bytes, "no SYN says its scale"))
    yield _Measure("segments_per_ack", _exact(flow.segments_per_ack, "no packets"))
    held = flow.held_back_by
    yield _Measure("held_back_by", held.value if held is not None else None, flow.unknown.get("held"))
    if flow.holding is not None:
        for kind in flow.holding.seconds:
            yield _Measure(kind.metric, _exact(flow.holding.share(kind), ""))


def _exact(value: float | None, reason: str) -> Estimate:
    return absent(reason) if value is None else Estimate(float(value))


def _of_bdp(flow: Explained, reason: str) -> Estimate:
    if flow.exit is None:
        return absent(reason)
    packets, bdp = flow.exit.packets.value, flow.bdp_packets
    return absent("the BDP does not show") if packets is None or not bdp else Estimate(packets / bdp)


def metric_rows(read: Read) -> pa.Table:
    rows = []
    for flow, row in _rows_of(read):
        for each in _measures(flow):
            word = each.found if isinstance(each.found, str) else None
            found = each.found if isinstance(each.found, Estimate) else Estimate(None)
            unit = unit_by_suffix(each.name)
            rows.append(
                {
                    **row,
                    "group": None,
                    "metric": each.name,
                    "value": found.value,
                    "text": word,
                    "unit": unit.name if unit is not None else None,
                    "why": found.reason or (each.explanation if word is None else None),
                    "low": found.low,
                    "high": found.high,
                    "how": found.how or (each.explanation if word is not None else None),
                }
            )
    types: Types = dict.fromkeys(("group", "metric", "text", "unit"), TEXT)
    types |= {"value": pa.float64(), "why": pa.string(), "low": pa.float64(), "high": pa.float64(), "how": pa.string()}
    order = ("group", "metric", "value", "text", "unit", "why", "low", "high", "how")
    return table(rows, _types({name: types[name] for name in order}))


def exit_rows(read: Read) -> pa.Table:
    """One row per flow that left slow start."""
    metrics = known_metrics()
    rows, there = [], set[str]()
    for flow, row in _rows_of(read):
        found = {each.name: each.found.value if isinstance(each.found, Estimate) else each.found
                 for each in _measures(flow) if each.name in exit_measures()}  # fmt: skip
        there |= set(found)
        if flow.exit is not None:
            rows.append({**row, **found})
    names = [name for name in exit_measures() if name in there]
    return _table(rows, {name: TEXT if metrics[name].is_text else pa.float64() for name in names})


def round_rows(read: Read) -> pa.Table:
    rows = []
    for flow, row in _rows_of(read):
        if flow.parts is None:
            continue
        seen, _, way, start = flow.parts
        for number, each in enumerate(start.rounds):
            numbers = {"round": number, "time_ns": each.time_ns - began_ns(seen)}
            flight = {"inflight_packets": each.flight_bytes / way.mss_bytes}
            rows.append({**row, **numbers, **flight, "sent_packets": each.sent_bytes / way.mss_bytes})
    return _table(rows, _ROUNDS)


def sample_rows(read: Read) -> pa.Table:
    parts = []
    types: Types = {"time_ns": pa.int64(), "rtt_us": pa.float64(), "queue_us": pa.float64()}
    schema = pa.schema({"flow": pa.int16(), **types})
    for number, flow in enumerate(read.flows, 1):
        if flow.parts is None:
            continue
        seen, trips, way, _ = flow.parts
        columns = [
            pa.array(np.full(trips.ack.size, number), pa.int16()),
            pa.array(way.time_ns[trips.ack] - began_ns(seen)),
            pa.array(trips.rtt_ns / 1e3),
            pa.array(trips.queue_ns / 1e3),
        ]
        parts.append(pa.Table.from_arrays(columns, schema=schema))
    return in_front(read, pa.concat_tables(parts) if parts else schema.empty_table())


def leg_rows(read: Read) -> pa.Table:
    """One row per leg (the path between two adjacent taps); the bounds of estimates are in ``_low`` and ``_high``."""
    rows = []
    for each in read.joined:
        for leg in shown_joined(each).legs:
            row: dict[str, Scalar] = {EXPERIMENT: RECORDED, "run": leg.near, FLOW_NAME: each.name}
            row |= {name: getattr(leg, name) for name in _LEG_TEXTS}
            for name in _LEG_NUMBERS:
                value = getattr(leg, name)
                if isinstance(value, EstimateShape):
                    row |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high}
                else:
                    row[name] = value
            rows.append(row)
    ends = [f"{name}_{end}" for name in ("one_way_us", "clock_offset_us", "clock_skew_ppm") for end in ("low", "high")]
    types: Types = dict.fromkeys(_LEG_TEXTS, TEXT) | dict.fromkeys((*_LEG_NUMBERS, *ends), pa.float64())
    return _table(rows, types).drop_columns(["flow"])
