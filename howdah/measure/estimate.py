# SPDX-License-Identifier: Apache-2.0
"""The capacity that an algorithm estimated at first: a rate, and the threshold it set from it."""

from __future__ import annotations

from howdah.measure.event import Event
from howdah.measure.row import Sheet
from howdah.measure.trace import FlowTrace
from howdah.tables.event import reason


def estimate_rows(sheet: Sheet, trace: FlowTrace, events: list[Event]) -> None:
    """``estimated_bits_per_second`` and ``estimated_packets`` of the first ``estimate`` event that speaks of a rate.

    The rate is the module's (of data, not of frames), the packets are the ssthresh it set. No rows of a flow whose
    module tells of no such estimate.
    """
    rates = [each for each in events if each.event == "estimate" and reason(each.reason).unit == "bit/s"]
    if not rates:
        return
    first = rates[0]
    name = {"algorithm": trace.flow.algorithm}
    sheet.add(
        trace.flow.id, "estimated_bits_per_second", reason(first.reason).quantity(first.quantity), "bit/s", **name
    )
    why = "the estimate set no threshold"
    sheet.add(trace.flow.id, "estimated_packets", first.ssthresh_packets, "packets", why, **name)
