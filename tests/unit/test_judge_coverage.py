# SPDX-License-Identifier: Apache-2.0
"""Data that stop early: each collector's, one by one, must be told by name."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from howdah.ingest.source import SourceReport
from howdah.judge.check import Check
from howdah.judge.coverage import coverage_checks
from howdah.measure.sampled import Samples
from tests.unit import path_factory
from tests.unit.plan_factory import on_engine
from tests.unit.trace_factory import make_info, make_measured, make_trace

END_NS = 2_000_000_000  # of the plan
PLACE = "s1:s1-eth0"


class _Run:
    """A run that was recorded as a whole: one flow of two seconds, read every 100 ms, an ACK every 10 ms."""

    def __init__(self, raw: Path) -> None:
        self.raw = raw
        self.plan = path_factory.path_plan(kernel_parameters={"ipv6.disable": "1"})
        self.plan = dataclasses.replace(self.plan, collect=dataclasses.replace(self.plan.collect, pcap=[PLACE]))
        self.report = path_factory.report()
        whole = {"first_ns": 0, "last_ns": END_NS + 40_000_000}
        for name in ("qdisc", "interface", "counter"):
            self.report.sources[name].counts |= whole
        self.accounting = path_factory.accounting()
        packets = self._passed()
        self.capture: dict[str, Any] = {"place": PLACE, "status": 0, "captured": packets, "received": packets}
        self.capture |= {"dropped_by_kernel": 0, "dropped_by_interface": None, "in_file": packets}
        self.report.sources["pcap"] = SourceReport(packets, {"captures": [self.capture]})
        self.info = self.read_until(2000)
        self.trace_until_ms = 1990
        for name in ("ss-begin.txt", "ss-end.txt"):
            (raw / name).write_text("# s1 5080000000\nESTAB 0\n# r1 5080000000\nESTAB 0\n")

    def _passed(self) -> int:
        def count(state: dict[str, Any]) -> int:
            counters = state["nodes"]["s1"]["interfaces"]["s1-eth0"]
            return int(counters["rx_packets"]) + int(counters["tx_packets"])

        return count(self.accounting["after"]) - count(self.accounting["before"])

    @staticmethod
    def read_until(last_ms: int, state: int = 1) -> Samples:
        times = [float(time) for time in range(0, last_ms + 1, 100)]
        count = len(times)
        return make_info(times, bytes_acked_bytes=[10 * i for i in range(count)], state=[state] * count)

    def checks(self) -> list[Check]:
        times = [float(time) for time in range(40, self.trace_until_ms + 1, 10)]
        trace = make_trace(times, list(range(len(times))), list(range(10, len(times) + 10)))
        data = make_measured([trace], info=self.info, plan=self.plan)
        return coverage_checks(self.plan, self.report, data, self.raw, self.accounting)

    def failed(self) -> dict[str, str]:
        return {check.name: check.message for check in self.checks() if check.ok is False}


@pytest.fixture
def run(tmp_path: Path) -> _Run:
    return _Run(tmp_path)


def test_a_whole_run_passes_every_check(run: _Run) -> None:
    checks = run.checks()
    assert {check.name for check in checks} == {
        "qdisc from begin to end",
        "interface from begin to end",
        "counter from begin to end",
        "tcp_info from begin to end",
        "trace to the end",
        "ss at begin and end",
        f"capture {PLACE}",
        f"capture {PLACE} and interface",
    }
    assert all(check.ok for check in checks), run.failed()


@pytest.mark.parametrize("name", ["qdisc", "interface", "counter"])
@pytest.mark.parametrize("change", [{"last_ns": END_NS - 1}, {"first_ns": 300_000_000}, {"last_ns": None}])
def test_readings_that_miss_the_beginning_or_the_end(run: _Run, name: str, change: dict[str, Any]) -> None:
    run.report.sources[name].counts |= change
    assert list(run.failed()) == [f"{name} from begin to end"]


def test_a_collector_that_was_off_is_not_missed(run: _Run) -> None:
    off = dataclasses.replace(run.plan.collect, qdisc_us=None, interface_us=None, tcp_info_us=None, ss=False, pcap=[])
    run.plan = dataclasses.replace(run.plan, collect=off)
    assert [check.name for check in run.checks()] == ["counter from begin to end"]


def test_tcp_info_that_stops_early(run: _Run) -> None:
    run.info = run.read_until(1700)
    assert list(run.failed()) == ["tcp_info from begin to end"]
    run.info = make_info([])
    assert "tcp_info from begin to end" in run.failed()


def test_a_trace_that_stops_before_the_acks_do(run: _Run) -> None:
    run.trace_until_ms = 1890
    assert list(run.failed()) == ["trace to the end"]
    assert "flow 1" in run.failed()["trace to the end"]
    run.trace_until_ms = 30  # no record at all
    assert list(run.failed()) == ["trace to the end"]


def test_acks_of_a_closing_connection_are_not_in_the_trace(run: _Run) -> None:
    run.trace_until_ms = 1500
    open_until = run.read_until(2000)
    open_until["state"][16:] = 4  # FIN_WAIT1
    run.info = open_until
    assert run.failed() == {}


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [("ss-end.txt", "# s1 5080000000\n", "ss-end.txt of r1"), ("ss-begin.txt", None, "ss-begin.txt of r1")],
)
def test_a_reading_of_ss_that_is_missing(run: _Run, name: str, text: str | None, words: str) -> None:
    if text is None:
        (run.raw / name).unlink()
    else:
        (run.raw / name).write_text(text)
    assert words in run.failed()["ss at begin and end"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"captured": 5}, "captured 5 of"),
        ({"in_file": 5}, "5 packets are in the file"),
        ({"dropped_by_kernel": 3}, "3 were dropped"),
        ({"dropped_by_interface": 2}, "2 were dropped"),
        ({"captured": None, "received": None}, "did not say how many"),
        ({"status": 1}, "status 1"),
    ],
)
def test_a_capture_that_is_not_whole(run: _Run, change: dict[str, Any], words: str) -> None:
    run.capture |= change
    assert words in run.failed()[f"capture {PLACE}"]


def test_a_capture_that_began_late_or_ended_early(run: _Run) -> None:
    """tcpdump itself finds nothing missing: it was not there."""
    packets = run.capture["in_file"] - 7
    run.capture |= {"captured": packets, "received": packets, "in_file": packets}
    assert list(run.failed()) == [f"capture {PLACE} and interface"]
    assert "does not cover the run" in run.failed()[f"capture {PLACE} and interface"]


def test_a_capture_nobody_counted(run: _Run) -> None:
    run.report.sources["pcap"].counts["captures"] = []
    assert list(run.failed()) == [f"capture {PLACE}"]
    del run.report.sources["pcap"]
    assert list(run.failed()) == [f"capture {PLACE}"]


def test_what_else_passes_an_interface_does_not_count_against_a_capture(run: _Run) -> None:
    run.capture |= {"captured": 5, "received": 5, "in_file": 5}
    run.plan = dataclasses.replace(run.plan, kernel_parameters={})  # IPv6 is on, and the capture is of IPv4
    assert run.failed() == {}
    run.plan = on_engine(run.plan, "machines", kernel_parameters={"ipv6.disable": "1"})
    assert run.failed() == {}
