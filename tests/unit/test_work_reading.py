# SPDX-License-Identifier: Apache-2.0
"""Every command that shows results shows those of today's analysis, from files that are what was recorded.

A stand-in takes the place of engine, worker and analysis: what is true is what the analysis says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import howdah
from howdah.atlas import work as atlas
from howdah.atlas.chapter import Chapter
from howdah.atlas.work import Sitting
from howdah.bisect import session
from howdah.bisect.session import KernelTrial
from howdah.build.cache import Cache
from howdah.command import run as run_command
from howdah.command.main import main
from howdah.errors import HowdahError
from howdah.library.index import Index
from howdah.place import PROJECT
from howdah.plan.plan import Plan
from howdah.profile import load
from howdah.publish import serve
from howdah.record import directory as state
from howdah.record.digest import MismatchError
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.provenance import analysis_sha256
from howdah.record.result import Experiment
from howdah.record.run import EngineReport, KernelOrigin, ModuleOrigin, read_record, write_record
from howdah.work import again, analysis, prepared, stage
from howdah.work.compiled import compile_plans
from howdah.work.display import Display
from tests.claim_factory import write_profile
from tests.nightly_factory import write_suite
from tests.unit.results_stand_in import FALSE, TRUE, WORKER, results
from tests.unit.stand_in import stand_in

CLAIMS = """\
- id: window
  says: The window at the exit is what it is.
  value: {metric: exit_cwnd_packets, flow: 1, at: {algorithm: cubic}}
  expect: {above: 1}
"""


class _Engine:
    parallel = True

    def __init__(self, name: str) -> None:
        self.name = name

    def prepare(self, _plans: Sequence[Plan], _progress: object) -> dict[str, Any]:
        return {"engine": "stand-in"}

    def run(self, directory: RunDirectory, _plan: Plan, _progress: object) -> EngineReport:
        (directory.raw / "agent.json").write_text("{}")
        return EngineReport(kernel=KernelOrigin(release="6.12.1"))


_MAKE_RUNS = ("run", "nightly", "validate")


class Bench:
    """A directory with a profile, and every command over its runs. Each gives what it shows, as text."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.runs, self.capsys, self.monkeypatch = root, root / "runs", capsys, monkeypatch
        self.profile = write_profile(root, CLAIMS, repetitions=3)
        self.suite = write_suite(root / "suite")
        self.code = 0

    def howdah(self, *words: str) -> str:
        self.capsys.readouterr()
        one = ["--jobs", "1"] if words[0] in _MAKE_RUNS else []  # a second worker would be started for two runs
        self.code = main([*words, *one, "--runs", str(self.runs)])
        said = self.capsys.readouterr()
        return said.out + said.err

    def run(self, *more: str) -> str:
        return self.howdah("run", str(self.profile), "--no-report", *more)

    def run_json(self) -> str:
        return self.run("--json")

    def compare(self) -> str:
        page = self.root / "page.html"
        return self.howdah("compare", "made", "--without-prometheus", "--output", str(page)) + _text(page)

    def report(self) -> str:
        return self.howdah("report", "made", "--without-prometheus") + _text(self.runs / "made" / "report.html")

    def claims(self) -> str:
        return self.howdah("claims", "made")

    def export(self) -> str:
        return self.howdah("export", "made")

    def rerun(self) -> str:
        self.howdah("rerun", self.one("cubic-r0").name)
        reruns = [_text(file) for file in self.runs.glob("reruns/*/metrics.json")]
        return "".join(reruns) + _text(self.one("cubic-r0") / "metrics.json")

    def serve(self) -> str:
        seen: list[Experiment] = []

        def build(experiment: Experiment, _prometheus: object) -> list[Path]:
            seen.append(experiment)
            return []

        self.monkeypatch.setattr(serve, "build_experiment", build)
        found = serve.Importer(self.runs, self.root / "data", SimpleNamespace()).look()  # type: ignore[arg-type]
        self.code = 0 if found[0] else 6
        return str([run.metrics for experiment in seen for run in experiment.runs])

    def nightly(self) -> str:
        base = self.root / "base"
        said = self.howdah("nightly", str(self.suite), "--accept", "--baseline", str(base))
        return said + "".join(_text(file) for file in base.glob("*.json"))

    def atlas(self) -> str:
        chapter = Chapter(load(self.profile), self.runs / "made", results=self.root / "published")
        with Display(quiet=True) as display:
            sitting = Sitting("now", quick=False)
            atlas.make([chapter], 1, False, display, sitting)
            atlas.conclude([chapter], 1, display)
            atlas.publish_complete([chapter], display)
        self.code = 6 if chapter.problems else 0
        experiment = chapter.experiment()
        shown = [run.metrics for run in experiment.runs] if experiment else []
        return f"{chapter.problems}{shown}" + "".join(_text(file) for file in self.root.glob("published/*.json"))

    def validate(self) -> str:
        return self.howdah("validate", str(self.profile)).replace(" ", "")

    def bisect(self) -> str:
        cache = Cache(self.root / "cache")
        cache.root.mkdir(exist_ok=True)
        tree = self.root / "tree"
        tree.mkdir(exist_ok=True)
        self.monkeypatch.setattr(session, "build_revision", lambda *_arguments: None)
        judge = KernelTrial(load(self.profile), ["window"], self.runs, 1, lambda *_: None, lambda *_: None, cache)
        answer = judge(tree)
        self.code = 0 if answer.verdict == "good" else 6
        return answer.why

    def one(self, run: str) -> Path:
        return next(path for path in self.runs.glob(f"*/{run}-*") if "reruns" not in path.parts)

    def doctor(self, **changes: Any) -> None:
        """Another number into every metrics.json there is, and ``changes`` into every run.json."""
        found = [path for path in self.runs.glob("*/*/metrics.json") if "reruns" not in path.parts]
        assert found
        for file in found:
            run = RunDirectory(file.parent)
            metrics = read_json(run.metrics)
            metrics["rows"][0]["value"] = FALSE
            write_json(run.metrics, metrics)
            write_json(run.provenance, {**read_json(run.provenance), **changes})


