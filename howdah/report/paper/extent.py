# SPDX-License-Identifier: Apache-2.0
"""Where the time axis of a figure ends, in seconds since the flows' starts."""

from __future__ import annotations

from howdah.report.ackwindow import flow_start_ns
from howdah.report.extent import shown_us
from howdah.report.paper.line import PaperLine

_BEYOND_EXIT = 0.35  # of the time to the last exit: what start-up shows behind it
_LEAST_RTTS = 3
_WITHOUT_EXIT_RTTS = 12
_BESIDE_EXITS_RTTS = 6  # of its own, of a line without an exit beside others that have one


def until_s(lines: list[PaperLine], *, whole: bool) -> float | None:
    """The end of the start-up of all lines together: a little behind the last exit, and not before the first round
    trips of a line without one. Of whole runs the end of what there is to show, None for the last record."""
    if whole:
        if any(line.run.plan and shown_us(line.run) == line.run.plan.duration_us for line in lines):
            return None
        return max(shown_us(line.run) / 1e6 - flow_start_ns(line.run, line.flow) / 1e9 for line in lines)
    rtt_s = max(line.flow.rtt_us for line in lines) / 1e6
    exits = [line.exit.after_start_s for line in lines if line.exit is not None]
    if exits:
        stayed = [_BESIDE_EXITS_RTTS * line.flow.rtt_us / 1e6 for line in lines if line.exit is None]
        return max([max(exits) * (1 + _BEYOND_EXIT), _LEAST_RTTS * rtt_s, *stayed])
    return _WITHOUT_EXIT_RTTS * rtt_s


def last_s(lines: list[PaperLine], *, whole: bool) -> float:
    """Where the axis ends."""
    until = until_s(lines, whole=whole)
    return until if until is not None else max(float(line.x[-1]) for line in lines if len(line.x))
