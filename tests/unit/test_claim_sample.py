# SPDX-License-Identifier: Apache-2.0
"""Which runs a claim is about, and which of their rows: every axis, every flow, and every run without a value."""

from __future__ import annotations

import dataclasses
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from howdah.claim.judging import pooled
from howdah.claim.sample import ClaimRun, ClaimRuns, Sample, SelectionError, sample, select
from howdah.profile.claim import SelectorSection
from howdah.profile.control import ControlSection
from howdah.profile.source import Document
from howdah.record.directory import RunDirectory
from howdah.record.metrics import MetricRow
from howdah.record.result import Run
from howdah.record.run import RunRecord
from howdah.record.verdict import Verdict

DATA = {"path": {"rtt": "40 ms", "rate": "10 Mbit/s"}, "flows": [{}, {"name": "second", "start": "1 s"}]}

_RECORD = RunRecord(status="finished")


def run_of(*rows: MetricRow, verdict: str = "pass", status: str = "finished", plan: Any = None) -> Run:
    judged = Verdict.model_validate({"verdict": verdict})
    return Run(RunDirectory(Path("r")), "made", "cubic", 0, {}, status, plan, list(rows), [], judged, _RECORD)


def line(value: float | str | None, flow: int | None = None, **more: Any) -> MetricRow:
    return MetricRow(flow, "m", value, "s", **more)


def made(name: str, repetition: int = 0, run: Run | None = None, **axes: Any) -> ClaimRun:
    return ClaimRun(name, {key.replace("_", "."): value for key, value in axes.items()}, "cubic", repetition, run)


RUNS = [
    made("a", path_rtt="40 ms"),
    made("b", path_rtt="100 ms"),
    made("c", path_rtt="40 ms", control="off"),
    made("d", path_rtt="20 ms", control="off"),
    made("e", path_rtt="40 ms", unknown="buffer 2"),
    made("f", path_rtt="40 ms", traffic="iperf3"),
    made("g", control="near"),
    ClaimRun("h", {"path.rtt": "40 ms", "algorithm": "reno"}, "reno", 0, None),
]
CONTROLS = {
    "off": ControlSection.model_validate({"what": "off", "set": {"host.sysctls.net.ipv4.tcp_recovery": 0}}),
    "near": ControlSection.model_validate({"what": "near", "set": {"path.rtt": "20 ms", "flows.second.start": "0 s"}}),
}
FIELD = ClaimRuns(RUNS, Document(DATA), CONTROLS, {})


@pytest.mark.parametrize(
    ("point", "names"),
    [
        ({}, "abh"),  # the sweep alone
        ({"path.rtt": "40ms"}, "ah"),  # as a run's name spells it
        ({"path.rtt": "40 ms", "algorithm": "cubic"}, "a"),
        ({"algorithm": "reno"}, "h"),
        ({"path.rate": "10 Mbit/s"}, "abh"),  # a field of one value
        ({"path.rate": "20 Mbit/s"}, ""),
        ({"path.mtu": "1500"}, ""),
        ({"control": "off"}, "cd"),
        ({"control": "off", "path.rtt": "20 ms"}, "d"),
        ({"control": "near", "path.rtt": "100 ms"}, "g"),  # its value stands for all of the axis'
        ({"control": "near", "flows.2.start": "9 s"}, "g"),  # by another name of the field
        ({"control": "near", "path.rate": "20 Mbit/s"}, ""),
        ({"control": "on"}, ""),
        ({"unknown": "buffer 2"}, "e"),
        ({"unknown": "buffer 2", "control": "off"}, ""),
        ({"traffic": "iperf3"}, "f"),
    ],
)
def test_the_runs_at_a_point(point: dict[str, Any], names: str) -> None:
    assert "".join(each.name for each in FIELD.at(point)) == names


@pytest.mark.parametrize(
    ("axis", "control", "unknown", "values"),
    [
        ("path.rtt", None, None, ["40 ms", "100 ms"]),
        ("path.rtt", "off", None, ["40 ms", "20 ms"]),
        ("path.rtt", "near", None, []),
        ("path.rtt", None, "buffer 2", ["40 ms"]),
        ("algorithm", None, None, ["reno"]),
    ],
)
def test_the_values_of_an_axis(axis: str, control: str | None, unknown: str | None, values: list[str]) -> None:
    assert FIELD.values(axis, control, unknown) == values


FLOWS = (line(1, 1), line(2.5, 2), line(8, 3, role="background"), replace(line(9, 1), metric="other"))
PLAN = SimpleNamespace(flows=[SimpleNamespace(name="first", id=1), SimpleNamespace(name="second", id=2)])
WEB = (line(1, 4, group="web"), line(4, 5, group="web"))
TAKEN = {"sum": 3.5, "min": 1, "max": 2.5, "mean": 1.75}


