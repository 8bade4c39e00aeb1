# SPDX-License-Identifier: Apache-2.0
"""What happens while runs are made is told once, in order, and whole."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from howdah.errors import HowdahError
from howdah.work.batch import Events, Outcome, Rest, RunEvent, Work
from howdah.work.job import Job, Past


def _job(name: str) -> Job:
    return cast("Job", SimpleNamespace(cell=SimpleNamespace(directory_name=name)))


def test_a_run_begins_goes_on_and_ends_once() -> None:
    told: list[RunEvent] = []
    events = Events(told.append)
    work = Work(_job("a"), phase="boot")
    rest = Rest(total=2)
    events.batch([work], [], rest)
    events.batch([work], [], rest)
    work.phase, work.done_us, work.of_us = "flows", 2_500_000, 10_000_000
    events.batch([work], [], rest)
    done = Outcome(work.job, verdict="pass", wall_s=1.23456)
    events.batch([], [done], rest)
    events.batch([], [done], rest)
    assert told == [
        {"event": "start", "run": "a"},
        {"event": "progress", "run": "a", "phase": "boot", "simulated_s": 0.0, "of_s": 0.0},
        {"event": "progress", "run": "a", "phase": "flows", "simulated_s": 2.5, "of_s": 10.0},
        {"event": "run", "run": "a", "verdict": "pass", "error": None, "reused": False, "wall_s": 1.235},
    ]


def test_outcomes_that_are_no_longer_held_are_not_told_again() -> None:
    told: list[Any] = []
    events = Events(told.append)
    outcomes = [Outcome(_job(name), verdict="pass") for name in "abc"]
    events.batch([], outcomes[:2], Rest(total=3))
    events.batch([], outcomes[2:], Rest(total=3, past=Past(count=2)))
    assert [event["run"] for event in told] == ["a", "b", "c"]


def test_an_error_is_told_in_words() -> None:
    told: list[Any] = []
    Events(told.append).batch([], [Outcome(_job("a"), error=HowdahError("no room", hint="make some"))], Rest(total=1))
    assert told[0]["verdict"] is None
    assert "no room" in told[0]["error"]


def test_a_step_of_a_build_is_told_when_it_changes() -> None:
    told: list[Any] = []
    events = Events(told.append)
    for step in (("kernel", 1, 3), ("kernel", 1, 3), ("kernel", 2, 3)):
        events.build(*step)
    assert [event["done"] for event in told] == [1, 2]
