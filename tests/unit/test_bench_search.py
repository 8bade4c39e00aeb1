# SPDX-License-Identifier: Apache-2.0
"""The benchmarks of the search: gaps between controls, and scores as AdvNet has them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("optuna", reason="optuna is not installed")

from howdah.counterexample.goal import CandidateScore
from howdah.counterexample.space import read_space
from howdah.counterexample.trial import Tried
from howdah.profile import load
from tests.bench import breaks
from tests.bench.advnet import LOGS, lost
from tests.bench.breaks import Breaks, refuted_in
from tests.bench.breaks_path import EARLY, OVER, SLOW, places
from tests.bench.breaks_written import ALL_OVERSHOOT, profile_name, profile_text
from tests.bench.gaps import CONTROLS, METRIC, OVERRIDES, PROFILE, Gaps, changed, search, shares


def test_the_table_has_the_largest_gap_of_each_ordered_pair() -> None:
    found = Gaps()
    found.add({"path.rtt": "2 ms"}, {"bbr": 0.9, "cubic": 0.5})
    found.add({"path.rtt": "4 ms"}, {"bbr": 0.8, "cubic": 0.7, "reno": 0.75})
    gap, path = found.best["cubic", "bbr"]
    assert (round(gap, 3), path) == (0.4, {"path.rtt": "2 ms"})
    assert round(found.best["bbr", "cubic"][0], 3) == -0.1  # it never did worse
    rows = list(found.rows())
    assert len(rows) == 2 + len(CONTROLS)
    cells = [each.strip() for each in rows[2 + CONTROLS.index("cubic")].strip("|").split("|")]
    assert cells[0] == "cubic"
    assert cells[1 + CONTROLS.index("bbr")] == "40"
    assert cells[1 + CONTROLS.index("cubic")] == "–"


def test_a_changed_path_is_of_the_space_and_the_same_for_the_same_seed() -> None:
    profile = load(PROFILE, OVERRIDES)
    assert len(profile.cells()) == len(CONTROLS) * profile.repetitions
    assert profile.search is not None
    space = read_space(PROFILE, OVERRIDES, profile.search)
    before = space.draw(random.Random(5))
    several = [[changed(space, before, chance) for _ in range(50)] for chance in (random.Random(1), random.Random(1))]
    assert several[0] == several[1]
    for each in several[0]:
        assert sum(each[name] != before[name] for name in before) <= 2
        assert all(each[name] in space.variables[name].values for name in each)
    assert len({json.dumps(each) for each in several[0]}) > 30


def test_the_first_paths_are_corners_and_the_best_of_pairs_are_changed_at_last(tmp_path: Path) -> None:
    profile = load(PROFILE, OVERRIDES)
    assert profile.search is not None
    space = read_space(PROFILE, OVERRIDES, profile.search)
    batches: list[list[dict[str, object]]] = []

    def screen(some: list[dict[str, object]]) -> list[Tried]:
        batches.append(some)
        return [Tried(each, CandidateScore(None, False, ""), "", 1) for each in some]

    search(SimpleNamespace(space=space, screen=screen, directory=tmp_path), 20, 1)  # type: ignore[arg-type]
    ends = [
        [each[name] in (space.variables[name].values[0], space.variables[name].values[-1]) for name in each]
        for batch in batches
        for each in batch
    ]
    assert [all(each) for each in ends] == [True] * 8 + [False] * 12


@pytest.mark.parametrize(
    ("verdict", "value", "counts"), [("pass", 0.5, True), ("invalid", 0.5, False), ("pass", None, False)]
)
def test_what_is_invalid_or_not_measured_is_no_share(
    tmp_path: Path, verdict: str, value: float | None, counts: bool
) -> None:
    run = tmp_path / "cubic-no-hystart-r0-0123abcd"
    run.mkdir()
    (run / "metrics.json").write_text(json.dumps({"rows": [{"metric": METRIC, "value": value}]}))
    (run / "verdict.json").write_text(json.dumps({"verdict": verdict}))
    assert shares(tmp_path) == ({"cubic-no-hystart": 0.5} if counts else {})


def test_a_score_counts_payload() -> None:
    """A path that is used to the full has 66 bytes of headers in each frame of 1514, which did not arrive."""
    assert lost(Tried({}, CandidateScore(-1.0, True, ""), "", 1)) == pytest.approx(66 / 1514)
    assert lost(Tried({}, CandidateScore(0.0, True, ""), "", 1)) == 1
    assert all(len(row) == 4 for row in LOGS.values())


def test_a_start_up_breaks_on_the_smallest_path_and_what_repetitions_refute_is_dropped() -> None:
    small, larger = places()[:2]
    assert (small.odd, small.name) == (0, "10mbit-40ms")
    assert [each.odd for each in places()] == sorted(each.odd for each in places())
    found = Breaks()
    over = {"peak_cwnd_packets": 4 * small.bdp_packets, "exit_cwnd_bdp": 4.0, "exit_cause": "loss"}
    early = {"exit_cwnd_bdp": 0.1, "exit_cause": "delay", "time_to_1_mb_s": 4.0, "held_back_by": "congestion-window"}
    found.add(small, {"one": {**over, "time_to_1_mb_s": 1.0}, "two": early, "lost": {**early, "exit_cause": "loss"}})
    found.add(larger, {"one": {**over, "time_to_1_mb_s": 1.0}})
    kept = {key: each.place for key, each in found.found.items()}
    assert kept == {("one", OVER): small, ("two", EARLY): small, ("two", SLOW): small, ("lost", SLOW): small}
    assert "two-leaves-early" in profile_text(small, found.by_place()[small])
    found.drop({profile_name(small): {"two-leaves-early", ALL_OVERSHOOT}})
    assert set(found.found) == {("two", SLOW), ("lost", SLOW)}


def test_what_was_refuted_stays_so_when_it_is_not_claimed_any_more(tmp_path: Path) -> None:
    runs, remembered = tmp_path / "runs", tmp_path / "refuted.json"

    def judged(**verdicts: str) -> dict[str, set[str]]:
        (runs / "breaks-a").mkdir(parents=True, exist_ok=True)
        rows = [{"id": name, "verdict": verdict} for name, verdict in verdicts.items()]
        (runs / "breaks-a/claims.json").write_text(json.dumps({"claims": rows}))
        return refuted_in(runs, remembered)

    assert judged(early="fail", late="pass", why="fail") == {"breaks-a": {"early", "why"}}
    assert judged(early="fail", late="pass") == {"breaks-a": {"early", "why"}}, "why was left out of the profile"
    assert judged(early="pass", late="fail") == {"breaks-a": {"late", "why"}}


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command leaves the process of the tests as it is."""
    for name in ("collect_rarely", "leave_pandas_out"):
        monkeypatch.setattr(breaks, name, lambda: None)


@pytest.mark.usefixtures("here")
def test_runs_without_claims_prove_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["breaks", "--runs", str(tmp_path / "runs"), "--proven", str(tmp_path)])
    with pytest.raises(SystemExit) as ended:
        breaks.main()
    assert ended.value.code == 2
    assert "has no breaks-*/claims.json: run what --write made" in capsys.readouterr().err


@pytest.mark.usefixtures("here")
def test_profiles_have_a_directory_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ran(*_asked: object) -> Breaks:
        assert (tmp_path / "a" / "profiles").is_dir()
        return Breaks()

    monkeypatch.setattr(breaks, "search", ran)
    asked = ["breaks", "--runs", str(tmp_path / "runs"), "--write", str(tmp_path / "a" / "profiles")]
    monkeypatch.setattr("sys.argv", asked)
    assert breaks.main() == 0
