# SPDX-License-Identifier: Apache-2.0
"""How long a batch still takes, and what report and atlas say while they work."""

from __future__ import annotations

import dataclasses
import io
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from howdah.atlas import command as atlas
from howdah.atlas.catalogue import Catalogue
from howdah.atlas.chapter import Chapter
from howdah.command.main import main
from howdah.plan.plan import Plan
from howdah.work import display as progress
from howdah.work import job as job_module
from howdah.work import results
from howdah.work.batch import Job, Outcome, Rest, Work
from howdah.work.cost import carried_bits, expected_core_s
from howdah.work.display import Display, time_left
from howdah.work.experiment import ExperimentDirectory, PlannedRun
from tests.atlas_factory import make_judged_atlas
from tests.experiment_factory import Scenario, make_experiment
from tests.unit import figured_experiment
from tests.unit.plan_factory import make_plan


def _plan(rate: int, duration_s: float = 10.0) -> Plan:
    plan = make_plan()
    flow = dataclasses.replace(plan.flows[0], start_us=0, stop_us=int(duration_s * 1e6), size_bytes=None)
    path = dataclasses.replace(plan.path, rate_bits_per_second=rate, rate_steps=[])
    return dataclasses.replace(plan, path=path, flows=[flow], duration_us=int(duration_s * 1e6))


def _job(plan: Plan, folder: str = "exp") -> Job:
    return Job(ExperimentDirectory(Path(folder)), PlannedRun(plan, "a" * 64))


def _work(plan: Plan, since_s: float, share: float) -> Work:
    work = Work(_job(plan), time.monotonic() - since_s)
    work.done_us, work.of_us = int(share * 1e6), 1_000_000
    return work


def test_a_flow_carries_what_it_has_or_what_the_path_takes() -> None:
    assert carried_bits(_plan(100_000_000)) == pytest.approx(1e9)
    plan = _plan(100_000_000)
    small = dataclasses.replace(plan, flows=[dataclasses.replace(plan.flows[0], size_bytes=1_000_000)])
    assert carried_bits(small) == pytest.approx(8e6)
    many = dataclasses.replace(plan, flows=[plan.flows[0]] * 50)
    assert carried_bits(many) == pytest.approx(1e9), "fifty flows share the path"
    late = dataclasses.replace(plan, flows=[dataclasses.replace(plan.flows[0], start_us=5_000_000)])
    assert carried_bits(late) == pytest.approx(5e8)


