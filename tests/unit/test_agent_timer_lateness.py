# SPDX-License-Identifier: Apache-2.0
"""The watch of a machine's processor: what it counts, and when it counts."""

from __future__ import annotations

import time

from howdah.agent.timer_lateness import Account, TimerLateness

MS = 1_000_000


def stat(*ticks: int) -> str:
    return "cpu  " + " ".join(map(str, ticks)) + "\ncpu0 1 2 3\n"


def test_what_is_late_is_counted_and_what_was_missed_is_not_made_up() -> None:
    account = Account(10 * MS)
    assert account.wake(100 * MS, 100 * MS + 5) == 110 * MS
    assert account.wake(110 * MS, 113 * MS) == 120 * MS
    assert account.wake(120 * MS, 155 * MS) == 160 * MS, "three were missed"
    found = account.result()
    assert (found.wakeups, found.missed, found.late_worst_ns) == (3, 3, 35 * MS)
    assert found.late == [[110 * MS, 3 * MS], [120 * MS, 35 * MS]]
    assert found.busiest_second is None and found.steal is None


def test_processor_time_is_told_by_the_second() -> None:
    account = Account(10 * MS)
    account.second(stat(0, 0, 0, 0, 0, 0, 0, 0))
    account.second(stat(10, 0, 0, 90, 0, 0, 0, 0))
    account.second(stat(60, 0, 0, 130, 0, 0, 0, 10))
    found = account.result()
    assert found.busiest_second == 0.6
    assert found.steal == 0.05


def test_it_counts_from_the_beginning_to_the_end_alone() -> None:
    timer_lateness = TimerLateness()
    timer_lateness.start()
    time.sleep(1.5)
    timer_lateness.begin()
    time.sleep(1.5)
    timer_lateness.end()
    ended = time.monotonic_ns()
    found = timer_lateness.stop()
    assert found is not None and found.wakeups >= 1
    assert all(due <= ended for due, _late in found.late)
    assert timer_lateness.stop() is None


def test_one_that_never_began_has_counted_nothing() -> None:
    timer_lateness = TimerLateness()
    timer_lateness.start()
    found = timer_lateness.stop()
    assert found is not None and found.wakeups == 0
    timer_lateness.start()
    timer_lateness.kill()
    assert timer_lateness.stop() is None
