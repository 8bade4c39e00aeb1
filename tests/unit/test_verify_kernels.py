# SPDX-License-Identifier: Apache-2.0
"""``howdah verify`` of a run in several kernels: each of them was given a plan of its own."""

from __future__ import annotations

from pathlib import Path

from howdah.place import PROFILES
from howdah.profile import load
from howdah.record.directory import RunDirectory, write_json
from howdah.verify.run import verify_run
from howdah.work.compiled import compile_plans


def test_each_of_several_kernels_was_given_a_plan(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    (plan,) = compile_plans(load(PROFILES / "quick.yaml", ["split=true", "algorithm=cubic"]))
    run.plan.write_text(plan.to_json())
    for part in ("senders", "receivers"):
        write_json(run.provenance, {"format": 1, "status": "finished", "key": "0", "plan_sha256": ""})
        missing = {each.file for each in verify_run(run).findings if "was given" in each.what}
        assert f"share/{part}/plan.json" in missing and "share/plan.json" not in missing
        (run.share / part).mkdir(parents=True)
        (run.share / part / "plan.json").write_text("{}")
    assert not [each for each in verify_run(run).findings if "was given" in each.what]
