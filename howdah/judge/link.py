# SPDX-License-Identifier: Apache-2.0
"""Check that a link carried what its trace allows at the right times: the plan's trace against kernel counters."""

from __future__ import annotations

import numpy as np

from howdah.judge.check import Tolerance
from howdah.judge.during import backlogged, held_drop_bytes
from howdah.measure.measured import Measured
from howdah.measure.sampled import MISSING, Samples, node_samples
from howdah.measure.trace import SECOND_NS
from howdah.record import table as store
from howdah.record.delivery import LinkOpportunities, opportunities
from howdah.record.directory import RunDirectory
from howdah.record.verdict import DURING, Check

_COUNTED = ("passed", "used", "carried_bytes", "unused_bytes")


def link_checks(directory: RunDirectory, data: Measured, tolerance: Tolerance) -> list[Check]:
    """Return two checks for each direction that has a trace: of its opportunities, and of the bytes sent."""
    checks = []
    for reverse in (False, True):
        link = opportunities(data.plan, reverse=reverse)
        if link is None:
            continue
        if data.plan.collect.opportunities_us is None:
            checks.append(Check(_name(link), DURING, None, f"the link at {link.node} was not read"))
        else:
            checks.append(_passed(link, node_samples(store.read(directory, "opportunities"), link.node), tolerance))
        sent = data.way_back if reverse else data.bottleneck
        columns = ("tx_bytes", "tx_packets") if reverse else ("sent_bytes", "sent_packets")
        checks.append(_carried(data, link, sent, columns, tolerance))
    return checks


def _name(link: LinkOpportunities) -> str:
    return f"link {link.node} opportunities"


def _passed(link: LinkOpportunities, found: Samples, tolerance: Tolerance) -> Check:
    """Check that at every reading the link has passed exactly the trace's opportunities until then and has used or lost
    all of their bytes. It must follow the trace from the epoch to the end of the flows."""
    name = _name(link)
    begun = np.flatnonzero(found["began_ns"] != MISSING) if len(found) else np.zeros(0, dtype=np.int64)
    if not begun.size or any((found[column][begun] == MISSING).any() for column in _COUNTED):
        return Check(name, DURING, False, f"at {link.node} no link can be read that follows a trace")
    began, until = found["began_ns"][begun], found["until_ns"][begun]
    passed, expected = found["passed"][begun], link.until(until)
    wrong = np.flatnonzero(passed != expected)
    last = int(passed[-1])
    if (began != 0).any():
        message = (
            f"the link at {link.node} follows its trace from {began[began != 0][0] / SECOND_NS:.6f} s on, not from 0"
        )
        return Check(name, DURING, False, message, 0, int(began[began != 0][0]), 0, "ns")
    if wrong.size:
        at = int(wrong[0])
        message = (
            f"the link at {link.node} had {passed[at]} opportunities until {until[at] / SECOND_NS:.6f} s, its trace "
            f"has {expected[at]}: it follows another one"
        )
        return Check(name, DURING, False, message, int(expected[at]), int(passed[at]), 0, "opportunities")
    lost = found["carried_bytes"][begun] + found["unused_bytes"][begun] - passed * link.size_bytes
    if lost.any():
        message = (
            f"the link at {link.node} has {abs(int(lost[lost != 0][0]))} bytes more or less than its opportunities"
        )
        return Check(name, DURING, False, message, 0, int(lost[lost != 0][0]), 0, "bytes")
    late_ns = np.abs(np.minimum(found.time_ns[begun], link.end_ns) - np.minimum(until, link.end_ns))
    if late_ns.max() > tolerance.clock_us * 1000:
        at = int(np.argmax(late_ns))
        message = f"the link at {link.node} stood still at {until[at] / SECOND_NS:.6f} s"
        return Check(name, DURING, False, message, 0, int(late_ns[at]), tolerance.clock_us * 1000, "ns")
    used = int(found["used"][begun][-1])
    message = f"the link at {link.node} had the {last} opportunities of its trace, and used {used}"
    return Check(name, DURING, True, message, last, last, 0, "opportunities")


def _carried(
    data: Measured, link: LinkOpportunities, sent: Samples | None, columns: tuple[str, str], tolerance: Tolerance
) -> Check:
    """Check that between readings of the kernel's counter no more bytes left than the opportunities carry, and no fewer
    where the queue never ran empty; to a frame, part of which a neighbouring opportunity may have carried.

    The queue's counter counts a packet when its transmission begins. A reading may be as late as a delay.
    """
    name = f"link {link.node} bytes"
    if sent is None or not all(len(sent) and sent.has(column) for column in columns):
        return Check(name, DURING, None, f"what left at {link.node} was not read", unit="bytes")
    inside = np.flatnonzero((sent.time_ns >= 0) & (sent.time_ns <= link.end_ns))
    if inside.size < 2:
        return Check(name, DURING, None, f"what left at {link.node} was read less than twice", unit="bytes")
    first, last = inside[:-1], inside[1:]
    counted = sent[columns[0]] - link.overhead_bytes_less * sent[columns[1]]
    left = counted[last] - counted[first]
    slack_ns = int(tolerance.delay_us * 1000)
    begin, end = sent.time_ns[first], sent.time_ns[last]
    frame = data.plan.path.frame_bytes
    most = (link.until(end + slack_ns) - link.until(begin - slack_ns)) * link.size_bytes + frame
    least = (link.until(end - slack_ns) - link.until(begin + slack_ns)) * link.size_bytes - frame
    busy = np.zeros(left.size, dtype=np.bool_)
    if sent is data.bottleneck and sent.has("backlog_bytes"):
        busy = backlogged(sent, held_drop_bytes(data.plan))[first]
    wrong = np.flatnonzero((left > most) | (busy & (left < least)))
    total, possible = int(left.sum()), int(link.until(end[-1]) - link.until(begin[0])) * link.size_bytes
    if wrong.size:
        at = int(wrong[0])
        relation = "more than" if left[at] > most[at] else "although its queue held more, less than"
        limit = most[at] - frame if left[at] > most[at] else least[at] + frame
        message = (
            f"{left[at]} bytes left {link.node} in {(end[at] - begin[at]) / 1e6:g} ms from "
            f"{begin[at] / SECOND_NS:.6f} s on, {relation} its opportunities carry: {limit}"
        )
        return Check(name, DURING, False, message, int(limit), int(left[at]), frame, "bytes")
    message = f"{total} bytes left {link.node}, its opportunities carry {possible}"
    message += f"; in {int(busy.sum())} of {busy.size} intervals its queue never ran empty" if busy.any() else ""
    return Check(name, DURING, True, message, possible, total, frame, "bytes")