def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.exists() else ""


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    monkeypatch.setattr(
        prepared, "WORKER", stand_in(tmp_path / "worker.py", WORKER.replace("ANALYSIS", repr(analysis_sha256())))
    )
    for module in (prepared, again, stage):
        monkeypatch.setattr(module, "find_engine", _Engine)
    monkeypatch.setattr(analysis, "analyse", lambda run, _plan, _timed: results(run))
    return Bench(tmp_path, monkeypatch, capsys)


# What a command prints of an experiment that ``run`` made, or of one that it made itself.
_OWN = ("nightly", "atlas", "validate", "bisect")
_COMMANDS = ("run", "run_json", "compare", "report", "claims", "export", "rerun", "serve", *_OWN)


def _shows(text: str, value: int) -> bool:
    """Outside of digests, which may have its digits, too."""
    return str(value) in re.sub(r"[0-9a-f]{40,}", "", text)


def _made(bench: Bench, command: str) -> Callable[[], str]:
    shown: Callable[[], str] = getattr(bench, command)
    if command in _OWN:
        shown()
    else:
        bench.run()
    return shown


@pytest.mark.parametrize("command", _COMMANDS)
def test_results_of_another_analysis_are_made_again_before_they_are_shown(bench: Bench, command: str) -> None:
    shown = _made(bench, command)
    bench.doctor(analysis_sha256="older")
    text = shown()
    assert not _shows(text, FALSE)
    if command != "export":  # what it writes has no measures
        assert _shows(text, TRUE)
    for file in bench.runs.glob("*/*/metrics.json"):
        if command != "rerun" or file.parent.name.startswith("cubic-r0"):
            assert read_json(file)["rows"][0]["value"] == TRUE
            assert read_json(file.with_name("run.json"))["analysis_sha256"] == analysis_sha256()


@pytest.mark.parametrize("command", [each for each in _COMMANDS if each != "rerun"])
def test_a_number_that_somebody_wrote_is_refused_and_not_shown(bench: Bench, command: str) -> None:
    shown = _made(bench, command)
    bench.doctor()
    try:
        text = shown()
    except HowdahError as error:
        text, bench.code = str(error), error.exit_code
    assert bench.code != 0
    assert not _shows(text, FALSE)
    if command != "serve":  # which logs it
        assert "metrics.json" in text
        assert "was changed after it was recorded" in text.replace("\n", " ") or command == "validate"


