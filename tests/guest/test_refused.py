# SPDX-License-Identifier: Apache-2.0
"""Where a machine forbids what no run can do without, one message says so with its remedy, before anything is made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from howdah.place import PROJECT
from tests.guest.container import forbid_ptrace
from tests.guest.guest_run import howdah, require_engine

pytestmark = pytest.mark.guest


def test_without_ptrace_a_run_says_what_must_be_allowed(tmp_path: Path) -> None:
    require_engine()
    done = howdah("run", "quick", "--runs", tmp_path, "--no-report", cwd=PROJECT, preexec_fn=forbid_ptrace)
    assert done.returncode == 3
    assert done.stdout == ""
    assert " ".join(done.stderr.split()) == (
        "howdah: the uml engine cannot run on this machine: ptrace (PTRACE_TRACEME: Operation not permitted) "
        "A container must allow ptrace (--cap-add SYS_PTRACE). 'howdah doctor' shows every check."
    )
    assert not list(tmp_path.glob("*/*-r0-*")), "no run was begun"
    checks = json.loads(howdah("doctor", "--json", cwd=PROJECT, preexec_fn=forbid_ptrace).stdout)["checks"]
    missing = [check["what"] for check in checks if check["engine"] == "uml" and check["status"] == "missing"]
    assert missing == ["ptrace"]
