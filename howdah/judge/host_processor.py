# SPDX-License-Identifier: Apache-2.0
"""Check that hosts' simulated processors account for every segment and every nanosecond, as the plan says."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from howdah.judge.accounting import Snapshots
from howdah.judge.check import Tolerance
from howdah.measure.host_processor import processors
from howdah.measure.measured import Measured
from howdah.measure.sampled import Samples
from howdah.plan.plan import Processor
from howdah.record.directory import RunDirectory
from howdah.record.verdict import ACCOUNTING, DURING, Check

_SEGMENTS = "TcpInSegs"
_STAGES = {"segments": ACCOUNTING, "costs": DURING, "time": DURING}
_COUNTED = ("arrived_packets", "served_packets", "dropped_packets", "waiting_packets", "begun_packets")


def processor_checks(
    directory: RunDirectory, data: Measured, state: Snapshots | None, tolerance: Tolerance
) -> list[Check]:
    """Return three checks for each processor. ``state`` is accounting.json."""
    found = processors(directory, data)
    checks = []
    for each in data.plan.processors:
        readings = found[each.host]
        if data.plan.collect.processor_us is None:
            checks += [
                Check(f"processor {each.host} {what}", stage, None, f"the processor of {each.host} was not read")
                for what, stage in _STAGES.items()
            ]
        elif not len(readings) or not all(readings.has(name) for name in readings.columns):
            checks += [
                Check(f"processor {each.host} {what}", stage, False, f"of {each.host} no processor can be read")
                for what, stage in _STAGES.items()
            ]
        else:
            checks.append(_segments(each, readings, _taken_by_tcp(state, each.host)))
            checks.append(_costs(each, readings))
            checks.append(_time(each, readings, tolerance))
    return checks


def _taken_by_tcp(state: Snapshots | None, host: str) -> int | None:
    """Return the segments that the host's TCP has received since the host was made, by its own counter."""
    counted = state.after.get("netstat", {}).get(host, {}) if state is not None else {}
    return counted.get(_SEGMENTS)


def _segments(each: Processor, found: Samples, taken: int | None) -> Check:
    """Check that at every reading arrived = served + dropped + waiting, that nothing waits at the end, and that TCP
    counted as many segments as were served."""
    name = f"processor {each.host} segments"
    arrived, served, dropped, waiting, begun = (found[column] for column in _COUNTED)
    wrong = np.flatnonzero((arrived != served + dropped + waiting) | (begun < served) | (begun > served + 1))
    last = int(served[-1])
    if wrong.size:
        at = int(wrong[0])
        message = (
            f"{arrived[at]} segments reached {each.host}, of which {served[at]} were served, {dropped[at]} dropped and "
            f"{waiting[at]} waited {found.time_ns[at] / 1e9:.3f} s after the start: some are nowhere, or twice"
        )
        return Check(name, ACCOUNTING, False, message, 0, int(wrong.size), 0, "readings")
    if waiting[-1]:
        message = f"{waiting[-1]} segments still wait for the processor of {each.host} at the end"
        return Check(name, ACCOUNTING, False, message, 0, int(waiting[-1]), 0, "packets")
    if taken is None:
        message = f"the processor of {each.host} served {last} segments; TCP's own counter was not read"
        return Check(name, ACCOUNTING, None, message, None, last, 0, "packets")
    ok = taken == last
    message = f"{arrived[-1]} segments reached {each.host}; its processor dropped {dropped[-1]} and served {last}"
    message += f", TCP took {taken}"
    if not ok:
        message += ": not all that TCP took came from the processor, or it says what is not so"
    return Check(name, ACCOUNTING, ok, message, taken, last, 0, "packets")


def _costs(each: Processor, found: Samples) -> Check:
    """Check that at every reading the costs follow from the counters and the plan's constants."""
    name = f"processor {each.host} costs"
    expected = (
        found["begun_packets"] * each.packet_ns
        + found["acks_packets"] * each.ack_ns
        + found["searched_packets"] * each.searched_ns
    )
    wrong = np.flatnonzero(found["cost_ns"] != expected)
    at = int(wrong[0]) if wrong.size else -1
    cost, planned = int(found["cost_ns"][at]), int(expected[at])
    counts = f"{found['begun_packets'][at]} segments, {found['acks_packets'][at]} ACKs and "
    counts += f"{found['searched_packets'][at]} searched packets"
    if not wrong.size:
        message = f"{counts} cost the processor of {each.host} {cost} ns, as the plan says"
        return Check(name, DURING, True, message, planned, cost, 0, "ns")
    message = f"{counts} cost the processor of {each.host} {cost} ns, the plan says {planned} ns"
    return Check(name, DURING, False, message, planned, cost, 0, "ns")


def _time(each: Processor, found: Samples, tolerance: Tolerance) -> Check:
    """Check that between readings the processor was busy for at most the time passed, and for all of it if it never
    rested while segments waited; and that it has worked off all costs but those of the segment in service."""
    name = f"processor {each.host} time"
    elapsed, busy = np.diff(found.time_ns), np.diff(found["busy_ns"])
    allowed = np.array([1000 * tolerance.delay(us) for us in (elapsed / 1000).tolist()], dtype=np.float64)
    restless = (np.diff(found["rests"]) == 0) & (found["waiting_packets"][:-1] > 0)
    excess = np.where(restless, np.abs(busy - elapsed), np.maximum(busy - elapsed, -busy)) - allowed
    owed = _owed(found)
    if owed is not None:
        return Check(name, DURING, False, f"the processor of {each.host} {owed}", unit="ns")
    if not elapsed.size:
        return Check(name, DURING, None, f"the processor of {each.host} was read once", unit="ns")
    worst = int(np.argmax(excess))
    ok = bool(excess[worst] <= 0)
    full = float(elapsed[restless].sum()) / 1e9
    message = f"the processor of {each.host} was busy for {found['busy_ns'][-1] / 1e9:.6f} s"
    message += f", and all the time in {full:.3f} s in which segments waited from one reading to the next"
    if not ok:
        what = (
            "rested while segments waited" if busy[worst] < elapsed[worst] else "was busy for longer than time passed"
        )
        message = f"the processor of {each.host} {what}: busy for {busy[worst]} of {elapsed[worst]} ns"
        message += f", {found.time_ns[worst] / 1e9:.3f} s after the start"
    return Check(name, DURING, ok, message, int(elapsed[worst]), int(busy[worst]), float(allowed[worst]), "ns")


def _owed(found: Samples) -> str | None:
    """Return a contradiction: costs not worked off although nothing waits, or less than the busy time; else None."""
    rest: NDArray[np.int64] = found["cost_ns"] - found["busy_ns"]
    if (rest < 0).any():
        return f"was busy for {-int(rest.min())} ns more than everything cost"
    idle = rest[found["waiting_packets"] == 0]
    return f"was not busy for {int(idle.max())} ns that were due" if idle.size and idle.max() > 0 else None
