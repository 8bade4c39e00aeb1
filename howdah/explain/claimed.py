# SPDX-License-Identifier: Apache-2.0
"""The claims of a twin: what the recorded flow did, within what was measured, as ``howdah bisect`` and ``nightly``
judge it."""

from __future__ import annotations

from howdah.explain.explained import Explained
from howdah.explain.overlay import ALIKE
from howdah.measure.cause import ACK_TRAIN, DELAY, LOSS, UNKNOWN
from howdah.number import duration, rate
from howdah.profile.link import LEAST_RATE
from howdah.report.table import cause_text

_WINDOW_LIKE = 1.4  # times: two paths alike differ by less, a round of growth is 2


def claim_lines(flow: Explained, duration_s: float, *, alone: bool) -> list[str]:
    """``duration_s`` is the twin's: of what the recording had behind it nothing is claimed. Which part of a path a flow
    gets that is not ``alone`` is chance."""
    lines: list[str] = []
    leaves = flow.exit
    is_timed = "time" not in flow.unknown
    if leaves is not None and is_timed and 0 < leaves.time_s < duration_s and flow.base_rtt_us.value is not None:
        trips = flow.parts[1] if flow.parts is not None else None
        queue_ns = int(trips.queue_ns.max()) if trips is not None and trips.queue_ns.size else 0
        round_trip_us = flow.base_rtt_us.value + queue_ns / 1e3
        least, most = (max(1e6 * leaves.time_s + sign * round_trip_us, 1) for sign in (-1, 1))
        lines += _claim(
            "exit-time",
            f"The flow leaves slow start within one round trip of {duration(1e6 * leaves.time_s)}.",
            "exit_time_s",
            f"{{between: [{round(least)} us, {round(most)} us]}}",
        )
        if leaves.cause not in (None, UNKNOWN):
            says = f"The flow leaves slow start by {cause_text(leaves.cause)}."
            lines += _claim("exit-cause", says, "exit_cause", f"{{is: {leaves.cause}}}")
        if leaves.cause in (ACK_TRAIN, DELAY, LOSS) and flow.limit is None and leaves.packets.value:
            packets = leaves.packets.value
            least, most = packets / _WINDOW_LIKE, packets * _WINDOW_LIKE
            says = f"The flow leaves slow start with {packets:.0f} packets, within a factor of {_WINDOW_LIKE}."
            lines += _claim("exit-window", says, "exit_cwnd_packets", f"{{between: [{least:.4g}, {most:.4g}]}}")
    as_long = flow.duration_s == duration_s and alone
    if flow.goodput_bits_per_second >= LEAST_RATE and as_long and not (flow.limit == "application" and leaves is None):
        lines += _claim(
            "goodput",
            f"The flow carries {rate(flow.goodput_bits_per_second)}.",
            "goodput_bits_per_second",
            f"{{equals: {round(flow.goodput_bits_per_second)} bit/s, within: {100 * ALIKE:g} %}}",
        )
    if not lines:
        return []
    return ["# What the recorded flow did, for 'howdah bisect' and 'howdah nightly'.", "claims:", *lines, ""]


def _claim(name: str, says: str, metric: str, expect: str) -> list[str]:
    value = f"    value: {{metric: {metric}, flow: 1}}"
    return [f"  - id: {name}", f"    says: {says}", "    source: the recording", value, f"    expect: {expect}"]
