# SPDX-License-Identifier: Apache-2.0
"""docs/first-hour.md: its commands can be given, and the profile that it begins with can be planned."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from howdah.command.main import build_parser, main
from howdah.place import DOCS
from howdah.profile import load
from howdah.work.compiled import compile_plans
from tests.unit.recorded_run import make_recorded_experiment

TEXT = (DOCS / "first-hour.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(line)[1:] for line in re.findall(r"^\$ (howdah .*)$", TEXT, re.MULTILINE)]


def test_every_command_is_one() -> None:
    assert len(COMMANDS) > 6
    parser = build_parser()
    for words in COMMANDS:
        assert parser.parse_args(words).command == words[0]


def test_the_profile_of_the_first_story_has_its_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(COMMANDS[0]) == 0
    assert all(line in TEXT for line in capsys.readouterr().out.splitlines())
    assert f"mine: {len(compile_plans(load(tmp_path / 'mine.yaml')))} runs" in TEXT


def test_the_profile_of_the_second_story_has_its_runs() -> None:
    words = next(words for words in COMMANDS if "--set" in words)
    overrides = [words[number + 1] for number, word in enumerate(words) if word == "--set"]
    profile = load(DOCS.parent / "profiles" / "quick.yaml", overrides)
    assert f"quick: {len(compile_plans(profile))} runs" in TEXT


def test_a_rerun_of_an_experiment_asks_for_one_of_its_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = make_recorded_experiment(tmp_path / "mine")
    assert main(["rerun", str(run.path.parent)]) == 2
    said = capsys.readouterr().err
    assert f"{run.path.parent}: this is an experiment; name one of its runs" in said
    assert f"Name one of its runs: {run.path.name}." in said
