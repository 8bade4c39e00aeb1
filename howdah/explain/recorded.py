# SPDX-License-Identifier: Apache-2.0
"""The section ``recorded:`` of a twin: what its runs are laid over. Numbers alone: no address, no name, no payload."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from howdah.explain.explained import Explained
from howdah.explain.points import of_capture
from howdah.explain.startup import GROWING
from howdah.measure.limit import APPLICATION
from howdah.number import rounded
from howdah.profile.link import LEAST_RATE

_WIDTH = 116


def recorded_lines(flow: Explained) -> list[str]:
    lines = ["# What the recording shows; 'howdah run' lays it over what the twin does.", "recorded:"]
    if flow.goodput_bits_per_second >= LEAST_RATE:
        lines.append(f"  goodput: {round(flow.goodput_bits_per_second)} bit/s")
    if flow.retransmitted_packets is not None:
        lines.append(f"  retransmitted_packets: {flow.retransmitted_packets}")
    if flow.held_back_by is not None:
        lines.append(f"  held_back_by: {flow.held_back_by.value}")
    leaves = flow.exit
    if leaves is not None and leaves.packets.value is not None and leaves.time_s > 0:
        parts = [f"time: {max(round(leaves.time_s * 1e6), 1)} us", f"packets: {rounded(leaves.packets.value, 5)}"]
        parts += [f"round: {leaves.round}"] if leaves.round is not None else []
        parts += [f"cause: {leaves.cause}"] if leaves.cause is not None else []
        lines.append(f"  exit: {{{', '.join(parts)}}}")
    elif leaves is None and (flow.limit == APPLICATION or flow.why_no_exit == GROWING):
        lines.append("  startup_left: false")
    if flow.parts is not None:
        seen, trips, course, _ = flow.parts
        points = of_capture(seen, trips, course)
        if points is not None and points.time_s.size > 1:
            lines.append("  course:")
            lines += _list("time_ms", points.time_s * 1e3)
            lines += _list("in_flight_packets", points.in_flight_packets)
            lines += _list("acknowledged_kb", points.acknowledged_bytes / 1e3)
            lines += _list("rtt_ms", points.rtt_s * 1e3)
    return lines if len(lines) > 2 else []


def _list(name: str, values: Iterable[float]) -> list[str]:
    text = ", ".join(str(rounded(round(float(value), 3), 5)) for value in values)
    return [f"    {name}:", *textwrap.wrap(f"[{text}]", _WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 7)]