def test_what_a_run_costs_is_asked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time left is told several times a second; an atlas has thousands of runs, some of hundreds of flows."""
    asked: list[Plan] = []

    def cost(plan: Plan) -> float:
        asked.append(plan)
        return 10.0

    monkeypatch.setattr(job_module, "expected_core_s", cost)
    plan = _plan(10_000_000)
    made = [Outcome(_job(plan), verdict="pass", wall_s=20.0) for _ in range(5)]
    active = [_work(plan, 5.0, 0.25)]
    for _ in range(3):
        assert time_left(active, made, Rest(7, 10.0)) == pytest.approx(35.0, abs=1.0)
    assert len(asked) == 6


def test_nothing_is_promised_while_nothing_is_known() -> None:
    assert time_left([], [], Rest(10, 100.0)) is None
    work = _work(_plan(10_000_000), 1.0, 0.01)
    assert time_left([work], [], Rest(10, 100.0)) is None


def test_long_runs_that_wait_weigh_more_than_short_ones_made() -> None:
    """Ten short runs were made in 20 s; two long ones, of 100 times the bits, wait: a mean of runs would say 4 s."""
    short, long = _plan(3_000_000), _plan(3_000_000_000)
    pace = 2.0  # wall seconds for an expected core second
    made = [Outcome(_job(short), verdict="pass", wall_s=pace * expected_core_s(short)) for _ in range(10)]
    work = _work(long, 0.0, 0.0)
    left = time_left([work], made, Rest(12, expected_core_s(long)))
    assert left == pytest.approx(2 * pace * expected_core_s(long), rel=0.05)


def test_a_run_in_progress_tells_the_pace_by_its_share() -> None:
    plan = _plan(300_000_000)
    work = _work(plan, since_s=50.0, share=0.5)
    left = time_left([work], [], Rest(1))
    assert left == pytest.approx(50.0, rel=0.05)


def test_the_rest_is_never_less_than_the_longest_run_in_progress() -> None:
    short, long = _plan(1_000_000), _plan(3_000_000_000)
    made = [Outcome(_job(long), verdict="pass", wall_s=expected_core_s(long))]
    active = [_work(long, 0.0, 0.0), _work(short, 0.0, 0.0)]
    left = time_left(active, made, Rest(3))
    assert left == pytest.approx(expected_core_s(long), rel=0.05)


def test_runs_that_were_there_tell_nothing_of_the_pace() -> None:
    plan = _plan(10_000_000)
    assert time_left([], [Outcome(_job(plan), verdict="pass", reused=True)], Rest(5, 10.0)) is None


def test_a_step_of_unknown_length_ends_with_the_next_thing() -> None:
    """Its clock ran on beside the runs: 'kernel: copy what has changed of the tree … 0:09:30'."""
    display = Display(quiet=False)
    display.live = True

    def bars() -> list[str]:
        return [str(task.description).strip() for task in display._progress.tasks]

    display.build("kernel: copy", 0, 0)
    display.build("kernel: compile", 1, 9)
    assert bars() == ["kernel: compile"]
    display.build("kernel: compile", 9, 9)
    display.build("modules", 0, 0)
    assert bars() == ["modules"]
    plan = _plan(300_000_000)
    display.batch([_work(plan, 5.0, 0.5)], [], Rest(1, 1.0))
    assert bars() == ["all runs", "cubic-r0"]
    display.build("report", 0, 0)
    assert "report" in bars()
    display.single("boot", 0, 0)
    assert "report" not in bars()


def test_the_bar_of_all_runs_ends_with_them() -> None:
    """A bisection builds the next kernel under it: 'all runs 1/1' stood there for half an hour."""
    display = Display(quiet=False)
    display.live = True
    plan = _plan(300_000_000)
    made = [Outcome(_job(plan), verdict="pass", reused=True)]
    display.batch([_work(plan, 5.0, 0.5)], made, Rest(2, 0.0))
    assert [str(task.description).strip() for task in display._progress.tasks] == ["all runs", "cubic-r0"]
    display.batch([], [*made, *made], Rest(2, 0.0))
    assert not display._progress.tasks
    display.build("kernel: compile", 1, 9)
    assert [str(task.description) for task in display._progress.tasks] == ["kernel: compile"]


def test_a_log_gets_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    display = Display(quiet=False)
    text = io.StringIO()
    display.console = Console(file=text, force_terminal=False, width=120)
    display.live = False
    plan = _plan(300_000_000)
    work, rest = _work(plan, 50.0, 0.5), Rest(4, 0.5 * expected_core_s(plan), experiments=2)
    display.batch([work], [], rest)
    assert text.getvalue() == ""
    monkeypatch.setattr(progress, "_LINE_EVERY_S", 0.0)
    display.batch([work], [Outcome(_job(plan, "other"), verdict="pass", reused=True)], rest)
    lines = text.getvalue().splitlines()
    assert lines[0].startswith("  = other/cubic-r0-aaaaaaaa"), "of several experiments the name says which"
    assert lines[1].startswith("  … 1/4  about ")


def test_a_log_has_whole_lines(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """However long: rich takes 80 columns where there is no terminal, and a log of CI is read by programs, too."""
    monkeypatch.delenv("COLUMNS", raising=False)
    words = " ".join(f"word{number}" for number in range(60))
    with Display(quiet=False) as display:
        display.say(f"  ✕ {words}")
        display.build(words, 0, 0)
        display.single(f"{words}.", 0, 1)
    assert capsys.readouterr().err.splitlines() == [f"  ✕ {words}", f"  {words}", f"  {words}."]


def test_no_promise_before_a_quarter_of_the_cost_is_made() -> None:
    """3 of 13 runs made, and the 10 that wait are the long ones: 1:39 was promised, and it took 11 minutes."""
    short, long = _plan(1_000_000), _plan(5_000_000_000, 60.0)
    made = [Outcome(_job(short), verdict="pass", wall_s=2.0) for _ in range(3)]
    rest = Rest(13, 9 * expected_core_s(long))
    assert time_left([_work(long, 5.0, 0.05)], made, rest) is None
    made += [Outcome(_job(long), verdict="pass", wall_s=60.0) for _ in range(4)]
    assert time_left([_work(long, 5.0, 0.05)], made, Rest(13, 5 * expected_core_s(long))) is not None


def test_a_run_that_takes_longer_than_its_cost_says_has_time_left() -> None:
    plan = _plan(300_000_000)
    made = [Outcome(_job(plan), verdict="pass", wall_s=5.0) for _ in range(9)]
    left = time_left([_work(plan, 300.0, 0.5)], made, Rest(10, 0.0))
    assert left is not None and left == pytest.approx(300.0, rel=0.01)


def test_nothing_left_is_not_said() -> None:
    assert progress.time_left_text(0.4) == ""
    assert progress.time_left_text(99.0) == "  about 1:39 left"


def test_a_step_says_how_far_it_is_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    display = Display(quiet=False)
    text = io.StringIO()
    display.console = Console(file=text, force_terminal=False, width=120)
    display.live = False
    now = [1000.0]
    monkeypatch.setattr("howdah.work.display.time.monotonic", lambda: now[0])
    for done in range(101):
        display.build("pack files", done, 100)
        now[0] += 3.0
    lines = text.getvalue().splitlines()
    assert lines[0] == "  pack files"
    assert lines[1] == "  … pack files 20/100", "no promise before a quarter"
    assert lines[2] == "  … pack files 40/100  about 3:00 left"
    assert lines[-1] == "  … pack files 100/100"
    assert not any("0:00" in line for line in lines)
    for done in range(1, 31):
        display.build("kernel: compile", done, 0)
        now[0] += 3.0
    assert text.getvalue().splitlines()[-1] == "  … kernel: compile 21", "of a first build nobody knows the whole"


CURVES, AGAIN = "curves of the report", "compute results again"
CLAIMS, PAGES = "claims and reports", "pages of the site"
Bars = list[tuple[str, int, int]]


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> Bars:
    """What a terminal shows, bar by bar."""
    seen: Bars = []
    drawn = Display._bar

    def spy(display: Display, key: str, description: str, done: int, total: int, note: str) -> None:
        seen.append((description, done, total))
        assert note.startswith(f"{done}/{total}" if total else ""), note
        drawn(display, key, description, done, total, note)

    monkeypatch.setattr(Display, "_bar", spy)
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes the place for a terminal then
    return seen


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at the clock is 20 s later than the last."""
    now = [0.0]

    def later() -> float:
        now[0] += 20.0
        return now[0]

    monkeypatch.setattr("howdah.work.display.time.monotonic", later)


