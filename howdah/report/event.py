# SPDX-License-Identifier: Apache-2.0
"""The events that slow-start modules reported, in words and in numbers with units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc

from howdah.measure.cause import BBR_DRAIN, OWN_CUT, OWN_THRESHOLD, PROBE_RTT, UNKNOWN
from howdah.measure.limit import APPLICATION, RECEIVE_WINDOW, SEND_BUFFER
from howdah.number import duration, rate, significant
from howdah.plan.plan import Flow
from howdah.record.result import Run
from howdah.record.sample import shown_flows
from howdah.record.schema import INFINITE_SSTHRESH, Reason, event, reason
from howdah.report.ackwindow import flow_start_ns

# Causes that no module reports; howdah.measure.cause infers them.
_OTHER_CAUSES = {
    OWN_CUT: "the algorithm cut its own window while TCP was not in recovery",
    OWN_THRESHOLD: "the window reached a threshold that the algorithm had set",
    BBR_DRAIN: "the delivery rate stopped growing for three rounds",
    PROBE_RTT: "BBR probed for its minimum RTT and did not return to its start-up",
    RECEIVE_WINDOW: "no detector acted; the receive window held the flow back",
    SEND_BUFFER: "no detector acted; the send buffer held the flow back",
    APPLICATION: "no detector acted; the application had nothing to send",
    UNKNOWN: "no module, counter or window cut shows why",
}
_MOST_ROWS = 100


@dataclass(frozen=True)
class EventRow:
    """One event in words. ``time_ns`` counts from the epoch, ``after_start_s`` from the flow's start."""

    flow: str
    time_ns: int
    after_start_s: float
    event: str
    why: str
    quantity: str
    threshold: str
    cwnd: int
    ssthresh: str
    round: int | None
    min_rtt: str
    is_exit: bool

    @property
    def number(self) -> str:
        """The number that decided, against the number it was compared with."""
        return f"{self.quantity} against {self.threshold}" if self.quantity and self.threshold else self.quantity

    @property
    def label(self) -> str:
        """The whole event in one line."""
        why = f", {self.why}" if self.why else ""
        number = f": {self.number}" if self.number else ""
        return f"{self.event}{why}{number}"


@dataclass(frozen=True)
class EventTable:
    """The events of a run for its table; ``left_out`` counts those beyond the first hundred of each flow."""

    run: str
    variant: str
    rows: list[EventRow]
    left_out: int


def slow_start_events(run: Run, flow: Flow) -> list[EventRow]:
    """The events of one flow in the order of the reports; empty if no module reports any."""
    table = run.table("slow_start")
    if table is None:
        return []
    start_ns = flow_start_ns(run, flow)
    rows = table.filter(pc.equal(table.column("flow"), flow.id)).to_pylist()
    return [_event_row(row, flow, start_ns) for row in rows]


def event_tables(runs: list[tuple[Run, str]]) -> list[EventTable]:
    """The runs whose modules reported something; each run comes with the name of its variant."""
    found = []
    for run, variant in runs:
        flows = [slow_start_events(run, flow) for flow in shown_flows(run.plan)] if run.plan else []
        rows = [row for events in flows for row in events[:_MOST_ROWS]]
        if rows:
            found.append(EventTable(run.name, variant, rows, sum(map(len, flows)) - len(rows)))
    return found


def _event_row(row: dict[str, Any], flow: Flow, start_ns: int) -> EventRow:
    why = reason(row["reason"])
    bare = why.name == "none"
    return EventRow(
        flow=flow.name,
        time_ns=row["time_ns"],
        after_start_s=(row["time_ns"] - start_ns) / 1e9,
        event=event(row["event"]).words,
        why="" if bare else why.words,
        quantity="" if _has_no_number(why, row) else measure_text(why.quantity(row["quantity"]) or 0, why.unit),
        threshold="" if bare else _threshold_text(why, row["threshold"]),
        cwnd=row["cwnd_packets"],
        ssthresh="∞" if row["ssthresh_packets"] is None else significant(row["ssthresh_packets"]),
        round=row["round"],
        min_rtt="" if row["min_rtt_us"] is None else duration(row["min_rtt_us"]),
        is_exit=row["event"] == "exit",
    )


def _has_no_number(why: Reason, row: dict[str, Any]) -> bool:
    """Whether the event has no number worth showing: none at all, or a zero without a unit."""
    return row["quantity"] is None or (not why.unit and not row["quantity"])


def _threshold_text(why: Reason, raw: int | None) -> str:
    value = why.threshold(raw)
    if value is None:
        return ""
    return (
        "∞"
        if raw == INFINITE_SSTHRESH and why.threshold_unit == "packets"
        else measure_text(value, why.threshold_unit or "")
    )


def measure_text(value: float, unit: str) -> str:
    """A number with its unit: microseconds and bit/s scaled to fit, a ratio or a plain count without a unit."""
    if unit == "us":
        return duration(value) if value else "0 µs"
    if unit == "bit/s":
        return rate(value)
    if unit in ("", "ratio"):
        return significant(value)
    return f"{significant(value)} {unit if value != 1 else unit.removesuffix('s')}"


def cause_words(cause: str) -> str:
    """What an exit cause means, in a few words."""
    return _OTHER_CAUSES.get(cause) or reason(cause).words