def test_rerun_says_what_was_written_and_what_is_true(bench: Bench) -> None:
    bench.run()
    bench.doctor()
    text = bench.howdah("rerun", bench.one("cubic-r0").name)
    assert bench.code == 6
    assert f"metrics.json exit_cwnd_packets of flow 1: {FALSE} against {TRUE}" in text
    assert "metrics.json was changed after it was recorded" in text


_RELEASE = "6.12.1"


@pytest.mark.parametrize("release", [_RELEASE, "6.99.0"])
def test_rerun_always_says_what_it_was_made_on(bench: Bench, release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.run()
    monkeypatch.setattr(_Engine, "run", _engine_of(release))
    text = bench.howdah("rerun", bench.one("cubic-r0").name)
    assert text.startswith("equal: ")
    if release == _RELEASE:
        assert "same kernel, guest tree, modules and howdah" in text
    else:
        assert "changed since the original run: kernel: 6.12.1" in text
        assert "now 6.99.0" in text


def test_rerun_names_the_module_whose_header_alone_changed(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ``srcversion`` is of its own source; its file differs. A record without the file's digest says nothing."""
    made = [ModuleOrigin(srcversion="AAAA", sha256=digest * 64, source=digest) for digest in "12"]

    same = ModuleOrigin(srcversion="BBBB", sha256="3" * 64)
    bench.run()
    run = RunDirectory(bench.one("cubic-r0"))

    def rerun(before: ModuleOrigin, now: ModuleOrigin) -> str:
        write_record(run, read_record(run).replaced(modules={"ss_mine": before, "ss_other": same}))
        modules = {"ss_mine": now, "ss_other": same}
        report = EngineReport(kernel=KernelOrigin(release=_RELEASE), modules=modules)
        monkeypatch.setattr(_Engine, "run", _engine_of(_RELEASE, report))
        return bench.howdah("rerun", run.path.name)

    text = rerun(*made)
    change = "changed since the original run: module ss_mine: AAAA (file 111111111111), now AAAA (file 222222222222)"
    assert change in text
    assert "ss_other" not in text
    assert text.count("changed since") == 1
    before = made[0].model_copy(update={"sha256": None})
    assert "same kernel, guest tree, modules" in rerun(before, made[1])
    other = made[1].model_copy(update={"srcversion": "CCCC"})
    assert "changed since the original run: module ss_mine: AAAA, now CCCC\n" in rerun(before, other)


def _engine_of(release: str, report: EngineReport | None = None) -> Callable[..., EngineReport]:
    def run(_self: object, directory: RunDirectory, _plan: Plan, _progress: object) -> EngineReport:
        (directory.raw / "agent.json").write_text("{}")
        return report or EngineReport(kernel=KernelOrigin(release=release))

    return run


def test_who_makes_runs_brings_those_that_are_there_up_to_date_first(bench: Bench) -> None:
    """And one whose files were changed stops no other, where a command goes on after errors."""
    bench.run()
    bench.doctor(analysis_sha256="older")
    assert bench.run().count("analysed again") == 6
    assert "analysed again" not in bench.run()
    changed = RunDirectory(bench.one("reno-r1"))
    results(changed, FALSE)
    told: list[str] = []
    for keep_going in (True, False):
        with ExitStack() as locks:
            profile = load(bench.profile)
            experiment = prepared.hold(bench.runs / "made", locks)
            ready = prepared.prepare(experiment, profile, compile_plans(profile), lambda *_: None)
            outcomes = prepared.make([ready], 1, False, lambda *_: None, keep_going=keep_going, tell=told.append)
        errors = [outcome for outcome in outcomes if outcome.error is not None]
        assert [outcome.cell.plan.run for outcome in errors] == ["reno-r1"]
        assert isinstance(errors[0].error, MismatchError)
        assert [outcome.reused for outcome in outcomes].count(True) == (5 if keep_going else 0)
    assert told == []
    assert bench.run("--again").count("pass ") >= 6
    assert bench.code == 0, "made anew, it is what it says"


def test_a_list_of_runs_tells_no_verdict_of_another_analysis_as_if_it_were_todays(bench: Bench) -> None:
    bench.run()
    assert "pass" in bench.howdah("list", "runs")
    bench.doctor(analysis_sha256="older")
    rows = json.loads(bench.howdah("list", "runs", "--json"))["runs"]
    assert {(row["verdict"], row["outdated"]) for row in rows} == {("pass", True)}
    bench.claims()
    rows = json.loads(bench.howdah("list", "runs", "--json"))["runs"]
    assert {(row["verdict"], row["outdated"]) for row in rows} == {("pass", False)}
    for file in bench.runs.glob("*/*/verdict.json"):
        write_json(file, {"format": 1, "verdict": "fail", "checks": []})
    rows = json.loads(bench.howdah("list", "runs", "--json"))["runs"]
    assert {(row["verdict"], row["changed"]) for row in rows} == {(None, True)}


def test_a_verdict_that_comes_out_otherwise_is_in_the_index(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.run()
    bench.doctor(analysis_sha256="older")

    def invalid(run: RunDirectory, _plan: Plan, _timed: object) -> None:
        results(run)
        write_json(run.verdict, {"format": 1, "verdict": "invalid", "checks": []})

    monkeypatch.setattr(analysis, "analyse", invalid)
    bench.report()
    index = read_json(bench.runs / "made" / "experiment.json")
    assert {cell["verdict"] for cell in index["cells"]} == {"invalid"}


def test_a_sweep_of_many_runs_leaves_rows_of_them(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """And rows of a run that was changed since are in nobody's tables."""
    monkeypatch.setattr(run_command, "INDEXED_RUNS", 6)
    monkeypatch.setattr(state, "STEP_NS", -(10**12))  # what was written just now is old enough
    bench.run()
    index = Index.open(bench.runs / "made")
    assert index is not None
    assert sorted(index.known) == sorted(path.parent.name for path in bench.runs.glob("made/*/run.json"))
    assert set(index.table("metrics")["value"].to_pylist()) >= {TRUE}
    bench.doctor()
    with pytest.raises(MismatchError, match=r"metrics\.json was changed after it was recorded"):
        len(howdah.load(bench.runs / "made").metrics)


def test_claims_of_other_runs_are_not_shown(bench: Bench) -> None:
    """An old claims.json is judged again by what shows it, and gone while the runs are made anew."""
    bench.run()
    file = bench.runs / "made" / "claims.json"
    claims = read_json(file)
    claims["claims"][0]["measured"]["text"] = f"{FALSE} packets"
    write_json(file, claims)
    assert not _shows(bench.compare(), FALSE)
    assert not _shows(_text(file), FALSE)


def test_runs_without_digests_are_named(bench: Bench) -> None:
    bench.run()
    for file in bench.runs.glob("*/*/run.json"):
        write_json(file, {name: value for name, value in read_json(file).items() if name != "digests"})
    assert "6 runs of made have no digests" in bench.compare()


def test_sources_that_were_changed_are_not_analysed(bench: Bench) -> None:
    """Else an outdated analysis would be a way to have any raw record taken for the guest's."""
    bench.run()
    bench.doctor(analysis_sha256="older")
    (bench.one("cubic-r0") / "raw" / "agent.json").write_text('{"flows": []}')
    text = bench.report()
    assert bench.code == 6
    assert "raw/agent.json was changed after it was recorded" in text


def test_results_whose_analysis_was_killed_are_made_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.run()
    run = RunDirectory(bench.one("cubic-r0"))

    def killed(directory: RunDirectory, _plan: Plan, _timed: object) -> None:
        results(directory, FALSE)
        raise KeyboardInterrupt

    monkeypatch.setattr(analysis, "analyse", killed)
    assert main(["report", "made", "--reanalyse", "--runs", str(bench.runs)]) == 130
    assert read_json(run.provenance)["analysis_sha256"] is None
    assert [name for name in read_json(run.provenance)["digests"] if name.startswith(("metrics", "verdict"))] == []
    monkeypatch.setattr(analysis, "analyse", lambda directory, _plan, _timed: results(directory))
    assert not _shows(bench.compare(), FALSE)
    assert read_json(run.metrics)["rows"][0]["value"] == TRUE