@pytest.mark.parametrize(
    ("rows", "words", "found"),
    [
        *((FLOWS, {"flow": "all", "take": take}, (value, "s", "")) for take, value in TAKEN.items()),
        (FLOWS, {"flow": 2}, (2.5, "s", "")),
        (FLOWS, {"flow": "first"}, (1, "s", "")),
        (FLOWS, {"flow": "second"}, (2.5, "s", "")),
        (FLOWS, {"flow": 4}, (None, "", "no m was measured")),
        (FLOWS, {"flow": "third"}, (None, "", "no m was measured")),
        ((), {}, (None, "", "no m was measured")),
        ((line(None, 1, why="there was none"),), {}, (None, "s", "there was none")),
        ((line(None, 1),), {}, (None, "s", "it does not exist")),
        ((line(1, 1), line(None, 2, why="none")), {"flow": "all", "take": "sum"}, (None, "s", "none")),
        ((line("loss", 1),), {}, ("loss", "s", "")),
        ((line(3),), {}, (3, "s", "")),
        # Of the run before the group, and of the group before its flows.
        ((line(7), line(5, group="web"), line(1, 1)), {}, (7, "s", "")),
        ((line(5, group="web"), *FLOWS), {}, (5, "s", "")),
        ((line(5, 1),), {}, (5, "s", "")),
        ((line(7, group="web"), WEB[0]), {"flow": "web"}, (7, "s", "")),
        ((line(7, group="web"), *WEB), {"flow": "web", "take": "max"}, (4, "s", "")),
        (WEB[:1], {"flow": "web"}, (1, "s", "")),
        ((line(7, group="bulk"), *WEB), {"flow": "bulk"}, (7, "s", "")),
    ],
)
def test_the_value_that_is_meant(rows: tuple[Any, ...], words: dict[str, Any], found: tuple[Any, str, str]) -> None:
    assert select(run_of(*rows, plan=PLAN), SelectorSection(metric="m", **words)) == found


@pytest.mark.parametrize(
    ("rows", "words", "said"),
    [
        ((line(1, 1), line(2, 2)), {}, "m is measured of 2 flows; say which with flow"),
        ((line("a", 1), line("b", 2)), {"flow": "all", "take": "sum"}, "m is text, and has no sum"),
        (WEB, {"flow": "web"}, "m is measured of each of the 2 connections of web; say with take which is meant"),
    ],
)
def test_what_is_not_clear_is_refused(rows: tuple[Any, ...], words: dict[str, Any], said: str) -> None:
    with pytest.raises(SelectionError) as refused:
        select(run_of(*rows, plan=PLAN), SelectorSection(metric="m", **words))
    assert str(refused.value) == said


def test_a_run_without_a_plan_has_no_names_of_flows() -> None:
    assert select(run_of(line(1, 1)), SelectorSection(metric="m", flow="first")) == (None, "", "no m was measured")


def test_a_sample_says_of_each_run_what_became_of_it() -> None:
    unable = MetricRow(None, "other", None, "", unsupported=True)
    runs = [
        made("a", 0, run_of(line(2.0))),
        made("b", 1, run_of(line(None, why="none"), unable)),  # what is unsupported is another measure
        made("c", 2, run_of(line(None, why="no perf", unsupported=True))),
        made("d", 3, run_of(line(9.0), verdict="invalid")),
        made("e", 4, run_of(line(9.0), status="failed")),
        made("f", 5),
        made("g", 6, run_of(line(1.0), verdict="fail")),
    ]
    assert sample(runs, SelectorSection(metric="m")) == Sample(
        unit="s",
        values={0: 2.0, 6: 1.0},
        missing={1: "none", 2: "no perf"},
        unsupported={2},
        left_out={"d": "invalid", "e": "failed", "f": "not made"},
        runs=list("abcdefg"),
    )
    units = [
        made("a", 0, run_of(line(1.0))),
        made("b", 1, run_of(replace(line(1.0), unit="ms"))),
        made("c", 2, run_of()),
    ]
    assert sample(units, SelectorSection(metric="m")).unit == "s"


@pytest.mark.parametrize(
    ("runs", "left_out", "enough"),
    [(0, 0, False), (1, 0, True), (1, 1, False), (2, 1, True), (3, 1, True), (3, 2, False), (4, 2, True)],
)
def test_half_of_the_runs_is_enough(runs: int, left_out: int, enough: bool) -> None:
    names = [str(number) for number in range(runs)]
    assert Sample(runs=names, left_out=dict.fromkeys(names[:left_out], "invalid")).enough is enough


def test_numbers_are_in_the_order_of_the_repetitions() -> None:
    assert Sample(values={2: 5, 0: 7.0, 1: 6}).numbers() == [7.0, 6.0, 5.0]


def test_points_are_pooled_within_the_repetitions_that_all_have() -> None:
    """(1 + 3 + 8) / 3 = 4 of repetition 0; repetition 1 is in two of the three."""
    first = Sample("s", {1: 2.0, 0: 1.0, 2: 6.0}, runs=["a"])
    second = Sample("ms", {0: 3.0, 1: 5.0, 2: 0.0}, {3: "none"}, left_out={"x": "invalid"}, runs=["b", "x"])
    third = Sample("s", {2: 3.0, 0: 8.0}, {1: "no exit"}, left_out={"y": "failed"}, runs=["c", "y"])
    found = pooled([first, second, third])
    assert found == Sample(
        "s",
        {0: 4.0, 2: 3.0},
        {3: "none", 1: "no exit"},
        left_out={"x": "invalid", "y": "failed"},
        runs=["a", "b", "x", "c", "y"],
    )
    assert list(found.values) == [0, 2]
    assert dataclasses.replace(pooled([first]), values={}) == Sample("s", runs=["a"])
