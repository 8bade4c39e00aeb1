# SPDX-License-Identifier: Apache-2.0
"""The command line: exit codes and messages for what goes wrong before anything runs."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from howdah.command import main as command
from howdah.command import run as run_command
from howdah.command.main import build_parser, main
from howdah.work.batch import Outcome, Rest, Work

QUICK = str(Path(__file__).parents[2] / "profiles" / "quick.yaml")


def test_plan_prints_every_operation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "quick"]) == 0
    text = capsys.readouterr().out
    assert "qdisc" in text
    assert "netem" in text


def test_plan_as_json_is_a_plan(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", QUICK, "--json", "--all"]) == 0
    plans = json.loads(capsys.readouterr().out)["plans"]
    assert {plan["profile"] for plan in plans} == {"quick"}
    assert len({plan["run"] for plan in plans}) == len(plans)


def test_a_sender_s_settings_are_told_as_in_plan_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", QUICK, "--json", "--set", "sender=of-2007", "--set", "algorithm=standard"]) == 0
    plan, *_ = json.loads(capsys.readouterr().out)["plans"]
    settings = plan["sender"]["settings"].values()
    assert settings
    assert not any("instead_of" in setting for setting in settings)


def test_dry_run_leaves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "quick", "--dry-run", "--runs", str(tmp_path / "runs")]) == 0
    assert not (tmp_path / "runs").exists()
    assert "netem" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["plan", "no-such-profile"], "quick"),
        (["plan", "quick", "--set", "path.rte=10Mbit/s"], "did you mean rate"),
        (["plan", "quick", "--set", "path.rate=ten"], "--set path.rate"),
        (["plan", "/dev/null"], "/dev/null"),
        (["plan", "quick", "--engine", "ulm"], "no engine called 'ulm'"),
        (["plan", "quick", "--engine", "lab"], "lab is now called machines"),
        (["plan", "quick", "--set", "engine=lab"], "lab is now called machines"),
        (["plan", "quick", "--set", "lab.receiver.kernel=debian-6.1"], "did you mean machines"),
        (["validate", "--engines", "uml,lab"], "lab is now called machines"),
    ],
)
def test_wrong_input_is_named(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) in (1, 2)
    message = capsys.readouterr().err
    assert said in message
    assert "Traceback" not in message


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lab", "up", "FILE"], "lab is now called machines"),
        (["run", "quick", "--lab", "FILE"], "--lab is now called --machines"),
        (["machines", "up", "FILE", "--labs=DIRECTORY"], "--labs is now called --machine-sets"),
    ],
)
def test_a_former_name_leads_to_todays(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert said in capsys.readouterr().err


def test_a_wrong_profile_runs_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile = tmp_path / "wrong.yaml"
    profile.write_text(Path(QUICK).read_text().replace("rate:", "rat:", 1))
    assert main(["run", str(profile), "--runs", str(tmp_path / "runs")]) == 2
    assert "wrong.yaml:" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_an_unwritable_runs_directory(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "quick", "--runs", "/proc/howdah"]) == 1
    assert "--runs" in capsys.readouterr().err


def test_an_unknown_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rerun", "nothing", "--runs", str(tmp_path)]) == 1
    assert "howdah run quick" in capsys.readouterr().err


def test_zero_jobs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "quick", "--jobs", "0"]) == 2
    assert "--jobs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["machines", "provision", "FILE"], "howdah machines status FILE"),
        (["list", "kernels"], "runs are as they were; the same command starts over"),
        (["run", "quick"], "finished runs are kept, unfinished ones were removed; the same command continues"),
        (["run", "quick", "--again"], "the same command without --again continues with the rest"),
        (["atlas"], "the same command continues with the rest"),
        (["nightly", "suite.yaml"], "the same command continues with the rest"),
        (["build"], "the same command builds the rest"),
    ],
)
def test_an_interrupted_command_tells_what_there_is(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_: object) -> int:
        raise KeyboardInterrupt

    parser = build_parser()
    options = parser.parse_args(words)
    options.execute = interrupt
    monkeypatch.setattr(parser, "parse_args", lambda _: options)
    monkeypatch.setattr(command, "build_parser", lambda _words: parser)
    assert main(words) == 130
    assert said in capsys.readouterr().err


# A reader that has left, as ``head`` does: no command answers it with a traceback, whenever it left

_COMMANDS = (
    ("explain", "--json"),  # wrong usage, before anything has started
    ("run", "--json"),
    ("no-such-command", "--json"),
    ("explain", "no-such-file", "--json"),  # an error of the command itself
    ("plan", "no-such-profile", "--json"),
    ("list", "metrics"),
    ("list", "metrics", "--json"),
    ("--help",),
)


@pytest.mark.parametrize("words", _COMMANDS, ids=" ".join)
def test_a_reader_that_left_meets_no_traceback(words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w", encoding="utf-8") as output:  # closing it flushes what is left, as Python's end does
        monkeypatch.setattr(sys, "stdout", output)
        try:
            code = main(list(words))
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        assert code in (0, 1, 2)


# ``howdah run --json-events`` prints lines of JSON, each of them at once, also of a batch that is interrupted


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

    def prepare(experiment: Any, *_: object) -> SimpleNamespace:
        return SimpleNamespace(experiment=experiment, cells=[], engines=["uml"], parallel=False)

    monkeypatch.setattr(run_command, "prepare", prepare)
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
