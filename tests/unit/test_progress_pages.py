# SPDX-License-Identifier: Apache-2.0
"""What report and atlas say while they work: counted steps, on a terminal as bars and elsewhere as lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from howdah.atlas import command as atlas
from howdah.atlas.catalogue import Catalogue
from howdah.atlas.chapter import Chapter
from howdah.command.main import main
from howdah.work import display as progress
from howdah.work import results
from howdah.work.display import Display
from tests.atlas_factory import make_judged_atlas
from tests.experiment_factory import Scenario, make_experiment
from tests.unit import figured_experiment

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
