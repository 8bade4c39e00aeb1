# SPDX-License-Identifier: Apache-2.0
"""A link that follows a trace, as a module of an unmodified distribution kernel in a virtual machine."""

from __future__ import annotations

import json
from typing import Any

import pytest

from howdah.command.main import main
from howdah.record import table as store
from howdah.record.directory import RunDirectory

pytestmark = [pytest.mark.vm, pytest.mark.timeout(1800), pytest.mark.usefixtures("qemu", "remembered_guests")]

OPPORTUNITY_BYTES, MBIT_S = 1504, 1e6
# Seconds from which on so many Mbit/s pass; the round ends as long after the last as that is after the one before.
RATES = [(0.0, 4.0), (0.5, 8.0), (0.9, 0.0), (1.0, 3.0)]
ROUND_S = 1.1
PROFILE = """\
howdah: 1
name: stalls
path: {link: {file: stalls.csv, interpolation: step}, rtt: 40 ms, buffer: 60 packets}
algorithm: cubic
duration: 2 s
engine: vm
collect: {opportunities: 50 ms}
"""


def passed_bytes(time_s: float) -> float:
    """What the rates let pass from the epoch on."""
    rounds, rest = divmod(time_s, ROUND_S)
    ends = [*(at for at, _ in RATES[1:]), ROUND_S]

    def within(until: float) -> float:
        spans = zip(RATES, ends, strict=True)
        return sum(max(min(until, end) - at, 0) * rate * MBIT_S / 8 for (at, rate), end in spans)

    of_round = int(within(ROUND_S) / OPPORTUNITY_BYTES) * OPPORTUNITY_BYTES  # a part of one is no opportunity
    return rounds * of_round + within(rest)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    place = tmp_path_factory.mktemp("link")
    (place / "stalls.yaml").write_text(PROFILE)
    lines = [f"{at},{rate}" for at, rate in RATES]
    (place / "stalls.csv").write_text("\n".join(["time_s,rate_mbps", *lines]) + "\n")
    assert main(["run", str(place / "stalls.yaml"), "--runs", str(place), "--no-report"]) == 0
    (found,) = [path.parent for path in place.glob("stalls/*/run.json")]
    return RunDirectory(found)


def test_a_stock_kernel_follows_the_trace(run: RunDirectory) -> None:
    """At each reading so many opportunities have passed as the rates say."""
    rows: list[dict[str, Any]] = store.read(run, "opportunities").to_pylist()
    read = [(row["until_ns"] / 1e9, row["passed"]) for row in rows if 0 < row["until_ns"] < 2_000_000_000]
    assert len(read) > 30
    for time_s, passed in read:
        assert abs(passed - passed_bytes(time_s) / OPPORTUNITY_BYTES) < 1.5, time_s
    stalled = [passed for time_s, passed in read if 0.9 < time_s < 1.0]
    assert len(set(stalled)) == 1


def test_its_checks_pass_and_it_carries_what_it_can(run: RunDirectory) -> None:
    checks = {f"{each['stage']} {each['name']}": each for each in json.loads(run.verdict.read_text())["checks"]}
    assert [name for name, check in checks.items() if check["ok"] is False] == []
    assert checks["during link left opportunities"]["ok"] is True
    assert checks["during link left bytes"]["ok"] is True
    assert checks["before rate"]["ok"] is checks["after rate"]["ok"] is True
