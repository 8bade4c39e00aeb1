# SPDX-License-Identifier: Apache-2.0
"""Events of modules as a report says them."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.record.result import load_run
from howdah.record.schema import REASONS
from howdah.report.event import cause_words, event_tables, measure_text, slow_start_events
from tests.experiment_factory import Scenario, make_experiment
from tests.unit.test_publish_sample import replace_table


@pytest.fixture
def run_path(tmp_path: Path) -> Path:
    scenario = Scenario(algorithms=("reno",), repetitions=1, flows=1, duration_s=2.0, told=True)
    return next(make_experiment(tmp_path, scenario).glob("reno-r0*"))


def test_an_event_says_what_why_and_the_number_against_its_threshold(run_path: Path) -> None:
    run = load_run(run_path, "x")
    assert run.plan is not None
    phase, resume, exit_ = slow_start_events(run, run.plan.flows[0])
    assert phase.label == "another phase of slow start, the round-trip time rose: 112.5 ms against 108 ms"
    assert resume.event == "back to the phase before"
    assert exit_.label == "left slow start, segments were lost: 3 packets"
    assert (phase.ssthresh, phase.is_exit, exit_.is_exit) == ("∞", False, True)
    assert phase.after_start_s < exit_.after_start_s


def test_a_threshold_without_end_and_a_reason_without_a_name(run_path: Path) -> None:
    run = load_run(run_path, "x")
    row = {"flow": 1, "time_ns": 0, "event": "estimate", "reason": "cached", "cwnd_packets": 20, "round": 0}
    row |= {"ssthresh_packets": 90, "quantity": 90, "threshold": 0x7FFFFFFF, "min_rtt_us": None}
    strange = {**row, "event": "unknown-40", "reason": "unknown-41", "quantity": 5, "threshold": 6}
    bare = {**row, "event": "jump", "reason": "none", "quantity": 0, "threshold": 0}
    replace_table(run, "slow_start", [row, strange, bare])
    assert run.plan is not None
    first, second, third = slow_start_events(run, run.plan.flows[0])
    assert (first.number, first.min_rtt) == ("90 packets against ∞", "")
    assert second.label == "unknown-40, unknown-41: 5 against 6"
    assert third.label == "window set at once"


def test_a_long_story_is_cut_and_says_so(run_path: Path) -> None:
    run = load_run(run_path, "x")
    row = {"flow": 1, "event": "estimate", "reason": "rate-estimate", "cwnd_packets": 20, "round": 0}
    row |= {"ssthresh_packets": 90, "quantity": 90, "threshold": 80, "min_rtt_us": 40_000}
    replace_table(run, "slow_start", [{**row, "time_ns": number} for number in range(130)])
    (told,) = event_tables([(run, "reno")])
    assert (len(told.rows), told.left_out) == (100, 30)


def test_a_run_whose_modules_tell_nothing_has_no_table(tmp_path: Path) -> None:
    scenario = Scenario(algorithms=("reno",), repetitions=1, flows=1, duration_s=2.0)
    run = load_run(next(make_experiment(tmp_path, scenario).glob("reno-r0*")), "x")
    assert event_tables([(run, "reno")]) == []


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (112_500, "us", "112.5 ms"),
        (0, "us", "0 µs"),
        (94_726_000, "bit/s", "94.73 Mbit/s"),
        (0.347, "ratio", "0.347"),
        (1, "packets", "1 packet"),
        (1.967, "packets", "1.967 packets"),
        (5, "rounds", "5 rounds"),
        (7, "", "7"),
    ],
)
def test_numbers_have_the_unit_that_fits(value: float, unit: str, text: str) -> None:
    assert measure_text(value, unit) == text


def test_every_cause_has_words() -> None:
    others = ("bbr-drain", "receive-window", "application", "unknown")
    assert all(cause_words(cause) not in ("", cause) for cause in (*REASONS, *others))
    assert not [cause for cause in (*REASONS, *others) if "  " in cause_words(cause)]
