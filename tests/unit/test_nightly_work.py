# SPDX-License-Identifier: Apache-2.0
"""The queue of a night with a stand-in for engine and worker: what is built, made, kept, resumed and compared."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from howdah.command.main import main
from howdah.errors import EngineUnavailableError, HowdahError
from howdah.plan.plan import Plan
from howdah.record.provenance import analysis_sha256
from howdah.work import prepared
from howdah.work.experiment import ExperimentDirectory
from tests.nightly_factory import write_suite
from tests.unit.stand_in import stand_in

# A run's utilisation is read from a file beside the runs, so that a test can change what a night measures.
WORKER = """
    import json, os, signal, sys, pathlib
    directory = pathlib.Path(sys.argv[1])
    plan = json.loads((directory / "plan.json").read_text())
    control = pathlib.Path(sys.argv[0]).parent
    made = control / "made"
    with made.open("a") as file:
        file.write(plan["run"] + "\\n")
    stop = control / "stop-after"
    if stop.exists() and len(made.read_text().split()) > int(stop.read_text()):
        try:
            (control / "stopped").open("x").close()  # one interruption: a second would meet the test itself
            os.kill(int(sys.argv[2]), signal.SIGTERM)  # SIGINT is ignored by what a shell starts behind it
        except FileExistsError:
            pass
        signal.pause()
    bad = control / "dies"
    if bad.exists() and plan["run"] in bad.read_text().split():
        sys.exit("no such luck")
    record = json.loads((directory / "run.json").read_text())
    value = float((control / "utilisation").read_text()) + plan["repetition"] / 1000
    row = {"run": plan["run"], "flow": None, "metric": "utilisation", "value": value, "unit": "ratio"}
    (directory / "metrics.json").write_text(json.dumps({"format": 1, "rows": [row], "cross_checks": []}))
    (directory / "verdict.json").write_text(json.dumps({"format": 1, "verdict": "pass", "checks": []}))
    record.update(status="finished", analysis_sha256=ANALYSIS, wall_s=0.25)
    (directory / "run.json").write_text(json.dumps(record))
    print(json.dumps({"verdict": "pass"}))
"""


class _Engine:
    name, parallel = "uml", True
    is_here = True
    kernel = "the first"

    def prepare(self, plans: Sequence[Plan], _progress: object) -> dict[str, Any]:
        if not self.is_here:
            raise EngineUnavailableError("no compiler")
        if plans[0].kernel == "debian-6.1":
            time.sleep(0.01)
            raise HowdahError("the kernel configuration rejects required options", where="debian-6.1")
        return {"engine": "stand-in", "kernel": self.kernel}


class _Night:
    """A suite of cubic and reno, ten repetitions, on a kernel that builds and on one that does not."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys = root, capsys
        self.suite = write_suite(root)
        self.measure(0.9)

    def measure(self, value: float) -> None:
        (self.root / "utilisation").write_text(str(value))

    def run(self, *more: str) -> tuple[int, dict[str, Any]]:
        words = ["nightly", str(self.suite), "--baseline", str(self.root / "base"), "--runs", str(self.root / "runs")]
        code = main([*words, "--jobs", "2", "--json", *more])
        out = self.capsys.readouterr().out
        return code, json.loads(out) if out else {}

    def made(self) -> int:
        file = self.root / "made"
        return len(file.read_text().split()) if file.exists() else 0


@pytest.fixture
def night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> _Night:
    worker = stand_in(tmp_path / "worker.py", WORKER.replace("ANALYSIS", repr(analysis_sha256())))
    monkeypatch.setattr(prepared, "WORKER", worker)
    monkeypatch.setattr(prepared, "find_engine", lambda _name: _Engine())
    return _Night(tmp_path, capsys)


def test_a_night_is_accepted_repeated_and_found_worse(night: _Night) -> None:
    code, accepted = night.run("--accept")
    assert code == 0
    assert accepted["not_built"] == ["test-made-debian-6.1"]
    assert night.made() == 20
    code, found = night.run()
    assert (code, found["runs"]) == (0, {"made": 0, "found": 20})
    assert found["states"] == {"equal": 2, "not built": 2}
    assert night.made() == 20, "what is there is not made again"
    night.measure(0.8)
    code, found = night.run("--again")
    assert code == 6
    assert found["states"] == {"not repeatable": 2, "not built": 2}, "the same kernel and plan, on a virtual clock"
    said = found["cells"][0]["reasons"][0]
    assert said.startswith("not repeatable: utilisation: 0.9045 to 0.8045")
    assert said.endswith("differs in 10 of 10 repetitions")
    assert all(cell["wall_s"] > 0 for cell in found["cells"]), "also of what could not be prepared"
    assert night.made() == 40
    code, found = night.run("--again", "--only", "test-made-debian-6.12/reno")
    assert (code, found["states"], night.made()) == (6, {"not repeatable": 1}, 50)


