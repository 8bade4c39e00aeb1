# SPDX-License-Identifier: Apache-2.0
"""Trains of packets and of their ACKs, and ACKs that stand alone, from traces made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from howdah.measure.conversation import Acks, Conversation, DataSegments
from howdah.measure.receiver import Train, last_train, lone_acks
from howdah.measure.trace import FlowTrace
from tests.unit.trace_factory import MS, MSS, make_trace

# Rounds of one, two and four segments; each ACK releases two. The four arrive within 3 ms, their ACKs come within 4 ms.
ACKED_MS = [40.0, 80.0, 81.0, 120.0, 121.0, 122.5, 124.0, 160.0]
ARRIVED_MS = [20.0, 60.0, 61.0, 100.0, 101.0, 102.0, 103.0]


def doubling() -> FlowTrace:
    una = list(range(8))
    return make_trace(ACKED_MS, una, [1 + 2 * acked for acked in una])


def captured(arrived_ms: list[float], numbers: list[int] | None = None) -> Conversation:
    count = len(arrived_ms)
    begin = np.array(range(count) if numbers is None else numbers, dtype=np.int64) * MSS
    order, ones = np.arange(count, dtype=np.int64), np.ones(count, dtype=np.int64)
    times = np.array([time * MS for time in arrived_ms], dtype=np.int64)
    nothing = np.zeros(0, dtype=np.int64)
    return Conversation(DataSegments(order, times, begin, begin + MSS, ones), Acks(*[nothing] * 5))


def test_the_last_round_that_is_over_has_its_two_trains() -> None:
    assert last_train(doubling(), captured(ARRIVED_MS), 160 * MS) == Train(4, 3 * MS, 4 * MS)
    # The exit comes in the middle of the round of four: that of two is the last whole one.
    assert last_train(doubling(), captured(ARRIVED_MS), 122 * MS) == Train(2, 1 * MS, 1 * MS)


def test_no_train_before_a_round_of_two_is_over() -> None:
    assert last_train(doubling(), captured(ARRIVED_MS), 100 * MS) is None
    assert last_train(doubling(), captured(ARRIVED_MS), 10 * MS) is None


def test_no_train_where_a_packet_came_twice() -> None:
    twice = captured([*ARRIVED_MS, 150.0], [0, 1, 2, 3, 4, 5, 6, 4])
    assert last_train(doubling(), twice, 160 * MS) is None


@pytest.mark.parametrize(
    ("times_ms", "until_ms", "expected"),
    [
        ([40.0, 80.0, 81.0, 83.0], 100, (1, 4)),  # exactly 2 ms are not apart
        ([40.0, 80.0, 81.0, 121.0], 100, (1, 3)),  # what comes after the exit does not count
        ([40.0, 80.0, 120.0], 130, (3, 3)),
        ([40.0, 80.0], 10, (0, 0)),
    ],
)
def test_an_ack_is_alone_that_is_apart_from_both_neighbours(
    times_ms: list[float], until_ms: int, expected: tuple[int, int]
) -> None:
    una = list(range(len(times_ms)))
    trace = make_trace(times_ms, una, [each + 9 for each in una])
    assert lone_acks(trace, until_ms * MS) == expected
