# SPDX-License-Identifier: Apache-2.0
"""What a delay line lost between its readings, and the ratios of loss that held then."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from howdah.linux.netlink.discipline.netem import Netem
from howdah.measure.sampled import Samples, qdisc_samples
from howdah.plan.line import HOP_HANDLE
from howdah.plan.plan import Plan

_DROPS = "drops_packets"
_OWN_DROPS = "own_drops_packets"  # without those of a middlebox below
_READ = ("sent_packets", _DROPS, "backlog_packets")

Changes = list[tuple[int, float]]  # when, in nanoseconds, and the ratio from then on


def changes_of(steps: list[list[float]]) -> Changes:
    """Of steps as a plan has them, in microseconds."""
    return [(round(at_us * 1000), ratio) for at_us, ratio in steps]


@dataclass(frozen=True)
class LossReadings:
    """Of each time between two readings: packets that entered and were dropped, and which of ``ratios``, from ``first``
    to ``last``, held in it.

    Loss is decided when a packet enters the delay line; what entered between two readings has left, was dropped, or is
    held.
    """

    entered: np.ndarray
    dropped: np.ndarray
    ratios: list[float]
    first: np.ndarray
    last: np.ndarray


def delay_lines(table: pa.Table, plan: Plan) -> Iterator[tuple[tuple[str, str], Samples]]:
    """Node and interface of each delay line, and its readings."""
    for queue in plan.queues:
        if queue.kind == Netem.kind:
            line = qdisc_samples(table, *queue.place)
            if plan.path.middlebox is not None:
                line = _without_hop(line, qdisc_samples(table, *queue.at, HOP_HANDLE))
            yield queue.at, line


def _without_hop(line: Samples, hop: Samples) -> Samples:
    """The line's readings with its drops apart from those of the hop below it, which the line counts, too."""
    if len(hop) != len(line) or not line.has(_DROPS) or not hop.has(_DROPS):
        return line
    return Samples(line.time_ns, {**line.columns, _OWN_DROPS: line[_DROPS] - hop[_DROPS]})


def hidden_by(plan: Plan) -> str | None:
    """Why its delay lines do not tell how many packets entered them; None where they do."""
    middlebox = plan.path.middlebox
    return "copies that a middlebox makes leave it, too" if middlebox and middlebox.duplicate_ratio else None


def loss_readings(samples: Samples, base: float, changes: Changes) -> LossReadings | None:
    """``base`` is the ratio before the first of ``changes``. None where nothing was read."""
    if len(samples) < 2 or not all(samples.has(column) for column in _READ):
        return None
    times = [time_ns for time_ns, _ in changes]
    first = np.searchsorted(times, samples.time_ns[:-1], side="right")
    last = np.maximum(np.searchsorted(times, samples.time_ns[1:], side="left"), first)
    entered = np.asarray(sum(np.diff(samples[column]) for column in _READ))
    ratios = [base, *(ratio for _, ratio in changes)]
    dropped = np.diff(samples[_OWN_DROPS if _OWN_DROPS in samples.columns else _DROPS])
    return LossReadings(entered, dropped, ratios, first, last)
