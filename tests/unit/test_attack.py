# SPDX-License-Identifier: Apache-2.0
"""A small seeded part of ``make attack``: texts, and outputs and paths of odd surroundings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.texts import Texts

TEXTS, SEED = 100, 1
_HOWDAH = (sys.executable, "-P", "-m", "howdah.command.main")


def test_texts_with_bombs_and_files_that_are_none(tmp_path: Path) -> None:
    tally = Texts(tmp_path, SEED).run(range(TEXTS))
    assert tally.count == TEXTS
    assert not tally.faults, [(case.number, case.kind, case.base, case.fault) for case in tally.faults[:3]]
    assert any(outcome == "accepted" for _, outcome in tally.outcomes)


@pytest.mark.parametrize(("redirect", "status"), [(">&-", 0), (">/dev/full", 1)])
def test_an_output_that_takes_nothing(redirect: str, status: int) -> None:
    words = ["sh", "-c", f'exec "$@" {redirect}', "sh", *_HOWDAH, "list", "algorithms", "--json"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("howdah: ") == bool(status)


def test_an_output_of_ascii() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii:strict"}
    done = subprocess.run([*_HOWDAH, "doctor"], env=environment, capture_output=True, check=False)
    assert b"Traceback" not in done.stderr
    assert b"\\u27" in done.stdout


def test_no_program_of_the_working_directory_runs(tmp_path: Path) -> None:
    for name in ("gcc", "ld", "git"):
        (tmp_path / name).write_text(f"#!/bin/sh\n: > {tmp_path / 'mark'}\n")
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f".:{os.environ['PATH']}"}
    subprocess.run([*_HOWDAH, "doctor"], cwd=tmp_path, env=environment, capture_output=True, check=False)
    assert not (tmp_path / "mark").exists()
