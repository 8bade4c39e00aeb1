# SPDX-License-Identifier: Apache-2.0
"""A search with a worker that makes no run, but computes what one would measure: what is found, shrunk and proven."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.sought import PROFILE

pytest.importorskip("optuna", reason="optuna is not installed")

from howdah.command.main import main
from howdah.counterexample.goal import read_goal
from howdah.counterexample.session import COUNTEREXAMPLE_NAME, SEARCH_NAME, SearchResult, SearchSession
from howdah.counterexample.space import read_space
from howdah.counterexample.trial import Trials
from howdah.distribution import install_extra
from howdah.errors import HowdahError
from howdah.profile import load
from howdah.record.provenance import analysis_sha256
from howdah.work import prepared
from tests.unit.stand_in import stand_in

# The flow leaves early where the round trip is longer than 100 ms and the rate above 5 Mbit/s; deep buffers help it.
WORKER = """
    import json, sys, pathlib
    directory = pathlib.Path(sys.argv[1])
    plan = json.loads((directory / "plan.json").read_text())
    path, record = plan["path"], json.loads((directory / "run.json").read_text())
    with pathlib.Path(LOG).open("a") as log:
        log.write(directory.parent.name + "\\n")
    early = path["rtt_us"] > 100_000 and path["rate_bits_per_second"] > 5_000_000
    value = 0.1 + 0.01 * (path["buffer_bytes"] > 3 * path["bdp_bytes"]) if early else 1.0
    if BROKEN and (early or BROKEN == "always"):
        (directory / "verdict.json").write_text(json.dumps({"format": 1, "verdict": "invalid", "checks": []}))
        crashed = "console.log: the guest's kernel panicked: a bad address\\n"
        error = crashed if BROKEN == "crash" else "the run hangs\\n  Last lines:"
        record |= {"status": "failed", "error": error}
        (directory / "run.json").write_text(json.dumps(record))
        print(json.dumps({"verdict": "invalid", "failed": True}))
        raise Ended
    if WITHOUT and early:
        value = None
    row = {"run": plan["run"], "flow": 1, "metric": "exit_cwnd_bdp", "value": value, "unit": "ratio"}
    row["why"] = "none seen"
    (directory / "metrics.json").write_text(json.dumps({"format": 1, "rows": [row], "cross_checks": []}))
    verdict = "invalid" if DISPROVED and plan["calibration"]["enabled"] else "pass"
    (directory / "verdict.json").write_text(json.dumps({"format": 1, "verdict": verdict, "checks": []}))
    (directory / "run.json").write_text(json.dumps({**record, "status": "finished", "analysis_sha256": ANALYSIS}))
    print(json.dumps({"verdict": verdict}))
