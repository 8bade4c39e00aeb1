# SPDX-License-Identifier: Apache-2.0
"""$HOWDAH_RUNS is the directory of experiments for every command that takes --runs, unless the option is given."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from howdah.cluster.opened import attachable
from howdah.cluster.place import DetachedError
from howdah.command.main import build_parser, main
from howdah.command.parser import commands_of

NOWHERE = "/proc/no-runs"  # nothing is there, and nothing can be made there
# A command line of each, and whether the directory is named in what it says when nothing is there.
WORDS: dict[str, tuple[str, bool]] = {
    "atlas": ("--list", False),
    "attach": ("", True),
    "bisect": ("--tree . --good A --bad B --profile quick", False),
    "claims": ("nothing", True),
    "clean": ("", False),
    "compare": ("nothing", True),
    "export": ("nothing", True),
    "figure": ("nothing", True),
    "list": ("runs", False),
    "nightly": ("", False),
    "pack": ("nothing", True),
    "report": ("nothing", True),
    "rerun": ("nothing", True),
    "run": ("quick", True),
    "score": ("nothing", True),
    "search": ("search-early-exit", True),
    "serve": ("", False),
    "sign": ("nothing --key k", True),
    "table": ("nothing", True),
    "validate": ("", True),
    "verify": ("nothing", True),
}


def _takes_runs(parser: Any) -> bool:
    return any("--runs" in action.option_strings for action in parser._actions)


def test_the_table_has_every_command_that_takes_runs() -> None:
    commands = commands_of(build_parser())
    assert commands is not None
    assert {name for name, parser in commands.choices.items() if _takes_runs(parser)} == set(WORDS)


@pytest.mark.parametrize("command", WORDS)
def test_the_variable_is_what_the_option_is(
    command: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text, is_named = WORDS[command]
    words = [command, *text.split()]

    def asked(*more: str) -> Path:
        found: Path = build_parser(words).parse_args([*words, *more]).runs
        return found

    monkeypatch.delenv("HOWDAH_RUNS", raising=False)
    assert asked() == Path("runs")
    monkeypatch.setenv("HOWDAH_RUNS", "")
    assert asked() == Path("runs"), "an empty variable is none"
    monkeypatch.setenv("HOWDAH_RUNS", NOWHERE)
    assert asked() == Path(NOWHERE)
    assert asked("--runs", "mine") == Path("mine")
    if is_named:
        assert main(words) != 0
        assert NOWHERE in capsys.readouterr().err
        assert not any(tmp_path.iterdir())


def test_the_runs_of_the_variable_are_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Listed, and cleaned of what was left unfinished."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOWDAH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOWDAH_RUNS", str(tmp_path / "mine"))
    left = tmp_path / "mine" / "one" / ".partial-cubic-r0-aaaaaaaa-1"
    (left / "raw").mkdir(parents=True)
    (tmp_path / "mine" / "one" / "experiment.json").write_text(json.dumps({"format": 1, "name": "one", "cells": []}))
    assert main(["clean"]) == 0
    assert not left.exists()
    assert str(left) in capsys.readouterr().out


def test_what_attach_gives_again_has_the_same_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The command may have had them from a variable that is not set any more, or from another one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["howdah", "run", "quick"])
    with pytest.raises(DetachedError), attachable(tmp_path / "mine", "tcp://far:8786"):
        raise DetachedError
    given: list[tuple[list[str], str]] = []
    monkeypatch.setattr(os, "execv", lambda _file, words: given.append((words[4:], os.environ["HOWDAH_RUNS"])))
    monkeypatch.setenv("HOWDAH_RUNS", "elsewhere")
    main(["attach", "--runs", "mine"])
    assert given == [(["run", "quick"], str(tmp_path / "mine"))]
