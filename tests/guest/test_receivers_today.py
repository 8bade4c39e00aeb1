# SPDX-License-Identifier: Apache-2.0
"""Receivers of today, each of them the host of a flow of one run: their ACKs and windows as captures show them."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import pytest

from howdah.receiver import RECEIVERS, AckFilter, Tuning
from howdah.record import table as store
from tests.guest.guest_run import failures, measures, plan_of, require_engine
from tests.guest.shared_run import shared_run

pytestmark = pytest.mark.guest

NAMES = ["windows-10", "macos", "macos-stretch", "android-lte", "android-5g", "linux"]
# Fast and long enough for the window of 4 MiB to be offered before slow start ends.
RUN = (
    "algorithm=cubic-no-hystart",
    "path={rate: 100 Mbit/s, rtt: 300 ms, buffer: 1 bdp}",
    "duration=3 s",
    f"flows=[{', '.join(f'{{receiver_behaviour: {name}}}' for name in NAMES)}]",
    f"collect.pcap=[{', '.join(f'r{number}:r{number}-eth0' for number in range(1, len(NAMES) + 1))}]",
)
CLOCK_US = 1  # a step of the virtual clock is 256 ns
SEGMENT_BYTES = 1460


@dataclass(frozen=True)
class Seen:
    """What one receiver did: measures by name, and the segments that it sent."""

    measures: dict[str, Any]
    sent: list[dict[str, Any]]

    @property
    def largest_window_bytes(self) -> int:
        return max(int(each["window_bytes"]) for each in self.sent)

    @property
    def syn(self) -> dict[str, Any]:
        return next(each for each in self.sent if each["flags"] & 2)


@pytest.fixture(scope="module")
def seen() -> dict[str, Seen]:
    """By the behaviour's name, from one valid run."""
    engine = require_engine()
    plan = plan_of(*RUN)
    directory, verdict = shared_run(engine, plan)
    assert verdict.verdict == "pass", failures(verdict)
    segments = store.read(directory, "segment").to_pylist()
    return {
        name: Seen(
            measures(directory, number),
            [each for each in segments if each["flow"] == number and each["sent_by"] == "receiver"],
        )
        for number, name in enumerate(NAMES, 1)
    }


def rule(name: str) -> AckFilter:
    found = RECEIVERS[name].ack_filter
    assert found is not None
    return found


def bounds(name: str) -> Tuning:
    found = RECEIVERS[name].tuning
    assert found is not None
    return found


def test_every_receiver_of_today_is_here() -> None:
    assert {name for name, known in RECEIVERS.items() if known.tuning} == {*NAMES} - {"linux"}


@pytest.mark.parametrize("name", NAMES[:-1])
def test_acks_are_those_declared(seen: dict[str, Seen], name: str) -> None:
    """Never for more segments than the rule says, and never later."""
    found, declared = seen[name].measures, rule(name)
    assert found["ack_delay_most_us"] <= declared.delay_us + CLOCK_US
    assert found["most_segments_per_ack"] <= declared.acknowledge_every
    if declared.acknowledge_every == 2:
        assert found["segments_per_ack"] > 1.9
    elif declared.quick_first:
        assert found["most_segments_per_ack"] == 8
    else:
        # 100 Mbit/s are 8.2 segments in the millisecond that an ACK waits.
        assert 8 <= found["most_segments_per_ack"] <= 10
        assert found["ack_delay_most_us"] >= declared.delay_us


def test_stretching_begins_after_512_segments(seen: dict[str, Seen]) -> None:
    sent = [each for each in seen["macos-stretch"].sent if not each["flags"] & 2]
    steps = [after["ack_bytes"] - before["ack_bytes"] for before, after in itertools.pairwise(sent)]
    assert {*steps[:511]} == {1448}
    assert 8 * 1448 in steps[511:600]


@pytest.mark.parametrize("name", NAMES[:-1])
def test_the_largest_window_is_that_declared(seen: dict[str, Seen], name: str) -> None:
    limit = bounds(name)
    largest = seen[name].largest_window_bytes
    # A frame's payload is 162 of 256 parts of the memory it takes, so that is offered of a buffer.
    limit_bytes = limit.largest_bytes * 162 // 256 if limit.of_buffer else limit.largest_bytes
    step = 1 << int(seen[name].syn["window_scale_bits"])
    assert largest <= limit_bytes + step
    if limit_bytes < 5_000_000:
        assert largest > limit_bytes - SEGMENT_BYTES - step, "the run does not reach the limit"
    assert seen["linux"].largest_window_bytes > 6_000_000


def test_what_is_offered_first(seen: dict[str, Seen]) -> None:
    assert seen["windows-10"].syn["window_bytes"] == 64_240  # as Microsoft's capture shows it
    for name in ("macos", "macos-stretch"):
        first = next(each for each in seen[name].sent if not each["flags"] & 2)
        assert 128 << 10 <= first["window_bytes"] < 150_000
        assert seen[name].syn["window_scale_bits"] == 7


def test_windows_alone_has_no_time_stamps(seen: dict[str, Seen]) -> None:
    assert [name for name in NAMES if not seen[name].syn["time_stamps"]] == ["windows-10"]
    assert all(each.syn["sack_permitted"] for each in seen.values())
