# SPDX-License-Identifier: Apache-2.0
"""What a machine set's run cannot have is not held against it: a parameter of the boot, a guest tree."""

from __future__ import annotations

from pathlib import Path

from howdah.judge.settings import settings_checks
from howdah.record.directory import RunDirectory, write_json
from howdah.record.run import read_record
from tests.unit.plan_factory import make_plan, on_engine
from tests.unit.told_by_agent import told

AGENT = told(modules={"ipv6": {"srcversion": None, "parameters": {"disable": "0"}}})


def _ok(engine: str) -> bool | None:
    plan = on_engine(make_plan(), engine, kernel_parameters={"ipv6.disable": "1"})
    (found,) = [check for check in settings_checks(plan, AGENT) if check.name == "module parameters"]
    return found.ok


def test_what_only_a_boot_can_set_is_asked_of_kernels_that_boot_for_the_run() -> None:
    assert _ok("uml") is False
    assert _ok("machines") is not False


def test_the_record_of_a_machine_set_names_no_guest_tree(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    write_json(run.provenance, {"format": 1, "status": "finished", "guest_tree": None})
    assert read_record(run).guest_tree is None
