# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in one run costs that run: it is kept as failed, and whoever makes the others hears no error."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from howdah.errors import EngineUnavailableError, HowdahError
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.provenance import first_record
from howdah.record.run import EngineReport, write_record
from howdah.work import analysis, stage
from tests.experiment_factory import Scenario, make_experiment
from tests.unit.recorded_run import recorded_plan


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    found = RunDirectory(tmp_path / "run")
    found.raw.mkdir(parents=True)
    text = recorded_plan().to_json()
    found.plan.write_text(text)
    write_record(found, first_record(text, "key"))
    return found


def _execute(directory: RunDirectory, monkeypatch: pytest.MonkeyPatch, *, engine: Any = None, analysis: Any) -> str:
    def run(*_arguments: object) -> EngineReport:
        if engine is not None:
            raise engine
        return EngineReport()

    def analyse(*_arguments: object) -> None:
        raise analysis

    monkeypatch.setattr(stage, "find_engine", lambda _name: SimpleNamespace(run=run))
    monkeypatch.setattr("howdah.work.analysis.analyse", analyse)
    return stage.execute(directory, lambda _phase, _done, _total: None)


@pytest.mark.parametrize(
    ("error", "of_engine", "said"),
    [
        (pa.ArrowInvalid("Value 4294967096"), False, "the records of this run cannot be analysed: ArrowInvalid"),
        (
            RuntimeError("no such thing"),
            True,
            "howdah met an error of its own in this run: RuntimeError: no such thing",
        ),
    ],
)
def test_what_fails_in_one_run_is_that_runs_failure(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch, error: Exception, of_engine: bool, said: str
) -> None:
    assert _execute(directory, monkeypatch, engine=error if of_engine else None, analysis=error) == "invalid"
    assert said in read_json(directory.provenance)["error"]
    assert read_json(directory.provenance)["status"] == "failed"
    assert said in read_json(directory.verdict)["checks"][0]["message"]
    assert type(error).__name__ in directory.log.read_text()


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), EngineUnavailableError("there is no kernel")]
)
def test_what_every_run_would_meet_is_raised(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    with pytest.raises(type(error)):
        _execute(directory, monkeypatch, engine=error, analysis=error)


class _Engine:
    def run(self, *_arguments: object) -> EngineReport:
        return EngineReport()


@pytest.fixture
def execute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Exception], RunDirectory]:
    """Make one run whose analysis raises an error; its directory."""
    root = make_experiment(tmp_path, Scenario(algorithms=("cubic",), repetitions=1, flows=1, duration_s=1.0))
    directory = RunDirectory(next(root.glob("cubic*/")))
    write_json(directory.provenance, {"status": "running", "stages": []})
    directory.raw.mkdir(exist_ok=True)
    (directory.raw / "trace.bin").write_bytes(b"kept")
    monkeypatch.setattr(stage, "find_engine", lambda _name: _Engine())

    def make(error: Exception) -> RunDirectory:
        def analyse(*_arguments: object) -> None:
            raise error

        monkeypatch.setattr(analysis, "analyse", analyse)
        assert stage.execute(directory, lambda _phase, _done, _of: None) == "invalid"
        return directory

    return make


@pytest.mark.parametrize(
    "error",
    [pa.ArrowInvalid("Integer value 4294967096 not in range"), HowdahError("no field snd_cwnd", where="trace.format")],
    ids=["tripped", "told"],
)
def test_it_is_the_run_that_failed(error: Exception, execute: Callable[[Exception], RunDirectory]) -> None:
    directory = execute(error)
    record = read_json(directory.provenance)
    assert record["status"] == "failed"
    assert str(error).splitlines()[0].split(": ")[-1] in record["error"]
    (check,) = read_json(directory.verdict)["checks"]
    assert (check["ok"], check["message"]) == (False, record["error"])
    assert (directory.raw / "trace.bin").read_bytes() == b"kept"
    assert "Traceback" in directory.log.read_text()


def test_a_full_disk_is_no_runs_own_fault(execute: Callable[[Exception], RunDirectory]) -> None:
    full = HowdahError("cannot write table tcp_info", hint="is the disk full?")
    full.__cause__ = OSError(28, "No space left on device")
    with pytest.raises(HowdahError) as caught:
        execute(full)
    assert caught.value is full
