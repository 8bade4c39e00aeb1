# SPDX-License-Identifier: Apache-2.0
"""The processors that the profile gives its hosts: how busy they were, and the packets that waited or were dropped."""

from __future__ import annotations

import numpy as np

from howdah.measure.measured import Measured
from howdah.measure.row import Sheet
from howdah.measure.sampled import Samples, node_samples
from howdah.measure.trace import SECOND_NS
from howdah.plan.plan import BACKGROUND
from howdah.record import table as store
from howdah.record.directory import RunDirectory

SATURATED = 0.99  # busy share of the time between two readings
_UNREAD = "the processor was not read"


def processors(directory: RunDirectory, data: Measured) -> dict[str, Samples]:
    """Return the readings of each host with a processor, by name; empty ones if it was not read."""
    plan = data.plan
    if not plan.processors or plan.collect.processor_us is None:
        return {each.host: Samples(np.empty(0, dtype=np.int64), {}) for each in plan.processors}
    table = store.read(directory, "processor")
    return {each.host: node_samples(table, each.host) for each in plan.processors}


def busy_share(found: Samples, begin_ns: int, end_ns: int) -> float | None:
    """Return the share of an interval in which the processor was busy."""
    busy_ns = found.grown("busy_ns", begin_ns, end_ns)
    return None if busy_ns is None else busy_ns / (end_ns - begin_ns)


def saturated_s(found: Samples, end_ns: int) -> float | None:
    """Return the time between readings in which it was busy for 99 %, up to ``end_ns``."""
    if len(found) < 2 or not found.has("busy_ns"):
        return None
    there = (found.time_ns[:-1] >= 0) & (found.time_ns[1:] <= end_ns)
    length = np.diff(found.time_ns)[there]
    busy = np.diff(found["busy_ns"])[there]
    return float(length[busy >= SATURATED * length].sum() / SECOND_NS)


def processor_host_rows(sheet: Sheet, directory: RunDirectory, data: Measured) -> None:
    """Add rows of each measured flow for its sender's processor: ``processor_busy_share`` = busy time / time of the
    measurement window; ``processor_saturated_s``, the time of intervals between readings in which it was busy for 99 %;
    ``processor_peak_waiting_packets``, ``processor_drops_packets`` and ``processor_searched_packets`` in the whole run.
    The same for its receiver's, with ``receiver_`` after the first word. No rows for a host without one."""
    found = processors(directory, data)
    begin, end_ns = (edge * 1000 for edge in data.plan.measure_window_us)
    until = data.plan.duration_us * 1000
    for flow in data.plan.flows:
        if flow.role == BACKGROUND or flow.group is not None:
            continue
        for end, host in (("processor", flow.sender), ("processor_receiver", flow.receiver)):
            readings = found.get(host)
            if readings is None:
                continue
            for metric, value in (
                (f"{end}_busy_share", busy_share(readings, begin, end_ns)),
                (f"{end}_saturated_s", saturated_s(readings, until)),
                (f"{end}_peak_waiting_packets", _last(readings, "waiting_packets", most=True)),
                (f"{end}_drops_packets", _last(readings, "dropped_packets")),
                (f"{end}_searched_packets", _last(readings, "searched_packets")),
            ):
                sheet.add(flow, metric, value, _UNREAD)


def _last(found: Samples, name: str, *, most: bool = False) -> int | None:
    if not len(found) or not found.has(name):
        return None
    return int(found[name].max() if most else found[name][-1])