"""


class _Engine:
    parallel = True

    def prepare(self, _plans: Sequence[Any], _progress: object) -> dict[str, Any]:
        return {"image": "one"}


@dataclass
class _Bench:
    root: Path
    monkeypatch: pytest.MonkeyPatch
    said: list[str] = field(default_factory=list)

    def world(self, *, disproved: bool = False, without: bool = False, broken: str = "") -> None:
        text = WORKER.replace("ANALYSIS", repr(analysis_sha256())).replace("LOG", repr(str(self.root / "log")))
        text = text.replace("DISPROVED", str(disproved)).replace("WITHOUT", str(without))
        text = text.replace("BROKEN", repr(broken))
        self.monkeypatch.setattr(prepared, "WORKER", stand_in(self.root / "worker.py", text))
        self.monkeypatch.setattr(prepared, "find_engine", lambda _name: _Engine())

    def session(
        self, bound: str = "0.5", workers: int = 2, runs: str = "runs", overrides: Sequence[str] = ()
    ) -> SearchSession:
        file = self.root / "sought.yaml"
        file.write_text(PROFILE.replace("BOUND", bound), encoding="utf-8")
        profile = load(file, list(overrides))
        assert profile.search is not None
        space, goal = read_space(file, list(overrides), profile.search), read_goal(profile.search, profile.claims)
        directory = self.root / runs / "sought-search"
        directory.mkdir(parents=True, exist_ok=True)
        trials = Trials(space, goal, directory, workers, lambda *_: None, lambda *_: None, self.said.append)
        return SearchSession(space, goal, trials, self.said.append, lambda _: ["Because."])

    @property
    def made(self) -> list[str]:
        return (self.root / "log").read_text().split()


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[_Bench, SearchResult]]:
    """A search that found something, made once; tests copy its runs and go on from there."""
    with pytest.MonkeyPatch.context() as patch:
        made = _Bench(tmp_path_factory.mktemp("searched"), patch)
        made.world()
        found = made.session().run()
    yield made, found


@pytest.fixture
def finished(bench: _Bench, searched: tuple[_Bench, SearchResult]) -> _Bench:
    """A bench in which that search has ended."""
    shutil.copytree(searched[0].root / "runs", bench.root / "runs")
    shutil.copy(searched[0].root / "log", bench.root / "log")
    return bench


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Bench:
    made = _Bench(tmp_path, monkeypatch)
    made.world()
    return made


def _tried(found: SearchResult) -> list[tuple[dict[str, Any], float | None]]:
    return [(dict(each.candidate), each.score.value) for each in found.tried]


def test_what_fails_is_found_made_simple_and_proven(searched: tuple[_Bench, SearchResult]) -> None:
    bench, found = searched
    assert found.simplest is not None
    assert found.proven is not None
    # Rate and buffer are as in the profile, and the other flow is gone. The round trip was that of a corner, 300 ms; it
    # went half of the way to the 40 ms of the profile twice, and no further: at 100 ms the flow does not leave early.
    assert found.simplest.candidate == {"path.rtt": "105 ms"}
    assert found.simplest.more == {"background": [], "duration": "1 s"}
    assert found.proven.runs == 2
    assert found.proven.score.value == pytest.approx((0.5 - 0.1) / 0.5)
    assert [name for name, _ in found.neighbours] == ["path.rtt 104 ms", "path.rtt 106 ms"]
    assert all(each.score.found for _, each in found.neighbours)
    profile = load(bench.root / "runs/sought-search" / COUNTEREXAMPLE_NAME)
    assert profile.claims[0].id == "high"
    assert profile.search is None
    assert "Because." in profile.text


def test_what_is_simpler_and_near_is_within_the_constraints(bench: _Bench) -> None:
    found = bench.session(overrides=["search.constraints=[path.rate <= 8 Mbit/s, path.rtt >= 200 ms]"]).run()
    assert found.simplest is not None
    # The profile's own rate is out of bounds, so the roundest one takes its place.
    assert found.simplest.candidate == {"path.rate": "8 Mbit/s", "path.rtt": "200 ms"}
    assert "path.rtt 199 ms" not in [name for name, _ in found.neighbours]


def test_the_number_of_workers_changes_nothing(bench: _Bench, searched: tuple[_Bench, SearchResult]) -> None:
    one, two = bench.session(workers=1).run(), searched[1]
    assert _tried(one) == _tried(two)
    assert one.simplest == two.simplest


def test_an_interrupted_search_goes_on_without_making_runs_again(
    finished: _Bench, searched: tuple[_Bench, SearchResult]
) -> None:
    made = finished.made
    assert max(Counter(made).values()) == 2  # repetitions of what is confirmed and proven
    again = finished.session().run()
    assert _tried(again) == _tried(searched[1])
    assert finished.made == made


def test_a_claim_that_fails_as_the_profile_is_written_is_told_at_once(bench: _Bench) -> None:
    with pytest.raises(HowdahError, match="already fails with the profile as written: 1 BDP"):
        bench.session(bound="1.5").run()
    assert len(bench.made) == 1


def test_a_profile_that_does_not_run_as_it_is_written_is_told_at_once(bench: _Bench) -> None:
    bench.world(broken="always")
    with pytest.raises(HowdahError, match=r"has no complete run: the run hangs\n"):
        bench.session().run()
    assert len(bench.made) == 1


def test_a_candidate_that_hangs_is_told_and_the_search_goes_on(bench: _Bench) -> None:
    bench.world(broken="early")
    found = bench.session().run()
    assert found.count("none") > 0
    assert len(found.tried) == 16
    told = [line for line in bench.said if line.startswith("no complete run of ")]
    assert len(told) == found.count("none")
    assert all(line.endswith(": the run hangs") and "path.rtt" in line for line in told)


def test_optuna_is_missed_before_the_first_run(bench: _Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(HowdahError, match="a search needs optuna") as raised:
        bench.session().run()
    assert raised.value.hint == install_extra("search")
    assert not (bench.root / "log").exists()


def test_what_another_search_found_is_not_shown_as_of_this_one(
    finished: _Bench, searched: tuple[_Bench, SearchResult]
) -> None:
    bench, found = finished, searched[1]
    kept = bench.root / "runs/sought-search" / COUNTEREXAMPLE_NAME
    assert kept.exists()
    assert bench.session(overrides=["search.budget.candidates=24"]).run().tried[:16] == found.tried[:16]
    assert not any("changed" in line for line in bench.said)
    assert bench.session(bound="0.05").run().simplest is None
    assert any("search.json: the profile, or its seed, has changed since" in line for line in bench.said)
    assert not kept.exists()


def test_a_corpus_that_cannot_be_written_is_told_before_the_first_run(
    bench: _Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    file = bench.root / "sought.yaml"
    file.write_text(PROFILE.replace("BOUND", "0.5"), encoding="utf-8")
    assert main(["search", str(file), "--runs", str(bench.root / "runs"), "--corpus", str(file / "corpus")]) != 0
    said = capsys.readouterr().err
    assert f"{file / 'corpus'}: no counterexample can be kept there" in " ".join(said.split())
    assert "--corpus DIR" in said
    assert not (bench.root / "log").exists()


def test_what_is_not_proven_is_dropped_and_told(bench: _Bench) -> None:
    bench.world(disproved=True)
    found = bench.session().run()
    assert found.simplest is None
    assert found.best is not None
    assert len(found.dropped) == min(8, found.count("failed")) > 0
    assert not (bench.root / "runs/sought-search" / COUNTEREXAMPLE_NAME).exists()


def test_runs_without_the_value_are_no_counterexample(bench: _Bench) -> None:
    bench.world(without=True)
    found = bench.session().run()
    assert found.simplest is None
    assert found.count("none") > 0
    assert found.count("failed") == 0
    assert all("none seen" in each.score.text for each in found.tried if each.score.value is None)


def test_a_crash_of_the_kernel_is_told_made_simple_and_kept(bench: _Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.world(broken="crash")
    found = bench.session().run()
    assert len(found.crashed) == found.count("none") > 1
    told = [each for each in bench.said if each.startswith("the kernel crashed on ")]
    assert "a bad address" in told[0]
    assert len(told) == len(found.crashed)
    assert all(each.endswith(", too") for each in told[1:])
    assert found.crash is not None
    assert found.crash[0].candidate == {"path.rtt": "105 ms"}
    assert found.crash[0].more == {"background": [], "duration": "1 s"}
    file = bench.root / "sought.yaml"
    arguments = ["search", str(file), "--runs", str(bench.root / "runs"), "--corpus", str(bench.root / "corpus")]
    assert main([*arguments, "--json"]) == 0
    answered = json.loads(capsys.readouterr().out)
    assert (answered["crashed"], answered["counterexample"]) == (len(found.crashed), None)
    assert answered["crash"]["values"]["path.rtt"] == "105 ms"
    profile = load(bench.root / "corpus/sought-crash.yaml")
    assert (profile.name, profile.claims, profile.search) == ("sought-crash", [], None)
    assert "# The guest's kernel crashes: the guest's kernel panicked: a bad address." in profile.text
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert f"The guest's kernel crashed on {len(found.crashed)} candidates." in said
    assert "profile of the crash: " in said


def test_a_crash_that_does_not_come_again_is_dropped(bench: _Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.world(broken="crash")
    session = bench.session()
    monkeypatch.setattr(
        session.trials, "confirm", lambda some, _more=None: [session.trials.screen([{}])[0] for _ in some]
    )
    found = session.run()
    assert found.crash is None
    assert any("does not crash again" in each for each in found.dropped)


def test_what_the_command_says_and_leaves(finished: _Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench = finished
    file = bench.root / "sought.yaml"
    file.write_text(PROFILE.replace("BOUND", "0.5"), encoding="utf-8")
    arguments = ["search", str(file), "--runs", str(bench.root / "runs"), "--corpus", str(bench.root / "corpus")]
    assert main([*arguments, "--json"]) == 0
    answered = json.loads(capsys.readouterr().out)
    assert answered["shape"] == "search/1"
    assert answered["tried"] == 16 == answered["failed"] + answered["held"] + answered["without_value"]
    assert answered["counterexample"]["values"]["path.rtt"] == "105 ms"
    page = Path(answered["page"]).read_text(encoding="utf-8")
    assert page.count('class="way ') == 2 * (16 + 1), "wide, and for a phone"
    assert answered["counterexample"]["experiment"] in page
    kept = Path(answered["corpus"])
    assert load(kept).name == "sought-counterexample"
    written = json.loads((bench.root / "runs/sought-search" / SEARCH_NAME).read_text())
    assert written["candidates"] == answered["candidates"]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "105 ms" in said
    assert str(kept) in said


def test_a_search_that_finds_nothing_says_how_much_it_saw(bench: _Bench, capsys: pytest.CaptureFixture[str]) -> None:
    file = bench.root / "sought.yaml"
    file.write_text(PROFILE.replace("BOUND", "0.05"), encoding="utf-8")
    assert main(["search", str(file), "--runs", str(bench.root / "runs")]) == 5
    said = capsys.readouterr().out
    assert "16 candidates" in said
    assert "% of the space" in said
    assert "holds" not in said


def test_a_search_ends_when_enough_was_found(bench: _Bench) -> None:
    found = bench.session(overrides=["search.budget.counterexamples=1", "search.budget.candidates=80"]).run()
    assert found.count("failed") >= 1
    assert len(found.tried) < 80
    before = found.tried[:-8]  # what was asked for together is tried to its end
    assert not any(each.score.found for each in before)
