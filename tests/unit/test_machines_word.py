# SPDX-License-Identifier: Apache-2.0
"""What concerns several machines is called machines. A lab is only what ``make lab`` makes."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Those that tell or test the former name, and those about ``make lab``.
_MAY = {
    "CHANGELOG.md",
    "Makefile",
    "howdah/command/parser.py",
    "howdah/profile/report.py",
    "howdah/trait.py",
    "tests/bench/__main__.py",
    "tests/bench/lab.py",
    "tests/unit/test_command.py",
    "tests/unit/test_machines_word.py",
}
_WORD = re.compile(r"(?<![A-Za-z])(?:[Ll]abs?(?![a-z])|LABS?(?![A-Z]))")
_MAKE_LAB = re.compile(r"make lab\b|tests\.bench --lab\b")


def _found(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if _WORD.search(_MAKE_LAB.sub("", line))]


def _names() -> list[str]:
    """Files of the repository; of a copy that is none, all but what a run or a build leaves."""
    listed = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=False)
    if listed.returncode == 0:
        names = listed.stdout.decode().split("\0")
    else:
        names = [str(file.relative_to(ROOT)) for file in ROOT.rglob("*") if file.is_file()]
    left = (".", "LICENSES", "reports/vendor", "runs", "var", "modules/build")
    return [name for name in names if name and "__pycache__" not in name and not name.startswith(left)]


def test_a_lab_is_what_make_lab_makes_and_nothing_else() -> None:
    names = _names()
    assert len(names) > 1000
    wrong = [name for name in names if name not in _MAY and _WORD.search(name)]
    for name in {*names} - _MAY:
        content = (ROOT / name).read_bytes() if (ROOT / name).is_file() else b""
        if b"\0" not in content:  # a picture has any three letters
            wrong += [f"{name}: {line}" for line in _found(content.decode(errors="ignore"))]
    assert wrong == []


def test_names_and_identifiers_are_found() -> None:
    former = ["a lab", "Labs", "engine: lab", "vm-lab", "test_lab_run", "LabEngine", "HOWDAH_LABS", "docs/lab.md"]
    assert _found("\n".join(former)) == former
    assert _found("make lab\na label, labelled, OKLab, GitLab, available\n`make lab` installs") == []
