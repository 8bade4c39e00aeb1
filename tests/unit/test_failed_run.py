# SPDX-License-Identifier: Apache-2.0
"""What goes wrong in one run costs that run: it is kept as failed, and whoever makes the others hears no error."""

from __future__ import annotations

import errno
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pytest

from howdah.errors import EngineUnavailableError, HowdahError
from howdah.record.directory import RunDirectory, read_json
from howdah.record.provenance import first_record
from howdah.record.run import EngineReport, write_record
from howdah.work import stage
from tests.unit.recorded_run import recorded_plan


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    found = RunDirectory(tmp_path / "run")
    found.raw.mkdir(parents=True)
    (found.raw / "trace.bin").write_bytes(b"kept")
    text = recorded_plan().to_json()
    found.plan.write_text(text)
    write_record(found, first_record(text, "key"))
    return found


def _execute(directory: RunDirectory, monkeypatch: pytest.MonkeyPatch, error: Exception, *, of_engine: bool) -> str:
    def run(*_arguments: object) -> EngineReport:
        if of_engine:
            raise error
        return EngineReport()

    def analyse(*_arguments: object) -> None:
        raise error

    monkeypatch.setattr(stage, "find_engine", lambda _name: SimpleNamespace(run=run))
    monkeypatch.setattr("howdah.work.analysis.analyse", analyse)
    return stage.execute(directory, lambda _phase, _done, _total: None)


_OWN = "howdah met an error of its own in this run: RuntimeError: no such thing"


@pytest.mark.parametrize(
    ("error", "of_engine", "said"),
    [
        (pa.ArrowInvalid("Value 4294967096"), False, "the records of this run cannot be analysed: ArrowInvalid"),
        (HowdahError("no field snd_cwnd", where="trace.format"), False, "trace.format: no field snd_cwnd"),
        (RuntimeError("no such thing"), True, _OWN),
    ],
)
def test_what_fails_in_one_run_is_that_runs_failure(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch, error: Exception, of_engine: bool, said: str
) -> None:
    assert _execute(directory, monkeypatch, error, of_engine=of_engine) == "invalid"
    record = read_json(directory.provenance)
    assert record["status"] == "failed"
    assert said in record["error"]
    (check,) = read_json(directory.verdict)["checks"]
    assert (check["ok"], check["message"]) == (False, record["error"])
    assert (directory.raw / "trace.bin").read_bytes() == b"kept"
    assert "Traceback" in directory.log.read_text()
    assert type(error).__name__ in directory.log.read_text()


def _of_a_full_disk() -> HowdahError:
    error = HowdahError("cannot write table tcp_info", hint="is the disk full?")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    return error


@pytest.mark.parametrize(
    ("error", "of_engine"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), True),
        (EngineUnavailableError("there is no kernel"), True),
        (_of_a_full_disk(), False),
    ],
)
def test_what_every_run_would_meet_is_raised(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch, error: Exception, of_engine: bool
) -> None:
    with pytest.raises(type(error)) as caught:
        _execute(directory, monkeypatch, error, of_engine=of_engine)
    assert caught.value is error
