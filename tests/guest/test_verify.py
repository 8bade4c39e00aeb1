# SPDX-License-Identifier: Apache-2.0
"""A run on a real kernel, and a colleague who changes it: what shows the change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.record.digest import seal
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.run import read_record
from howdah.work.stage import refresh

pytestmark = pytest.mark.guest

PROFILE = """\
howdah: 1
name: seen
path: {rate: 10 Mbit/s, rtt: 20 ms, buffer: 1 bdp}
algorithm: cubic
duration: 2 s
"""


def _set_utilisation(run: RunDirectory, value: float) -> None:
    metrics = read_json(run.metrics)
    next(row for row in metrics["rows"] if row["metric"] == "utilisation")["value"] = value
    write_json(run.metrics, metrics)


def test_what_is_changed_is_found_at_each_level(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile, runs = tmp_path / "seen.yaml", tmp_path / "runs"
    profile.write_text(PROFILE)

    def howdah(*words: str) -> tuple[int, str]:
        capsys.readouterr()
        code = main([*words, "--runs", str(runs)])
        said = capsys.readouterr()
        return code, said.out + said.err

    assert howdah("run", str(profile), "--no-report")[0] == 0
    run = RunDirectory(next((runs / "seen").glob("cubic-r0-*")))
    name = f"seen/{run.name}"
    code, said = howdah("verify", "seen", "--rerun")
    assert (code, "2 verified" in said) == (0, True)
    assert "made again: tables, metrics and verdict" in said
    assert "same kernel, guest tree, modules and howdah" in said

    true = run.metrics.read_bytes()
    _set_utilisation(run, 0.999)
    code, said = howdah("report", "seen", "--without-prometheus")
    assert (code, "metrics.json was changed after it was recorded" in said) == (6, True)
    assert not (run.path.parent / "report.html").exists()
    code, said = howdah("rerun", name)
    assert (code, "metrics.json utilisation: 0.999 against" in said) == (6, True)
    assert howdah("verify", "seen", "--digests-only")[0] == 6

    seal(run, read_record(run))  # the digest changed with it
    assert howdah("verify", "seen", "--digests-only")[0] == 0
    code, said = howdah("verify", "seen")
    assert (code, "utilisation: 0.999 against" in said) == (6, True)
    assert howdah("report", "seen", "--without-prometheus", "--reanalyse")[0] == 0
    assert run.metrics.read_bytes() == true
    assert howdah("verify", "seen")[0] == 0

    agent = read_json(run.raw / "agent.json")  # raw/, and everything made from it
    agent["flows"][0]["bytes_received"] += 1448
    write_json(run.raw / "agent.json", agent)
    seal(run, read_record(run))
    refresh(run, force=True)
    assert howdah("verify", "seen")[0] == 0, "nothing in the run contradicts it"
    code, said = howdah("verify", "seen", "--rerun", "--json")
    found = [each["file"] for report in json.loads(said.splitlines()[0])["reports"] for each in report["findings"]]
    assert (code, "tables/flow.parquet" in found) == (6, True)
