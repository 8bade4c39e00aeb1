# SPDX-License-Identifier: Apache-2.0
"""When and with which window a flow leaves slow start, on hand-made traces."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest

from howdah.measure.cause import Detection, exit_cause
from howdah.measure.exit import Exit, find_exit
from tests.unit.test_measure_cause import hystart_trace
from tests.unit.trace_factory import make_counters, make_info, make_trace

INF = math.inf


def test_exit_is_the_ack_before_the_first_finite_ssthresh_and_cwnd_the_state_after_it() -> None:
    assert find_exit(hystart_trace()) == Exit(
        record=3,
        time_ns=42_000_000,
        cwnd_packets=17,
        ssthresh_packets=16,
        reduced=False,
        from_initial_ssthresh=False,
    )


@pytest.mark.parametrize(
    ("una", "nxt", "cwnd", "ssthresh"),
    [
        ([], [], [], []),
        ([0], [10], [10], [INF]),
        ([0, 2, 4], [10, 14, 18], [10] * 3, [INF] * 3),
        # Limited slow start: max_ssthresh bends growth, the threshold stays infinite until a loss.
        ([0, 10, 30, 40], [10, 30, 60, 80], [50, 100, 150, 200], [INF] * 4),
        # A raised threshold takes the exit back.
        ([0, 10, 30], [10, 30, 60], [20, 32, 33], [32, 32, 100]),
    ],
)
def test_no_exit_without_records_and_while_the_threshold_is_not_reached(
    una: list[int], nxt: list[int], cwnd: list[int], ssthresh: list[float]
) -> None:
    assert find_exit(make_trace([40.0 + number for number in range(len(una))], una, nxt, cwnd, ssthresh)) is None


# An ACK a millisecond from 40 ms on; the exit that follows, of which what is not given is as in the row of it.
LEFT: dict[str, tuple[list[int], list[int], list[int], list[float], dict[str, Any]]] = {
    "after a loss the window is the one before it was cut": (
        [0, 20, 20, 20, 20, 20],
        [40, 60, 60, 60, 60, 61],
        [20, 40, 40, 40, 40, 39],
        [INF, INF, INF, INF, 28, 28],
        {"time_ns": 43_000_000, "cwnd_packets": 40, "ssthresh_packets": 28, "reduced": True},
    ),
    # tcp_probe shows max(ssthresh, 3/4 cwnd), so the threshold drifts up once the window is above it.
    "a finite initial ssthresh is left when cwnd reaches it": (
        [0, 10, 30, 40],
        [10, 30, 60, 80],
        [10, 20, 32, 48],
        [32, 32, 32, 36],
        {"record": 2, "cwnd_packets": 32, "from_initial_ssthresh": True, "cause": "initial-ssthresh"},
    ),
    # Adaptive Start: ssthresh starts finite and is raised from an estimate, twice after the window had reached it.
    "a threshold that keeps ahead of the window is reached for good": (
        [0, 10, 30, 40, 60, 80, 90],
        [10, 30, 60, 80, 90, 99, 99],
        [20, 32, 33, 50, 51, 60, 61],
        [32, 32, 50, 50, 60, 60, 60],
        {"record": 5, "cwnd_packets": 60, "ssthresh_packets": 60, "reduced": False},
    ),
    # Each ACK raises ssthresh to the window, up to 60; then ssthresh is shown as 3/4 of a window that grows on.
    "a threshold that rises with the window is a startup and its shadow is not": (
        [0, 10, 30, 40, 60, 80],
        [10, 30, 60, 80, 90, 99],
        [20, 32, 40, 60, 88, 100],
        [32, 32, 40, 60, 66, 75],
        {"record": 3, "cwnd_packets": 60},
    ),
    "a loss after the threshold was raised is where the startup ends": (
        [0, 10, 30, 30],
        [10, 30, 60, 60],
        [20, 32, 40, 40],
        [32, 32, 100, 20],
        {"record": 3, "cwnd_packets": 40, "reduced": True, "from_initial_ssthresh": False},
    ),
    # Packet pair: infinite ssthresh becomes a finite estimate while the flow goes on in slow start.
    "a threshold set above the window is reached later": (
        [0, 10, 30, 40],
        [10, 30, 60, 80],
        [10, 20, 40, 64],
        [INF, 64, 64, 64],
        {"record": 3, "cwnd_packets": 64, "from_initial_ssthresh": False, "from_own_threshold": True}
        | {"cause": "own-threshold"},
    ),
    "a threshold raised again after a loss changes no exit": (
        [0, 20, 20, 40, 60],
        [40, 60, 60, 80, 90],
        [40, 40, 20, 21, 60],
        [INF, 28, 28, 60, 60],
        {"record": 1, "cwnd_packets": 40, "reduced": True},
    ),
    "a loss below a finite initial ssthresh is a loss": (
        [0, 10, 10],
        [20, 40, 40],
        [20, 40, 40],
        [100, 100, 28],
        {"record": 2, "from_initial_ssthresh": False, "reduced": True},
    ),
    # The ACK that caused the exit is the one before, where there is one.
    "from the first record on": (
        [0, 10, 20],
        [10, 20, 30],
        [10, 11, 12],
        [10, 10, 10],
        {"record": 0, "time_ns": 40_000_000},
    ),
    "from the second record on": (
        [0, 10, 20],
        [10, 20, 30],
        [10, 11, 12],
        [INF, 10, 10],
        {"record": 1, "time_ns": 40_000_000},
    ),
    "from the third record on": (
        [0, 10, 20],
        [10, 20, 30],
        [10, 11, 12],
        [INF, INF, 10],
        {"record": 2, "time_ns": 41_000_000},
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_where_the_startup_is_left(name: str) -> None:
    una, nxt, cwnd, ssthresh, expected = LEFT[name]
    trace = make_trace([40.0 + number for number in range(len(una))], una, nxt, cwnd, ssthresh)
    found = find_exit(trace)
    assert found is not None
    cause = exit_cause(trace, found, Detection(0, 0, 0, 0), make_counters([]), make_info([]))
    seen = {**dataclasses.asdict(found), "cause": cause}
    assert {field: seen[field] for field in expected} == expected
