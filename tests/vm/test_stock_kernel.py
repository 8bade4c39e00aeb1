# SPDX-License-Identifier: Apache-2.0
"""An unmodified distribution kernel in a virtual machine says what the user-mode kernel says of the same path."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from howdah.command.main import main
from howdah.engine.vm.machine import QEMU

pytestmark = pytest.mark.vm

PROFILE = """\
howdah: 1
name: both
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
algorithm: hystart-linux-cubic
duration: 4 s
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The run of each engine: cubic's HyStart as a module of the project, built for both kernels."""
    if shutil.which(QEMU) is None:
        pytest.skip(f"{QEMU} is not on this machine; apt-get install qemu-system-x86")
    parent = tmp_path_factory.mktemp("engines")
    profile = parent / "both.yaml"
    profile.write_text(PROFILE)
    found = {}
    for engine in ("uml", "vm"):
        place = parent / engine
        assert main(["run", str(profile), "--engine", engine, "--runs", str(place), "--no-report", "--json"]) == 0
        (found[engine],) = [path.parent for path in place.glob("both/*/run.json")]
    return found


def measures(run: Path) -> dict[str, Any]:
    rows = json.loads((run / "metrics.json").read_text())["rows"]
    return {row["metric"]: row["value"] for row in rows}


def test_the_path_holds_under_both(runs: dict[str, Path]) -> None:
    for run in runs.values():
        assert json.loads((run / "verdict.json").read_text())["verdict"] == "pass"


def test_slow_start_ends_the_same_way(runs: dict[str, Path]) -> None:
    ours, stock = (measures(runs[engine]) for engine in ("uml", "vm"))
    assert stock["exit_cause"] == ours["exit_cause"]
    assert stock["exit_cwnd_packets"] == pytest.approx(ours["exit_cwnd_packets"], rel=0.01)
    assert abs(stock["retransmitted_packets"] - ours["retransmitted_packets"]) <= max(
        2, 0.02 * ours["retransmitted_packets"]
    )
    assert stock["utilisation"] == pytest.approx(ours["utilisation"], rel=0.02)


def test_the_record_says_what_it_was(runs: dict[str, Path]) -> None:
    record = json.loads((runs["vm"] / "run.json").read_text())
    assert record["engine"]["name"] == "vm"
    assert record["engine"]["processor"] == "1 instructions a nanosecond"
    assert record["kernel"]["release"].endswith("-amd64")
    assert record["kernel"]["package"].startswith("linux-image-6.12")
    assert record["modules"]["ss_hystartl"]["sha256"]
    kernel = json.loads((runs["vm"] / "raw" / "agent.json").read_text())["kernel_release"]
    assert kernel == record["kernel"]["release"]


def test_nothing_of_the_machine_stays(runs: dict[str, Path]) -> None:
    names = [file.name for file in (runs["vm"] / "raw").iterdir()]
    assert not [name for name in names if name.startswith(".")]
