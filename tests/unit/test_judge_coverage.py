# SPDX-License-Identifier: Apache-2.0
"""Data that stop early: each collector's, one by one, must be told by name."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from howdah.ingest.source import SourceReport
from howdah.judge.accounting import Snapshots
from howdah.judge.collection import coverage_checks, trace_to_the_end
from howdah.measure.sampled import MISSING, Samples
from howdah.record.verdict import Check
from tests.unit import path_factory
from tests.unit.plan_factory import collecting, on_engine
from tests.unit.trace_factory import MS, make_flow, make_info, make_measured, make_trace

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
        state = Snapshots(**self.accounting) if self.accounting is not None else None
        return coverage_checks(self.plan, self.report, data, self.raw, state)

    def failed(self) -> dict[str, str]:
        return {check.name: check.message for check in self.checks() if check.ok is False}


@pytest.fixture
def run(tmp_path: Path) -> _Run:
    return _Run(tmp_path)


def test_a_collector_that_was_off_is_not_missed(run: _Run) -> None:
    off = collecting(run.plan.collect, qdisc_us=None, interface_us=None, tcp_info_us=None, ss=False, pcap=[])
    run.plan = dataclasses.replace(run.plan, collect=off)
    assert [check.name for check in run.checks()] == ["counter from begin to end"]


def test_a_capture_that_began_late_or_ended_early(run: _Run) -> None:
    """tcpdump itself finds nothing missing: it was not there."""
    packets = run.capture["in_file"] - 7
    run.capture |= {"captured": packets, "received": packets, "in_file": packets}
    assert list(run.failed()) == [f"capture {PLACE} and interface"]
    assert "does not cover the run" in run.failed()[f"capture {PLACE} and interface"]


def test_what_else_passes_an_interface_does_not_count_against_a_capture(run: _Run) -> None:
    run.capture |= {"captured": 5, "received": 5, "in_file": 5}
    run.plan = dataclasses.replace(run.plan, kernel_parameters={})  # IPv6 is on, and the capture is of IPv4
    assert run.failed() == {}
    run.plan = on_engine(run.plan, "machines", kernel_parameters={"ipv6.disable": "1"})
    assert run.failed() == {}


def test_every_check_of_a_whole_run_says_what_was_whole(run: _Run) -> None:
    packets = run.capture["in_file"]
    assert run.checks() == [
        *(
            Check(f"{name} from begin to end", "collection", True, words, END_NS, END_NS + 40 * MS, 0, "ns")
            for name in ("qdisc", "interface", "counter")
            for words in (f"{name} was read from 0.000000 to 2.040000 s",)
        ),
        _whole("tcp_info from begin to end", "tcp_info was read until each flow ended", "flows"),
        _whole("trace to the end", "the trace has the last ACKs that tcp_info knows of", "flows"),
        _whole("ss at begin and end", "ss was asked at the beginning and at the end, on every host", "readings"),
        Check(
            f"capture {PLACE}",
            "collection",
            True,
            f"{packets} packets are in the file; tcpdump captured {packets} of {packets}, 0 were dropped",
            packets,
            packets,
            0,
            "packets",
        ),
        Check(
            f"capture {PLACE} and interface",
            "collection",
            True,
            f"the capture has {packets} packets, {packets} passed {PLACE}",
            packets,
            packets,
            0,
            "packets",
        ),
    ]


def _whole(name: str, message: str, unit: str) -> Check:
    return Check(name, "collection", True, message, 0, 0, 0, unit)


@pytest.mark.parametrize(
    ("first_ns", "last_ns", "ok"),
    [
        (250 * MS, END_NS, True),  # two and a half of its intervals of 100 ms may pass before the first one
        (250 * MS + 1, END_NS, False),
        (0, END_NS - 1, False),
    ],
)
def test_readings_begin_and_end_with_the_run(run: _Run, first_ns: int, last_ns: int, ok: bool) -> None:
    run.report.sources["interface"].counts |= {"first_ns": first_ns, "last_ns": last_ns}
    (check,) = [each for each in run.checks() if each.name == "interface from begin to end"]
    message = f"interface was read from {first_ns / 1e9:.6f} to {last_ns / 1e9:.6f} s"
    message += "" if ok else ": not all of the run, which took until 2.000000 s"
    assert check == Check(check.name, "collection", ok, message, END_NS, last_ns, 0, "ns")


def test_counters_of_no_interval_begin_with_the_run(run: _Run) -> None:
    for first_ns, ok in ((0, True), (1, False)):
        run.report.sources["counter"].counts |= {"first_ns": first_ns}
        assert ("counter from begin to end" not in run.failed()) is ok
    run.plan = dataclasses.replace(run.plan, collect=collecting(run.plan.collect, counters_us=2))
    for first_ns, ok in ((5000, True), (5001, False)):
        run.report.sources["counter"].counts |= {"first_ns": first_ns}
        assert ("counter from begin to end" not in run.failed()) is ok
    run.report.sources["counter"].counts |= {"first_ns": None}
    (check,) = [each for each in run.checks() if each.name == "counter from begin to end"]
    assert check == Check(check.name, "collection", False, "counter has no reading", END_NS, None, 0, "ns")
    del run.report.sources["qdisc"]
    assert "qdisc from begin to end" not in {each.name for each in run.checks()}


@pytest.mark.parametrize(
    ("first_ms", "last_ms", "connected_ms", "stop_ms", "ok"),
    [
        # Read each 100 ms: the first reading may be 250 ms after the connection, the last one 250 ms before the end.
        (250, 1750, 0, 2000, True),
        (251, 1750, 0, 2000, False),
        (250, 1749, 0, 2000, False),
        (450, 1750, 200, 2000, True),
        (451, 1750, 200, 2000, False),
        (350, 1750, None, 2000, True),  # a flow that never connected, from its start at 100 ms
        (351, 1750, None, 2000, False),
        (0, 1750, 0, 3000, True),  # the run ends at 2 s
        (0, 0, 0, 500, True),  # one that is there for five intervals may be missed,
        (0, 0, 0, 501, False),  # and a longer one not
    ],
)
def test_a_flow_is_read_from_its_connection_to_its_end(
    run: _Run, first_ms: float, last_ms: float, connected_ms: float | None, stop_ms: float, ok: bool
) -> None:
    info = make_info([first_ms, last_ms])
    trace = make_trace([40, 1990], [0, 1], [10, 11], start_ms=100, stop_ms=stop_ms, connected_ms=connected_ms)
    data = make_measured([trace], info=info, plan=run.plan)
    (check,) = [each for each in coverage_checks(run.plan, run.report, data, run.raw, None) if "tcp_info" in each.name]
    good, bad = "tcp_info was read until each flow ended", "tcp_info stops early: of 1 flows (flow 1)"
    assert check == Check(check.name, "collection", ok, good if ok else bad, 0, 0 if ok else 1, 0, "flows")


def test_a_program_closes_its_sockets_when_it_likes(run: _Run) -> None:
    """Its last record is at 1 s, and so are its readings until 750 ms or later."""
    flow = make_flow(traffic="program", program={"sender": "x"})
    for last_ms, ok in ((750, True), (749, False)):
        trace = make_trace([40, 1000], [0, 1], [10, 11], flow=flow)
        data = make_measured([trace], info=make_info([0, last_ms]), plan=run.plan)
        found = coverage_checks(run.plan, run.report, data, run.raw, None)
        assert [each.ok for each in found if each.name == "tcp_info from begin to end"] == [ok]


def test_a_flow_that_left_nothing_at_all_is_judged_elsewhere(run: _Run) -> None:
    for trace, ok in ((make_trace([], [], []), True), (make_trace([40], [0], [10]), False)):
        data = make_measured([trace], info=make_info([]), plan=run.plan)
        found = coverage_checks(run.plan, run.report, data, run.raw, None)
        assert [each.ok for each in found if each.name == "tcp_info from begin to end"] == [ok]


@pytest.mark.parametrize(
    ("acknowledged", "state", "last_record_ms", "ok"),
    [
        # The ACK between 100 and 200 ms came after the reading at 100 ms: a record at 100 ms or later may be its own.
        ([1, 1, 2, 2], [1, 1, 1, 1], 100, True),
        ([1, 1, 2, 2], [1, 1, 1, 1], 99, False),
        ([1, 2, 2, 3], [1, 1, 1, 1], 199, False),  # the last of two
        ([1, 2, 2, 3], [1, 1, 1, 1], 200, True),
        ([1, 1, 1, 1], [1, 1, 1, 1], 0, True),
        ([1, 1, 2, 3], [1, 1, 1, 4], 100, True),  # no record is made of ACKs after a FIN
        ([MISSING, 1, 1, 1], [1, 1, 1, 1], 0, True),  # from nothing known nothing has grown
    ],
)
def test_the_trace_reaches_the_last_ack(
    acknowledged: list[int], state: list[int], last_record_ms: int, ok: bool
) -> None:
    info = make_info([0, 100, 200, 300], bytes_acked_bytes=acknowledged, state=state)
    check = trace_to_the_end(make_measured([make_trace([0, last_record_ms], [0, 1], [10, 11])], info=info))
    bad = "the trace ends before the ACKs do: of 1 flows (flow 1)"
    good = "the trace has the last ACKs that tcp_info knows of"
    assert check == Check("trace to the end", "collection", ok, good if ok else bad, 0, 0 if ok else 1, 0, "flows")


def test_a_trace_without_readings_is_not_compared() -> None:
    traces = [make_trace([], [], [], flow=make_flow(id=number)) for number in range(1, 6)]
    grown, state = {"bytes_acked_bytes": [1, 2]}, {"state": [1, 1]}
    assert trace_to_the_end(make_measured(traces, info=make_info([0, 100], **grown))).ok is True
    assert trace_to_the_end(make_measured(traces, info=make_info([0, 100], **state))).ok is True
    both = make_info([0, 100], **grown, **state)
    check = trace_to_the_end(make_measured(traces, info=both))
    assert (check.ok, check.measured) == (False, 5)
    assert check.message == "the trace ends before the ACKs do: of 5 flows (flow 1, 2, 3 …)"
    three = trace_to_the_end(make_measured(traces[:3], info=both))
    assert three.message == "the trace ends before the ACKs do: of 3 flows (flow 1, 2, 3)"


def test_ss_is_asked_on_every_host_at_both_times(run: _Run) -> None:
    (run.raw / "ss-begin.txt").write_bytes(b"# s1 5080000000\nESTAB \xff\n# r1\nr1 # 5\n")
    (run.raw / "ss-end.txt").unlink()
    (check,) = [each for each in run.checks() if each.name == "ss at begin and end"]
    message = "there is no ss-begin.txt of r1, no ss-end.txt of r1, no ss-end.txt of s1"
    assert check == Check("ss at begin and end", "collection", False, message, 0, 3, 0, "readings")
    (run.raw / "ss-begin.txt").unlink()
    assert "no ss-end.txt of s1" not in run.failed()["ss at begin and end"], "three are named"
    group = [dataclasses.replace(flow, group="web") for flow in run.plan.flows]
    run.plan = dataclasses.replace(run.plan, flows=group)
    assert "ss at begin and end" not in run.failed(), "connections of groups have no part of their own"
    run.plan = dataclasses.replace(run.plan, flows=[])
    assert not {"ss at begin and end", "tcp_info from begin to end", "trace to the end"} & {
        c.name for c in run.checks()
    }


@pytest.mark.parametrize(
    ("change", "ok", "words"),
    [
        ({"dropped_by_kernel": None, "dropped_by_interface": None}, True, ", 0 were dropped"),
        ({"dropped_by_kernel": 3, "dropped_by_interface": 4}, False, ", 7 were dropped (status 0)"),
        ({"received": 5}, False, " of 5, 0 were dropped (status 0)"),
        ({"status": 2}, False, ", 0 were dropped (status 2)"),
        ({"status": None}, False, ", 0 were dropped (status None)"),
    ],
)
def test_what_tcpdump_says_of_its_capture(run: _Run, change: dict[str, Any], ok: bool, words: str) -> None:
    run.capture |= change
    (check,) = [each for each in run.checks() if each.name == f"capture {PLACE}"]
    assert check.message.endswith(words + ("" if ok else ": the capture is not whole"))
    assert (check.ok, check.expected, check.measured) == (ok, run.capture["received"], run.capture["in_file"])
    assert (check.tolerance, check.unit) == (0, "packets")


@pytest.mark.parametrize("missing", ["captured", "received"])
def test_a_capture_whose_tcpdump_said_nothing_fails(run: _Run, missing: str) -> None:
    del run.capture[missing]
    (check,) = [each for each in run.checks() if each.name == f"capture {PLACE}"]
    message = "tcpdump did not say how many packets it captured: it was killed, or its words were lost"
    assert check == Check(check.name, "collection", False, message, None, run.capture["in_file"], 0, "packets")


def test_each_place_has_its_capture(run: _Run) -> None:
    """The second one is not there, and the first is judged all the same."""
    two = dataclasses.replace(run.plan.collect, pcap=["r1:r1-eth0", PLACE])
    run.plan = dataclasses.replace(run.plan, collect=two)
    found = [each for each in run.checks() if each.name.startswith("capture")]
    assert [(each.name, each.ok) for each in found] == [
        ("capture r1:r1-eth0", False),
        (f"capture {PLACE}", True),
        (f"capture {PLACE} and interface", True),
    ]
    assert found[0].message == "the packets of the capture at r1:r1-eth0 were not counted"
    run.accounting = None  # type: ignore[assignment]
    assert f"capture {PLACE} and interface" not in {each.name for each in run.checks()}
