# SPDX-License-Identifier: Apache-2.0
"""Every congestion control of the kernel's tree runs by its name, and starts up as docs/algorithms.md says."""

from __future__ import annotations

import itertools
import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from howdah.algorithm import ALGORITHMS
from howdah.record.directory import RunDirectory
from howdah.record.verdict import Verdict
from tests.guest.guest_run import failures, ignore, measures, plan_of, require_engine, run

pytestmark = pytest.mark.guest

STANDARD = ("bic", "highspeed", "htcp", "illinois", "lp", "scalable", "veno", "yeah")
OTHERS = ("cdg", "hybla", "nv", "dctcp")
PROFILE = """\
howdah: 1
name: control
path: {rate: 30 Mbit/s, rtt: 60 ms, buffer: 1 bdp}
calibrate: false
duration: 1200 ms
"""
MARKING = PROFILE.replace("buffer: 1 bdp", "buffer: 1 bdp, queue: red, ecn: true")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("controls")


@cache
def _made(place: Path, algorithm: str, profile: str = PROFILE) -> tuple[RunDirectory, Verdict]:
    engine = require_engine()
    file = place / f"{algorithm}{len(profile)}.yaml"
    file.write_text(profile + f"algorithm: {algorithm}\n")
    plan = plan_of(profile=file)
    engine.prepare([plan], ignore)
    shutil.rmtree(place / file.stem, ignore_errors=True)
    return run(engine, plan, place / file.stem)


def _rows(directory: RunDirectory) -> pa.Table:
    return pq.read_table(directory.table("tcp_probe"), columns=["time_ns", "cwnd_packets", "ssthresh_packets"])


def _in_start_up(rows: pa.Table) -> int:
    """Records before the first with a finite ssthresh."""
    finite = (value is not None and value < 2**31 - 1 for value in rows["ssthresh_packets"].to_pylist())
    return next(number for number, each in enumerate(finite) if each)


def _metric(directory: RunDirectory, name: str) -> Any:
    return measures(directory)[name]


def _counter(directory: RunDirectory, name: str) -> int:
    rows = pq.read_table(directory.table("counter")).to_pylist()
    found = [row["value"] for row in rows if row["name"] == name and row["node"] == "s1"]
    return int(max(found, default=0) - min(found, default=0))


def test_the_table_has_every_control_of_the_tree() -> None:
    assert {*STANDARD, *OTHERS, "bbr", "cubic", "reno", "vegas", "westwood"} == {
        entry.kernel for entry in ALGORITHMS.values() if entry.builtin
    }


@pytest.mark.parametrize("algorithm", STANDARD)
def test_a_standard_slow_start_is_renos_to_the_nanosecond(place: Path, algorithm: str) -> None:
    directory, verdict = _made(place, algorithm)
    assert failures(verdict) == {}
    agent = json.loads((directory.raw / "agent.json").read_text())
    assert agent["flows"][0]["kernel_algorithm"] == algorithm
    found, reno = _rows(directory), _rows(_made(place, "reno")[0])
    infinite = _in_start_up(reno)
    assert infinite > 500
    assert found.slice(0, infinite).equals(reno.slice(0, infinite))
    assert _metric(directory, "exit_cause") == "loss"


def test_hybla_grows_by_two_to_the_power_of_rho_less_one(place: Path) -> None:
    """rho is 60 ms / 25 ms, in eighths 19: 2^2 times the table's 165/128 for 3/8, less 1: 4.16 packets an ACK."""
    directory, verdict = _made(place, "hybla", PROFILE.replace("1200 ms", "4 s"))
    assert failures(verdict) == {}
    rows = _rows(directory)
    start_up = _in_start_up(rows)
    cwnd = rows["cwnd_packets"].to_pylist()[20:start_up]  # beyond the first round, in which the RTT is not known yet
    growing = [after - before for before, after in itertools.pairwise(cwnd) if after != before]
    assert len(growing) > 100
    assert sum(growing) / len(growing) == pytest.approx(4 * 165 / 128 - 1, abs=0.1)


def test_cdg_leaves_without_loss(place: Path) -> None:
    directory, verdict = _made(place, "cdg")
    assert failures(verdict) == {}
    assert _metric(directory, "exit_cause") in ("congestion-signal", "ack-train", "delay")
    # Its back-off is by chance, from numbers that the whole guest draws; the path holds two BDPs.
    assert _metric(directory, "exit_cwnd_bdp") < 2
    assert _metric(directory, "retransmitted_packets") == 0


def test_nv_cuts_its_own_window_before_the_queue_is_full(place: Path) -> None:
    directory, verdict = _made(place, "nv")
    assert failures(verdict) == {}
    assert _metric(directory, "exit_cwnd_bdp") < 2
    assert _metric(directory, "retransmitted_packets") == 0
    assert min(value for value in _rows(directory)["ssthresh_packets"].to_pylist() if value is not None) < 2**31 - 1


def test_dctcp_has_its_peer_and_leaves_by_a_mark(place: Path) -> None:
    directory, verdict = _made(place, "dctcp", MARKING)
    assert failures(verdict) == {}
    agent = json.loads((directory.raw / "agent.json").read_text())
    assert agent["flows"][0]["kernel_algorithm"] == "dctcp", "not dctcp-reno, for want of ECN"
    assert _counter(directory, "TcpExtTCPDeliveredCE") > 0
    assert _metric(directory, "exit_cause") == "congestion-signal"
