# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in one run costs that run: it is kept as failed, and whoever makes the others hears no error."""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from howdah.errors import EngineUnavailableError
from howdah.record.directory import RunDirectory, read_json
from howdah.record.provenance import first_record
from howdah.record.run import EngineReport, write_record
from howdah.work import stage
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
