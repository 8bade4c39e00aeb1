# SPDX-License-Identifier: Apache-2.0
"""The numbers of a sweep on a cluster: what the command writes is what is scraped, under the documented names."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

from howdah.publish.sweep import LEFT, RUN_STATES, SPEED, SWEEP, SweepNumbers, sweep_families
from tests.prometheus_fixture import exposition, prometheus_or_skip

ROOT = Path(__file__).resolve().parents[2]


def _sweep() -> SweepNumbers:
    return SweepNumbers(
        began_s=time.time() - 100.0,
        runs={"made": 40, "failed": 1, "in_progress": 2, "handed": 4, "waiting": 13},
        workers={"ready": 2, "preparing": 1, "refused": 0},
        slots=2,
        repeated=3,
        simulated_s=250.0,
        left_s=40.0,
        received_bytes=2_800_000,
        sent_bytes=45_000_000,
    )


def test_what_is_written_is_what_is_scraped(tmp_path: Path) -> None:
    assert sweep_families(tmp_path) == {}
    sweep = _sweep()
    sweep.write(tmp_path)
    found = sweep_families(tmp_path)
    assert set(found) == set(SWEEP)
    by_labels = {
        (metric.name, samples.labels.get("state")): samples.values[-1] for metric in found for samples in found[metric]
    }
    assert by_labels["howdah_sweep_runs", "waiting"] == 13
    assert by_labels["howdah_sweep_workers", "ready"] == 2
    assert by_labels["howdah_sweep_received_bytes_total", None] == 2_800_000
    assert by_labels["howdah_sweep_left_seconds", None] == 40
    assert 2.4 < found[SPEED][0].values[-1] <= 2.5, "250 s in 100 s, and what the test takes"
    for metric, samples in found.items():
        assert all(set(each.labels) == set(metric.labels) for each in samples)
    sweep.left_s = None
    sweep.write(tmp_path)
    assert set(SWEEP) - set(sweep_families(tmp_path)) == {LEFT}, "what is not known is not told"
    sweep.remove(tmp_path)
    assert sweep_families(tmp_path) == {}


def test_two_commands_are_told_apart_and_a_killed_one_is_forgotten(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for process in (1, gone.pid):
        sweep = _sweep()
        sweep.process = process
        sweep.write(tmp_path)
    _sweep().write(tmp_path)
    (tmp_path / ".sweep-1").write_text("{")
    found = {metric.labels["process"] for metric in sweep_families(tmp_path)[SPEED]}
    assert str(gone.pid) in found, "it writes each second: it may be of another container"
    os.utime(tmp_path / f".sweep-{gone.pid}", (0, 0))
    (only,) = sweep_families(tmp_path)[SPEED]
    assert only.labels["process"] == str(_sweep().process)
    assert not (tmp_path / f".sweep-{gone.pid}").exists()


def test_promtool_has_nothing_to_say_against_it(tmp_path: Path) -> None:
    _sweep().write(tmp_path)
    text = exposition(sweep_families(tmp_path))
    done = subprocess.run(
        [prometheus_or_skip().promtool, "check", "metrics"], input=text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_documentation_has_every_metric_and_state() -> None:
    text = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
    for metric in SWEEP:
        assert f"| `{metric.name}` | {metric.kind} | {metric.help}" in text
    assert set(re.findall(r"`(howdah_sweep_[a-z_]+)` \|", text)) == {metric.name for metric in SWEEP}
    for state in RUN_STATES:
        assert f"`{state}`" in text
