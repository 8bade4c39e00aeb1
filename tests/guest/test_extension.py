# SPDX-License-Identifier: Apache-2.0
"""A package of somebody else adds a collector, a measure and a command: installed from a wheel of its own, and used."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests import wheel
from tests.guest.guest_kit import build_or_skip

pytestmark = pytest.mark.guest
SOURCE = wheel.ROOT / "tests" / "extension"
PROFILE = """\
howdah: 1
name: counted
path: {rate: 10 Mbit/s, rtt: 20 ms, buffer: 1 bdp}
algorithm: cubic
duration: 1 s
collect: {softirq: 50 ms}
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """howdah's, and that of the package."""
    place = tmp_path_factory.mktemp("wheels")
    own, _sdist = wheel.build(wheel.ROOT, place / "own")
    other, _sdist = wheel.build(SOURCE, place / "other")
    return own, other


@pytest.fixture(scope="module")
def plain(wheels: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment without the package; its howdah."""
    return wheel.install(wheels[0], tmp_path_factory.mktemp("plain") / "env") / "howdah"


@pytest.fixture(scope="module")
def extended(wheels: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the package; its howdah."""
    return wheel.install(wheels[0], tmp_path_factory.mktemp("extended") / "env", wheels[1]) / "howdah"


@pytest.fixture(scope="module")
def made(extended: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a profile with the collector was run."""
    build_or_skip()
    place = tmp_path_factory.mktemp("made")
    (place / "counted.yaml").write_text(PROFILE, encoding="utf-8")
    done = wheel.run(extended, "run", "counted.yaml", "--runs", "runs", cwd=place)
    assert done.returncode == 0, done.stdout + done.stderr
    return place


def _run_of(place: Path) -> Path:
    (plan,) = (place / "runs" / "counted").glob("*/plan.json")
    return plan.parent


def test_its_command_is_in_the_help(plain: Path, extended: Path, tmp_path: Path) -> None:
    line = r"^  softirqs +print how many software interrupts a run took, by kind$"
    assert re.search(line, wheel.run(extended, "--help", cwd=tmp_path).stdout, re.MULTILINE)
    assert "softirqs" not in wheel.run(plain, "--help", cwd=tmp_path).stdout


def test_its_collector_fills_a_table_and_its_measure_has_a_value(made: Path) -> None:
    run = _run_of(made)
    table = pq.read_table(run / "tables" / "softirq.parquet")
    counts = [
        count
        for kind, count in zip(table["kind"].to_pylist(), table["count"].to_pylist(), strict=True)
        if kind == "NET_RX"
    ]
    assert len(counts) >= 20, "every 50 ms of a second, and once before and after"
    rows = json.loads((run / "metrics.json").read_text())["rows"]
    (row,) = [each for each in rows if each["metric"] == "net_rx_softirqs"]
    assert row["value"] == counts[-1] - counts[0] > 100
    checks = {each["name"]: each for each in json.loads((run / "verdict.json").read_text())["checks"]}
    assert checks["softirq from begin to end"]["ok"] is True
    readings = {line["time_ns"] for line in table.select(["time_ns"]).to_pylist()}
    assert len(readings) == len(counts)


def test_its_command_reads_the_table(made: Path, extended: Path) -> None:
    done = wheel.run(extended, "softirqs", "--runs", "runs", cwd=made)
    assert done.returncode == 0, done.stderr
    printed = dict(re.findall(r"^(\w+) +(\d+)$", done.stdout, re.MULTILINE))
    rows = json.loads((_run_of(made) / "metrics.json").read_text())["rows"]
    (row,) = [each for each in rows if each["metric"] == "net_rx_softirqs"]
    assert int(printed["NET_RX"]) == row["value"]


def test_a_run_names_the_package_and_verify_says_where_it_is_missing(made: Path, plain: Path, extended: Path) -> None:
    package = {"package": "howdah_softirq", "version": "1.0"}
    assert json.loads((_run_of(made) / "run.json").read_text())["extensions"] == [
        {"kind": "collectors", "name": "softirq", **package},
        {"kind": "measures", "name": "net_rx_softirqs", **package},
    ]
    verified = wheel.run(extended, "verify", str(_run_of(made)), cwd=made)
    assert "howdah_softirq" not in verified.stdout + verified.stderr
    missing = wheel.run(plain, "verify", str(_run_of(made)), cwd=made)
    assert missing.returncode != 0
    assert "the package howdah_softirq 1.0, which added 'softirq' (collectors) to the run, is not installed here" in (
        " ".join((missing.stdout + missing.stderr).split())
    )


def test_without_the_package_a_profile_that_asks_for_its_collector_is_refused(made: Path, plain: Path) -> None:
    done = wheel.run(plain, "plan", "counted.yaml", cwd=made)
    assert done.returncode == 2
    assert "counted.yaml:6" in done.stderr
    assert "softirq" in done.stderr


def test_a_run_without_the_collector_has_the_same_plan_with_and_without_the_package(
    plain: Path, extended: Path, tmp_path: Path
) -> None:
    (tmp_path / "other.yaml").write_text(PROFILE.replace("softirq: 50 ms", "ss: true"), encoding="utf-8")
    texts = [wheel.run(each, "plan", "other.yaml", "--json", cwd=tmp_path).stdout for each in (plain, extended)]
    assert texts[0] == texts[1]
    assert "intervals_us" in texts[0]
