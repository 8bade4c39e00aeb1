# SPDX-License-Identifier: Apache-2.0
"""A directory of somebody else's, in which a user works: no file in it is taken for a module of Python's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.place import OWN_PYTHON, PACKAGE
from howdah.work.local import WorkerProcesses
from tests.unit.recorded_run import make_recorded_experiment

_MODULES = ("howdah", "json", "numpy", "pyarrow", "sitecustomize", "usercustomize", "multiprocessing", "re", "dask")
# Of each command that starts processes of howdah's own; none needs a kernel.
_COMMANDS = (
    ("doctor",),
    ("verify", "recorded", "--jobs", "2"),
    ("report", "recorded", "--reanalyse"),
    ("pack", "recorded"),
)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """Every module in it leaves a mark, and takes what imported it along."""
    for name in _MODULES:
        for file in (tmp_path / "here" / f"{name}.py", tmp_path / "here" / name / "__init__.py"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"open({str(tmp_path / 'mark')!r}, 'a').write({name!r}); raise SystemExit(77)\n")
    make_recorded_experiment(tmp_path / "here" / "runs" / "recorded")
    return tmp_path / "here"


@pytest.mark.parametrize("words", _COMMANDS, ids=lambda words: str(words[0]))
def test_no_command_imports_what_lies_there(words: tuple[str, ...], hostile: Path) -> None:
    command = [str(Path(sys.executable).with_name("howdah")), *words]
    done = subprocess.run(command, cwd=hostile, capture_output=True, text=True, check=False)
    assert not (hostile.parent / "mark").exists(), (hostile.parent / "mark").read_text()
    assert "Traceback" not in done.stderr
    assert done.returncode != 77


def test_a_worker_that_is_started_does_not_either(hostile: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(hostile)
    command = [*WorkerProcesses().command, str(os.getpid())]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)
    _, said = process.communicate(b"", timeout=120)
    assert (process.returncode, said) == (0, b"")
    assert not (hostile.parent / "mark").exists()


def test_each_interpreter_is_started_without_the_directory() -> None:
    """Those that are started by howdah's own interpreter begin as OWN_PYTHON does."""
    assert "-P" in OWN_PYTHON
    allowed = {
        "place.py",
        "timer_lateness.py",
        "image.py",
        "provision.py",
        "connect.py",
        "main.py",
        "distribution.py",
    }  # the last five name it
    for file in PACKAGE.rglob("*.py"):
        if file.name not in allowed:
            assert not re.search(r"sys\.executable", file.read_text(encoding="utf-8")), file
    starts = [file for file in PACKAGE.rglob("*.py") if 'python3", "-m"' in file.read_text(encoding="utf-8")]
    for file in starts:
        text = file.read_text(encoding="utf-8")
        assert "PYTHONSAFEPATH=1" in text or "/howdah/in" in text, f"{file}: neither safe nor in a guest"
