# SPDX-License-Identifier: Apache-2.0
"""keep: first on real runs: results of all repetitions, the data of the first, and the rest made again when asked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from howdah.command.main import main

pytestmark = pytest.mark.guest

PROFILE = """\
howdah: 1
name: kept
path: {rate: 10 Mbit/s, rtt: [20 ms, 60 ms], buffer: 1 bdp}
algorithm: cubic
duration: 2 s
repetitions: 2
keep: first
figures:
  - {id: used, title: Utilisation, kind: sweep, x: path.rtt, y: utilisation}
  - {id: window, title: Window, kind: time, series: [cwnd, queue], lines: path.rtt}
"""


def test_results_of_all_and_data_of_the_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    profile, runs = tmp_path / "kept.yaml", tmp_path / "runs"
    profile.write_text(PROFILE)
    assert main(["run", str(profile), "--runs", str(runs), "--json"]) == 0
    capsys.readouterr()
    root = runs / "kept"
    names = sorted(path.parent.name for path in root.glob("*/plan.json"))
    assert len(names) == 4
    for name in names:
        metrics = json.loads((root / name / "metrics.json").read_text())["rows"]
        assert any(row["metric"] == "utilisation" and 0.3 < row["value"] <= 1 for row in metrics)
        first = "-r0-" in name
        assert (root / name / "raw").exists() is first
        assert (root / name / "tables" / "tcp_probe.parquet").exists() is first

    page = (root / "report.html").read_text()
    assert "of 2 other runs the profile keeps only the results" in page
    assert "n\u00a0=\u00a02" in page
    assert "Nothing to draw" not in page[page.index('id="declared"') : page.index('id="figures"')]

    second = next(name for name in names if "-r1-" in name)
    assert main(["rerun", f"kept/{second}", "--runs", str(runs), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["equal"] is True
    assert (Path(answer["rerun"]) / "tables" / "tcp_probe.parquet").exists(), "its data are there again"

    metrics_file = root / second / "metrics.json"
    changed = json.loads(metrics_file.read_text())
    changed["rows"][0]["value"] = -1
    metrics_file.write_text(json.dumps(changed))
    assert main(["rerun", f"kept/{second}", "--runs", str(runs), "--json"]) == 6
    assert changed["rows"][0]["metric"] in json.loads(capsys.readouterr().out)["difference"]

    assert main(["run", str(profile), "--runs", str(runs), "--json", "--set", "keep=everything", "--no-report"]) == 0
    capsys.readouterr()
    assert all((root / name / "tables" / "tcp_probe.parquet").exists() for name in names), "same keys, now with data"
