# SPDX-License-Identifier: Apache-2.0
"""What a shell offers after TAB."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from argcomplete.finders import CompletionFinder

from howdah.command.completing import SHELLS, add_completers
from howdah.command.main import build_parser, main
from howdah.command.parser import commands_of, entries_of
from tests.wheel import ROOT


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with one experiment of one run."""
    experiment = tmp_path / "runs" / "mine"
    (experiment / "cubic-r0-1a2b3c4d").mkdir(parents=True)
    (experiment / "cubic-r0-1a2b3c4d" / "plan.json").touch()
    cells = [{"run": "cubic-r0-1a2b3c4d", "algorithm": "cubic"}]
    (experiment / "experiment.json").write_text(json.dumps({"cells": cells}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOWDAH_RUNS", raising=False)
    return tmp_path / "runs"


@pytest.fixture(scope="module")
def finder() -> CompletionFinder:
    parser = build_parser()
    add_completers(parser)
    return CompletionFinder(parser, always_complete_options="long")


def offered(line: str, finder: CompletionFinder) -> set[str]:
    """The words that complete a line whose last word has been begun."""
    found: list[str] = []
    while (word := finder.rl_complete(line.removeprefix("howdah "), len(found))) is not None:
        found.append(word)
    return {word.rpartition(" ")[2] or word.strip().rpartition(" ")[2] for word in found}


def test_every_command_is_offered(finder: CompletionFinder) -> None:
    commands = commands_of(build_parser())
    assert commands is not None
    assert set(entries_of(commands)) <= offered("howdah ", finder)
    assert offered("howdah comp", finder) == {"compare", "completion"}


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("howdah run hystart-fig1", {"hystart-fig1", "hystart-fig10"}),
        ("howdah plan qui", {"quick"}),
        ("howdah run quick --con", {"--confirm-runs"}),
        ("howdah run quick --engine ", {"uml", "vm", "machines", "host"}),
        ("howdah run quick --kernel debian-", {"debian-6.12", "debian-newest"}),
        ("howdah run quick --set path.ra", {"path.rate=", "path.rate_variation.least="}),
        ("howdah run quick --set algorithm=hystart-p", {"algorithm=hystart-paper", "algorithm=hystart-plus-plus"}),
        ("howdah run quick --set path.queue=", {"path.queue=codel", "path.queue=cake"}),
        ("howdah run quick --set collect.cpu=", {"collect.cpu=true", "collect.cpu=false"}),
        ("howdah report --runs runs mi", {"mine"}),
        ("howdah rerun --runs runs mine/", {"mine/cubic-r0-1a2b3c4d"}),
        ("howdah verify --runs runs mi", {"mine"}),
        ("howdah compare --runs runs mine --algorithm ", {"cubic"}),
        ("howdah list ", {"profiles", "algorithms", "kernels", "runs"}),
        ("howdah bisect --profile hystart-fig1 --claim ", {"blackouts-of-both"}),
        ("howdah atlas --only Astart_t", {"Astart_tab1"}),
        ("howdah completion ", set(SHELLS)),
    ],
)
def test_names_are_offered(line: str, some: set[str], runs: Path, finder: CompletionFinder) -> None:
    assert runs.is_dir()
    found = offered(line, finder)
    if "--claim" in line:
        assert found
        assert not found & {"quick", "mine"}
    else:
        assert some <= found
    begun = line.rpartition(" ")[2]
    assert all(word.startswith(begun) for word in found)


def test_a_broken_profile_offers_nothing_and_says_nothing(
    runs: Path, finder: CompletionFinder, capfd: pytest.CaptureFixture[str]
) -> None:
    (runs.parent / "broken.yaml").write_text("howdah: [")
    assert offered("howdah bisect --profile broken.yaml --claim ", finder) == set()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_of_each_shell_asks_howdah(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    text = capsys.readouterr().out
    assert "howdah" in text
    assert "_ARGCOMPLETE" in text


def test_bash_itself_completes(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None, "bash is part of every Debian"
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "howdah").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m howdah.command.main "$@"\n')
    (programs / "howdah").chmod(0o755)
    code = (
        'eval "$(howdah completion bash)"\n'
        "COMP_LINE='howdah plan geo-14' COMP_POINT=18 COMP_TYPE=9 COMP_WORDS=(howdah plan geo-14) COMP_CWORD=2\n"
        '"$(complete -p howdah | sed "s/.*-F \\([^ ]*\\).*/\\1/")" howdah geo-14 plan\n'
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    environment = {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "HOME": str(tmp_path),
    }
    done = subprocess.run(
        [bash, "--norc", "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
    )
    assert done.stdout.split() == ["geo-144mbit-600ms"], done.stderr
