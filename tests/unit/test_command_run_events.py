# SPDX-License-Identifier: Apache-2.0
"""``howdah run --json-events`` prints lines of JSON, each of them at once, also of a batch that is interrupted."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from howdah.command import run as run_command
from howdah.command.main import main
from howdah.work.batch import Outcome, Rest, Work


class _Output(io.StringIO):
    """Standard output as a reader at the other end of a pipe has it: what is flushed."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = ""

    def flush(self) -> None:
        super().flush()
        self.arrived = self.getvalue()

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.arrived.splitlines()]


@contextmanager
def _nowhere(*_place: Any, **_options: Any) -> Iterator[None]:
    yield None


def test_each_event_arrives_while_the_batch_goes_on_and_stays_when_it_is_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = _Output()
    seen: list[list[str]] = []

    def make(_all: Any, _workers: int, _again: bool, listen: Any, **_options: Any) -> list[Outcome]:
        job: Any = SimpleNamespace(cell=SimpleNamespace(directory_name="a"))
        work = Work(job, phase="boot")
        listen([work], [], Rest(total=2))
        seen.append([event["event"] for event in output.events()])
        listen([], [Outcome(job, verdict="pass", wall_s=1.0)], Rest(total=2))
        seen.append([event["event"] for event in output.events()])
        raise KeyboardInterrupt

    monkeypatch.setattr(run_command, "prepare", lambda *_: SimpleNamespace(engines=["uml"], parallel=False))
    monkeypatch.setattr(run_command, "executor_at", _nowhere)
    monkeypatch.setattr(run_command, "make", make)
    monkeypatch.setattr(sys, "stdout", output)

    assert main(["run", "quick", "--json-events", "--runs", str(tmp_path)]) == 130

    begun = seen[0].index("start")
    assert "begin" in seen[0][:begun]
    assert seen[0][begun:] == ["start", "progress"]
    assert seen[1] == [*seen[0], "run"]
    assert [event["event"] for event in output.events()] == seen[1]
    assert output.arrived == output.getvalue()
