# SPDX-License-Identifier: Apache-2.0
"""What two engines say is compared, and any difference beyond a tolerance is told."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from howdah.command import validate as command
from howdah.command.main import main
from howdah.command.validate import _engines, _planted
from howdah.engine.machines.machine import MACHINES_FILE
from howdah.errors import HowdahError, ProfileError
from howdah.record.metrics import MetricRow
from howdah.validate.comparison import (
    TOLERANCES,
    Side,
    Value,
    agree,
    compare,
    markdown,
    measures_of,
    rows,
    times,
    validation,
)

ROWS: dict[str, Value] = {
    "exit_cause": "ack-train",
    "exit_cwnd_packets": 400.0,
    "retransmitted_packets": 10.0,
    "goodput_bits_per_second": 40e6,
}


def side(engine: str, **changed: Value) -> Side:
    measures = {("flow1", metric): value for metric, value in {**ROWS, **changed}.items()}
    return Side(engine, "pass", "6.12.117", 3.0, measures)


@pytest.mark.parametrize(
    ("metric", "value", "agrees"),
    [
        ("exit_cwnd_packets", 404.0, True),
        ("exit_cwnd_packets", 396.0, True),
        ("exit_cwnd_packets", 404.1, False),
        ("exit_cwnd_packets", None, False),
        ("retransmitted_packets", 12.0, True),
        ("retransmitted_packets", 13.0, False),
        ("goodput_bits_per_second", 40.4e6, True),
        ("goodput_bits_per_second", 39.5e6, False),
        ("exit_cause", "delay", False),
    ],
)
def test_each_measure_has_its_tolerance(metric: str, value: Value, agrees: bool) -> None:
    point = compare("cubic-r0", "cubic", "a path", side("uml"), side("vm", **{metric: value}))
    assert point.agrees is agrees
    assert [pair.metric for pair in point.measures if not pair.agrees] == ([] if agrees else [metric])


def test_many_retransmissions_may_differ_by_two_percent() -> None:
    first = side("uml", retransmitted_packets=1000.0)
    assert compare("r", "a", "p", first, side("vm", retransmitted_packets=1020.0)).agrees
    assert not compare("r", "a", "p", first, side("vm", retransmitted_packets=1021.0)).agrees


def test_no_exit_on_both_engines_is_agreement() -> None:
    nothing: dict[str, Value] = {"exit_cause": None, "exit_cwnd_packets": None}
    assert compare("r", "a", "p", side("uml", **nothing), side("vm", **nothing)).agrees


def test_an_invalid_run_a_failed_one_and_another_kernel_are_problems_not_differences() -> None:
    broken = replace(side("vm"), verdict="invalid", problem="invalid: the rate is too low")
    point = compare("r", "a", "p", side("uml"), broken)
    assert not point.agrees
    assert point.problems == ["vm: invalid: the rate is too low"]
    failed = Side("vm", "failed", "", 1.0, problem="the module does not build")
    assert "vm: the module does not build" in compare("r", "a", "p", side("uml"), failed).problems
    other = compare("r", "a", "p", side("uml"), replace(side("vm"), kernel="6.1.192"))
    assert other.problems == ["uml ran Linux 6.12.117, vm 6.1.192"]


def test_nothing_compared_is_no_agreement() -> None:
    empty = replace(side("uml"), measures={})
    assert not agree([compare("r", "a", "p", empty, replace(empty, engine="vm"))])
    assert not agree([])


def test_only_flows_are_compared_and_only_what_has_a_tolerance() -> None:
    given = [
        MetricRow(1, "exit_cause", "loss", ""),
        MetricRow(1, "blackout_s", 1.0, "s"),
        MetricRow(None, "goodput_bits_per_second", 1.0, "bit/s"),
    ]
    assert measures_of(given) == {("1", "exit_cause"): "loss"}


def test_the_table_says_what_differs_and_repeats_nothing() -> None:
    points = [
        compare("cubic-r0", "cubic", "50 Mbit/s", side("uml"), side("vm", exit_cwnd_packets=500.0)),
        compare("reno-r0", "reno", "50 Mbit/s", side("uml"), side("vm")),
    ]
    table = rows(points)
    assert table[0][4:6] == ("uml", "vm")
    assert len(table) == 1 + 2 * len(TOLERANCES)
    assert table[1][:3] == ("50 Mbit/s", "cubic", "flow1")
    assert table[2] == ("", "", "", "exit cwnd, packets", "400", "500", "+25.00%", "differs")
    assert table[5][:3] == ("", "reno", "flow1"), "an algorithm begins with its name"
    assert markdown(points).count("differs") == 1
    assert any("uml pass in 3.0 s, vm pass in 3.0 s" in line for line in times(points))


def test_json_has_every_pair_and_is_json_even_where_one_value_is_zero() -> None:
    point = compare("r", "a", "p", side("uml", retransmitted_packets=0.0), side("vm", retransmitted_packets=5.0))
    (pair,) = [pair for pair in point.measures if pair.metric == "retransmitted_packets"]
    assert pair.difference is None, "a share of nothing"
    record = json.loads(json.dumps(validation("validate", ["uml", "vm"], [], [point]).plain(), allow_nan=False))
    assert record["agrees"] is False
    assert len(record["points"][0]["measures"]) == len(TOLERANCES)


def test_a_planted_difference_belongs_to_one_side() -> None:
    assert _planted(["vm:path.buffer=2 bdp"], ("uml", "vm")) == {"uml": [], "vm": ["path.buffer=2 bdp"]}
    for wrong in ("host:path.buffer=2 bdp", "path.buffer=2 bdp"):
        with pytest.raises(ProfileError, match="--plant"):
            _planted([wrong], ("uml", "vm"))


@pytest.mark.parametrize("wrong", ["uml", "uml,uml", "uml,qemu", "uml,vm,host"])
def test_two_different_engines_are_asked_for(wrong: str) -> None:
    with pytest.raises(HowdahError):
        _engines(wrong)


@pytest.mark.parametrize(("verdict", "cwnd", "status"), [("pass", 400.0, 0), ("pass", 500.0, 6), ("invalid", 400.0, 5)])
def test_the_exit_status_tells_agreement_from_disagreement_from_no_comparison(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    verdict: str,
    cwnd: float,
    status: int,
) -> None:
    other = replace(side("vm", exit_cwnd_packets=cwnd), verdict=verdict)
    found = [compare("cubic-r0", "cubic", "a path", side("uml"), other)]
    monkeypatch.setattr(command, "validate", lambda *_given, **_options: found)
    assert main(["validate", "--runs", str(tmp_path), "--json"]) == status
    record = json.loads(capsys.readouterr().out)
    assert record["agrees"] is (status == 0)
    assert json.loads((tmp_path / "validate-validation.json").read_text())["points"] == record["points"]


def test_a_machine_set_that_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(MACHINES_FILE, "")  # set back when the test is over
    words = [
        "validate",
        "--engines",
        "machines,uml",
        "--machines",
        str(tmp_path / "no.yaml"),
        "--runs",
        str(tmp_path / "runs"),
    ]
    assert main(words) == 2
    assert "there is no such machines file" in capsys.readouterr().err
