# SPDX-License-Identifier: Apache-2.0
"""The agent's event loop: order and repetition, with instants that have passed, so that no test waits."""

from __future__ import annotations

import functools
import os

import pytest

from howdah.agent import loop as module
from howdah.agent.loop import Loop, align_to_tick
from howdah.linux.clock import TICK_NS, now_ns


def test_single_actions_run_in_order_of_time_then_of_registration() -> None:
    loop = Loop(virtual_time=False)
    ran: list[str] = []

    def note(name: str, _now: int) -> None:
        ran.append(name)

    for name, time_ns in (("b", 20), ("c", 20), ("a", 10)):
        loop.at(time_ns, functools.partial(note, name))
    loop.run_until(30)
    assert ran == ["a", "b", "c"]


def test_an_action_beyond_the_end_stays_for_the_next_call() -> None:
    loop, ran = Loop(virtual_time=False), []
    far = now_ns() + 3_600_000_000_000
    loop.at(far, lambda _now: ran.append("far"))
    loop.run_until(1)
    assert ran == []


def test_repeated_actions_come_after_single_ones_and_missed_ones_are_not_made_up() -> None:
    loop, ran = Loop(virtual_time=False), []
    loop.every(1_000_000_000, 1_000_000_000, lambda _now: ran.append("repeated"))
    loop.at(10, lambda _now: ran.append("single"))
    loop.run_until(20)
    assert ran == ["single", "repeated"]


def test_a_cancelled_repetition_never_runs() -> None:
    loop, ran = Loop(virtual_time=False), []
    kept = loop.every(10_000_000_000, 1, lambda _now: ran.append("kept"))
    loop.cancel(loop.every(10_000_000_000, 1, lambda _now: ran.append("cancelled")))
    loop.run_until(1)
    assert ran == ["kept"]
    assert kept is not None


def test_intervals_lie_on_ticks() -> None:
    assert align_to_tick(0) == 0
    assert align_to_tick(1) == TICK_NS
    assert align_to_tick(TICK_NS) == TICK_NS
    assert align_to_tick(TICK_NS + 1) == 2 * TICK_NS


def test_in_virtual_time_a_timer_alone_is_on_time_and_reads_no_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Loop(virtual_time=True)
    seen: list[int] = []

    def read() -> int:
        raise AssertionError("the clock was read")

    monkeypatch.setattr(module, "now_ns", read)
    loop.at(17, seen.append)
    assert loop.run_until(40) == 40
    assert seen == [17]


def test_a_readable_descriptor_is_served_until_it_is_dropped() -> None:
    loop, ran = Loop(virtual_time=False), []
    reader, writer = os.pipe()

    def read(_now: int) -> None:
        ran.append(os.read(reader, 1))
        if ran[-1] == b"y":
            loop.when_readable(reader, None)

    os.write(writer, b"xyz")
    loop.when_readable(reader, read)
    loop.run_until(now_ns() + 3_600_000_000_000, finished=lambda: b"y" in ran)
    assert ran == [b"x", b"y"]
    os.close(reader)
    os.close(writer)


def test_an_error_of_an_action_reaches_the_caller() -> None:
    loop = Loop(virtual_time=False)

    def fail(_now: int) -> None:
        raise RuntimeError("no such flow")

    loop.at(1, fail)
    with pytest.raises(RuntimeError, match="no such flow"):
        loop.run_until(2)
