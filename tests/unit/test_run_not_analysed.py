# SPDX-License-Identifier: Apache-2.0
"""Records that cannot be analysed cost the run they belong to, and no other; a disk that is full costs them all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from howdah.errors import HowdahError
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.run import EngineReport
from howdah.work import analysis, stage
from tests.experiment_factory import Scenario, make_experiment


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