def _counted(bars: Bars, what: str) -> list[tuple[int, int]]:
    return [(done, total) for named, done, total in bars if named == what]


def _report(place: Path, *more: str) -> int:
    root = make_experiment(place, Scenario(algorithms=("cubic", "bbr"), repetitions=4, flows=1, duration_s=3.0))
    return main(["report", str(root), "--without-prometheus", *more])


def _atlas(place: Path, monkeypatch: pytest.MonkeyPatch, *more: str) -> Callable[[], int]:
    made = make_judged_atlas(place)

    def catalogue() -> Catalogue:
        return made.read()

    def chapters(*_place: object, **_how: object) -> list[Chapter]:
        return made.chapters()

    monkeypatch.setattr(atlas, "read_catalogue", catalogue)
    monkeypatch.setattr(atlas, "read_chapters", chapters)
    return lambda: main(["atlas", "--no-run", "--runs", str(made.runs), *more])


def test_a_report_counts_its_runs(tmp_path: Path, bars: Bars) -> None:
    assert _report(tmp_path) == 0
    assert _counted(bars, CURVES) == [(number, 8) for number in range(1, 9)]


@pytest.mark.usefixtures("slow")
def test_a_report_has_a_line_a_minute(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _report(tmp_path) == 0
    lines = capsys.readouterr().err.splitlines()
    assert f"  {CURVES}" in lines
    told = [line for line in lines if line.startswith(f"  … {CURVES} ")]
    assert 2 <= len(told) < 8, "a line a minute, not one a run"
    assert "  about " in told[0], "of equal parts, a quarter of which is made"
    assert not any("0:00" in line for line in lines)


def test_results_that_are_computed_again_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = figured_experiment.make(tmp_path)
    number = len(results.runs_of(root))
    monkeypatch.setattr(results, "_refreshed", lambda run, _force: (run, None))
    heard: Bars = []
    results.bring_up_to_date(root, force=True, progress=lambda *step: heard.append(step))
    assert heard == [(AGAIN, done, number) for done in range(number + 1)]


def test_an_atlas_counts_its_reports_and_its_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bars: Bars) -> None:
    _atlas(tmp_path, monkeypatch)()
    claims, pages = _counted(bars, CLAIMS), _counted(bars, PAGES)
    assert claims == [(done, claims[0][1]) for done in range(claims[0][1] + 1)], "the first bar is there at once"
    entries = len(make_judged_atlas(tmp_path / "other").read().entries)
    assert pages == [(done, entries) for done in range(1, entries + 1)]


def test_an_atlas_has_lines_of_its_steps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_LINE_EVERY_S", 0.0)
    _atlas(tmp_path, monkeypatch)()
    lines = capsys.readouterr().err.splitlines()
    for step in (CLAIMS, PAGES):
        assert f"  {step}" in lines
    assert any(line.startswith(f"  … {PAGES} 2/") for line in lines)
    assert not any("0:00" in line for line in lines)


def test_nothing_is_said_beside_an_answer_in_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _report(tmp_path, "--json") == 0
    said = capsys.readouterr().err.splitlines()
    assert all(line.startswith("howdah: ") for line in said), "warnings may stand there, steps may not"
