# SPDX-License-Identifier: Apache-2.0
"""A stock kernel on a processor of finite speed, looked at from inside and from outside: two sources of one truth."""

from __future__ import annotations

import json

import pytest

from howdah.command.main import main
from howdah.measure.processor import busy_time_of
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from tests.guest.guest_run import measures

pytestmark = [pytest.mark.vm, pytest.mark.usefixtures("qemu", "remembered_guests")]

PROFILE = """\
howdah: 1
name: look
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
algorithm: cubic-no-hystart
duration: 3 s
machine: {shift: 1}
collect: {interfaces: off, ss: false, cpu: true}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    parent = tmp_path_factory.mktemp("look")
    profile = parent / "look.yaml"
    profile.write_text(PROFILE)
    assert main(["run", str(profile), "--engine", "vm", "--runs", str(parent / "runs"), "--no-report", "--json"]) == 0
    (found,) = [RunDirectory(path.parent) for path in (parent / "runs").glob("look/*/run.json")]
    return found


def test_both_sources_saw_the_run(run: RunDirectory) -> None:
    assert json.loads(run.verdict.read_text())["verdict"] == "pass"
    counts = json.loads((run.tables / "ingest.json").read_text())["sources"]["cpu"]["counts"]
    assert (counts["counter_why"], counts["perf_why"], counts["lost"]) == (None, None, 0)
    assert counts["source"] == "counter"
    checks = json.loads(run.metrics.read_text())["cross_checks"]
    (of_perf,) = [check for check in checks if "perf" in check["sources"]]
    assert of_perf["agree"], of_perf


def test_no_more_instructions_than_there_is_time(run: RunDirectory) -> None:
    """What the counter saw of each interval, at two nanoseconds an instruction, against the machine's own clock."""
    course = busy_time_of(store.read(run, "cpu"))
    share = course.busy_ns / course.duration_ns
    assert course.begin_ns.size >= 30
    assert share.min() > 0
    assert share.max() <= 1.002


def test_functions_of_the_stock_kernel_have_names(run: RunDirectory) -> None:
    course = busy_time_of(store.read(run, "cpu")).between(0, 3_000_000_000)
    for name in ("tcp_ack", "tcp_sacktag_write_queue", "tcp_data_queue", "sink_tasklet", "htb_dequeue"):
        assert course.of((name,)).sum() > 0, name
    unknown = [
        domain == "kernel" and "?" in names for domain, names in zip(course.domains, course.functions, strict=True)
    ]
    assert course.spent_ns[:, unknown].sum() < 0.05 * course.kernel_ns.sum()


def test_the_first_recovery_has_its_share(run: RunDirectory) -> None:
    found = measures(run, 1, None)
    assert found["exit_cause"] == "loss"
    assert 0 < found["cpu_utilisation"] <= found["cpu_peak_utilisation"] < 1
    assert (
        found["cpu_recovery_sender_share_tcp_sacktag_write_queue"] > found["cpu_sender_share_tcp_sacktag_write_queue"]
    )
    assert 0 < found["cpu_recovery_receiver_share_tcp_data_queue"] < 1
