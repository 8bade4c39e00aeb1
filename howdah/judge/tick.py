# SPDX-License-Identifier: Apache-2.0
"""Whether packets came out of the delay lines at ticks, where the plan asks for it."""

from __future__ import annotations

import numpy as np

from howdah.measure.measured import Measured
from howdah.measure.trace import Integers
from howdah.record.verdict import DURING, Check

_RELEASE = 0.5  # of a tick: what arrives within it of a release belongs to it
_NEXT = 0.95  # of a tick: the next release comes no sooner
_ALLOWED = 0.01  # of the releases: one may begin before the tick, and end behind it


def tick_checks(data: Measured) -> list[Check]:
    """One check of each host that sends: when ACKs reach it, through the delay line towards it. Nothing without a tick.

    Of the lines towards receivers nothing here is known: no trace shows when data arrive there.
    """
    tick_us = data.plan.path.tick_us
    if not tick_us:
        return []
    hosts = dict.fromkeys(flow.sender for flow in data.plan.flows if flow.datagram_bytes is None)
    return [_check(data, host, tick_us) for host in hosts]


def _check(data: Measured, host: str, tick_us: int) -> Check:
    name = f"tick {host}"
    if any(each.host == host for each in data.plan.processors):
        message = f"what the delay line lets go waits for the processor of {host} before it is traced"
        return Check(name, DURING, None, message, unit="ratio")
    times = np.sort(np.concatenate([trace.time_ns for trace in data.traces if trace.flow.sender == host]))
    times = times[(times >= 0) & (times < data.plan.duration_us * 1000)]
    if times.size < 2:
        return Check(name, DURING, None, f"fewer than two ACKs of {host} were traced", unit="ratio")
    early, releases = releases_before_their_tick(times, tick_us * 1000)
    share = early / releases
    message = (
        f"{early} of {releases} releases of the delay line towards {host} came less than {tick_us} us after another"
    )
    return Check(name, DURING, share <= _ALLOWED, message, 0.0, share, _ALLOWED, "ratio")


def releases_before_their_tick(times_ns: Integers, tick_ns: int) -> tuple[int, int]:
    """How many releases come too early, and how many there are. ``times_ns`` are arrivals, sorted.

    A release begins with the first packet that belongs to none before it.
    """
    early = releases = 0
    start = 0
    while start < times_ns.size:
        releases += 1
        behind = int(np.searchsorted(times_ns, times_ns[start] + _RELEASE * tick_ns, side="right"))
        early += behind < times_ns.size and times_ns[behind] < times_ns[start] + _NEXT * tick_ns
        start = behind
    return int(early), releases
