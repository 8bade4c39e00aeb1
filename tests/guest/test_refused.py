# SPDX-License-Identifier: Apache-2.0
"""Where a machine forbids what no run can do without, one message says so with its remedy, before anything is made."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.place import PROJECT
from tests.guest.container import forbid_ptrace
from tests.guest.guest_run import require_engine

pytestmark = pytest.mark.guest


def _howdah(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "howdah.command.main", *arguments]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, preexec_fn=forbid_ptrace)


def test_without_ptrace_a_run_says_what_must_be_allowed(tmp_path: Path) -> None:
    require_engine()
    done = _howdah("run", "quick", "--runs", str(tmp_path), "--no-report")
    assert done.returncode == 3
    assert done.stdout == ""
    assert " ".join(done.stderr.split()) == (
        "howdah: the uml engine cannot run on this machine: ptrace (PTRACE_TRACEME: Operation not permitted) "
        "A container must allow ptrace (--cap-add SYS_PTRACE). 'howdah doctor' shows every check."
    )
    assert not list(tmp_path.glob("*/*-r0-*")), "no run was begun"
    checks = json.loads(_howdah("doctor", "--json").stdout)["checks"]
    missing = [check["what"] for check in checks if check["engine"] == "uml" and check["status"] == "missing"]
    assert missing == ["ptrace"]