def test_another_kernel_is_compared_by_statistics(night: _Night, monkeypatch: pytest.MonkeyPatch) -> None:
    night.run("--accept")
    monkeypatch.setattr(_Engine, "kernel", "another")
    night.measure(0.8)
    code, found = night.run()
    assert (code, found["states"]) == (6, {"regression": 2, "not built": 2})
    assert "utilisation: 0.9045 to 0.8045" in found["cells"][0]["regressions"][0]
    night.measure(0.9001)
    code, found = night.run("--again")
    assert (code, found["states"]) == (0, {"unchanged": 2, "not built": 2}), "less than what matters"


def test_a_suite_that_can_prove_nothing_is_refused_before_anything_is_built(
    night: _Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = night.suite.read_text()
    night.suite.write_text(text.replace("repetitions: 10", "repetitions: 3"))
    monkeypatch.setattr(prepared, "find_engine", lambda _name: pytest.fail("an engine was asked"))
    for more in ((), ("--accept",)):
        code, said = night.run(*more)
        assert code == 2
        assert said["error"]["where"] == f"{night.suite}:6"
        assert said["error"]["what"].startswith("3 repetitions can prove no change")
        assert "corrected for 24 primary comparisons 0.75, and it has to be below 0.04" in said["error"]["what"]
        assert "Make it 6 repetitions" in said["error"]["hint"]
    assert not (night.root / "runs").exists()


def test_an_interrupted_night_goes_on_where_it_stopped(night: _Night) -> None:
    (night.root / "stop-after").write_text("7")
    code, _ = night.run("--accept")
    assert code == 130
    assert not (night.root / "base").exists(), "half a night is no baseline"
    (night.root / "stop-after").unlink()
    kept = len(list((night.root / "runs" / "test-made-debian-6.12").glob("*/verdict.json")))
    assert 5 <= kept <= 7
    before = night.made()
    assert night.run("--accept")[0] == 0
    assert night.made() == before + 20 - kept
    assert not list((night.root / "runs").rglob(".partial-*"))


def test_a_run_that_fails_tonight_is_a_regression_and_stops_no_other(night: _Night) -> None:
    night.run("--accept")
    (night.root / "dies").write_text("cubic-r3")
    code, found = night.run("--again")
    assert code == 6, found
    cells = {cell["id"].partition("/")[2]: cell for cell in found["cells"] if cell["kernel"] == "debian-6.12"}
    assert cells["reno"]["state"] == "equal"
    assert cells["cubic"]["state"] == "regression"
    assert cells["cubic"]["regressions"][0].startswith("repetition 3 is failed: the process of run cubic-r3 ended")
    assert len(found["problems"]) == 1, "the earlier run of the same key is there, and is not tonight's"


def test_what_is_no_fault_of_a_kernel_is_no_regression(night: _Night, monkeypatch: pytest.MonkeyPatch) -> None:
    night.run("--accept")
    with ExperimentDirectory(night.root / "runs" / "test-made-debian-6.12").locked():
        code, said = night.run()
    assert code == 1
    assert "another howdah" in said["error"]["what"]
    monkeypatch.setattr(_Engine, "is_here", False)
    code, said = night.run()
    assert (code, said["error"]["what"]) == (3, "no compiler")
    assert not (night.root / "runs" / "test.nights").exists()


def test_results_of_an_older_analysis_are_not_compared(night: _Night) -> None:
    """Runs whose data are there are analysed again (as by ``howdah report``); those without are made again."""
    night.run("--accept")
    for record in (night.root / "runs").glob("*/cubic-r*/run.json"):
        written = json.loads(record.read_text())
        record.write_text(json.dumps({**written, "analysis_sha256": "older", "data_removed": True}))
    code, found = night.run()
    assert (code, found["states"]) == (0, {"equal": 2, "not built": 2})
    assert night.made() == 30, "cubic's ten runs once more"
