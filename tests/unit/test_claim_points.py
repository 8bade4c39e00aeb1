# SPDX-License-Identifier: Apache-2.0
"""Claims over several points: each and hold, trends, controls, quick, and which flow is meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from howdah.plan.plan import Plan
from tests.claim_factory import HEAD, Row, judged, make_runs, row, write_profile

RTTS = "[20 ms, 100 ms, 200 ms]"


def at_rtt(tmp_path: Path, claim: str, means: dict[str, float], *, quick: bool = False, extra: str = "") -> Any:
    """One claim over the RTTs; ``means`` by RTT, or by ``control/RTT``; repetitions differ by ± 1 %."""

    def rows(plan: Plan) -> list[Row]:
        rtt = str(plan.axes["path.rtt"]) if "path.rtt" in plan.axes else ""
        control = plan.axes.get("control")
        mean = means.get(f"{control}/{rtt}", means[rtt]) if control else means[rtt]
        return [row("utilisation", mean * (0.99 + 0.01 * plan.repetition), "ratio")]

    text = f"  - {{id: it, says: so, value: {{metric: utilisation, at: {{algorithm: cubic}}}}, {claim}}}\n"
    profile = write_profile(tmp_path, text, rtt=RTTS, extra=extra)
    return judged(make_runs(tmp_path, profile, rows, quick=quick))["it"]


MIXED = {"20 ms": 0.9, "100 ms": 0.7, "200 ms": 0.5}


@pytest.mark.parametrize(
    ("hold", "limit", "verdict"),
    [
        ("all", 0.4, "pass"),
        ("all", 0.6, "fail"),
        ("any", 0.8, "pass"),
        ("any", 0.95, "fail"),
        ("max", 0.8, "pass"),
        ("max", 0.95, "fail"),
        ("min", 0.4, "pass"),
        ("min", 0.6, "fail"),
        ("mean", 0.69, "pass"),
        ("mean", 0.71, "fail"),
    ],
)
def test_each_and_hold(tmp_path: Path, hold: str, limit: float, verdict: str) -> None:
    found = at_rtt(tmp_path, f"expect: {{at_least: {limit}}}, each: path.rtt, hold: {hold}", MIXED)
    assert found["verdict"] == verdict
    assert [point["at"] for point in found["measured"]["points"]] == [{"path.rtt": rtt} for rtt in MIXED]


@pytest.mark.parametrize(
    ("hold", "share", "verdict"),
    [
        ("all", "30 %", "pass"),  # at 200 ms one of three repetitions is at least 0.5
        ("all", "40 %", "fail"),
        ("any", "100 %", "pass"),
        ("mean", "100 %", "pass"),  # 0.693, 0.7 and 0.707
    ],
)
def test_a_share_of_the_repetitions_at_each_point(tmp_path: Path, hold: str, share: str, verdict: str) -> None:
    expect = f"{{at_least: 0.505, in_at_least: {share}}}"
    found = at_rtt(tmp_path, f"expect: {expect}, each: path.rtt, hold: {hold}", {**MIXED, "200 ms": 0.505 / 1.01})
    assert found["verdict"] == verdict
    assert found["expected"]["text"].startswith(f"at least 0.505 in at least {share} of the repetitions, ")
    if verdict == "fail":
        why = "in 1 of 3 repetitions; outside the range: 49.5 %, 50 % at path.rtt = 200 ms"
        assert found["why"] == f"fails at 1 of 3 points: {why}"


@pytest.mark.parametrize(("limit", "verdict"), [(0.695, "pass"), (0.701, "fail")])
def test_the_mean_over_points_is_counted_in_each_repetition(tmp_path: Path, limit: float, verdict: str) -> None:
    """0.693, 0.7 and 0.707 in the mean over the RTTs."""
    expect = f"{{at_least: {limit}, in_at_least: 60 %}}"
    found = at_rtt(tmp_path, f"expect: {expect}, each: path.rtt, hold: mean", MIXED)
    assert found["verdict"] == verdict


def test_a_failing_point_is_named(tmp_path: Path) -> None:
    found = at_rtt(tmp_path, "expect: {at_least: 0.6}, each: path.rtt", MIXED)
    assert found["why"] == "fails at 1 of 3 points: at path.rtt = 200 ms"
    assert [point["verdict"] for point in found["measured"]["points"]] == ["pass", "pass", "fail"]


@pytest.mark.parametrize(
    ("trend", "means", "verdict"),
    [
        ("rises", [0.5, 0.7, 0.9], "pass"),
        ("rises", [0.9, 0.7, 0.5], "fail"),
        ("rises", [0.7, 0.7, 0.7], "fail"),
        ("rises", [0.7, 0.5, 0.9], "fail"),  # the ends rise, the ranks correlate by only 0.5
        ("falls", [0.9, 0.7, 0.5], "pass"),
        ("falls", [0.5, 0.7, 0.9], "fail"),
        ("flat", [0.70, 0.65, 0.72], "pass"),
        ("flat", [0.70, 0.50, 0.72], "fail"),
    ],
)
def test_trends(tmp_path: Path, trend: str, means: list[float], verdict: str) -> None:
    values = dict(zip(MIXED, means, strict=True))
    found = at_rtt(tmp_path, f"expect: {{trend: {trend}, over: path.rtt}}", values)
    assert found["verdict"] == verdict
    assert [each["mean"] for each in found["measured"]["trend"]] == pytest.approx(means)


@pytest.mark.parametrize(
    ("expect", "means", "verdict"),
    [
        ("trend: falls, by: 10 %", [0.90, 0.85, 0.81], "pass"),
        ("trend: falls, by: 10 %", [0.90, 0.85, 0.82], "fail"),  # it falls, by less
        ("trend: rises, by: 100 %", [0.4, 0.7, 0.8], "pass"),
        ("trend: rises, by: 100 %", [0.4, 0.7, 0.79], "fail"),
        ("trend: flat, within: 33 %", [0.4, 0.6, 0.79], "pass"),
        ("trend: flat, within: 33 %", [0.4, 0.6, 0.81], "fail"),
        ("trend: flat, within: 5 %", [0.70, 0.65, 0.72], "fail"),
    ],
)
def test_the_size_of_a_trend(tmp_path: Path, expect: str, means: list[float], verdict: str) -> None:
    found = at_rtt(tmp_path, f"expect: {{{expect}, over: path.rtt}}", dict(zip(MIXED, means, strict=True)))
    assert found["verdict"] == verdict
    assert expect.rpartition(": ")[2] in found["expected"]["text"]


def test_a_trend_follows_the_size_of_the_values_not_their_order(tmp_path: Path) -> None:
    """0.5 bdp, 1 bdp and 10 bdp, written from the largest: 10 is above 1 although its text is below 5."""
    head = HEAD.replace("buffer: 1 bdp", "buffer: [10 bdp, 0.5 bdp, 1 bdp]")
    sizes = {"10 bdp": 0.9, "0.5 bdp": 0.3, "1 bdp": 0.6}

    def rows(plan: Plan) -> list[Row]:
        return [row("utilisation", sizes[str(plan.axes["path.buffer"])] + 0.001 * plan.repetition, "ratio")]

    claim = "value: {metric: utilisation, at: {algorithm: cubic}}, expect: {trend: rises, over: path.buffer}"
    profile = write_profile(tmp_path, f"  - {{id: it, says: so, {claim}}}\n", head=head)
    assert judged(make_runs(tmp_path, profile, rows))["it"]["verdict"] == "pass"


CONTROLS = """\
controls:
  without: {what: the mechanism is off, set: {host.sysctls.net.ipv4.tcp_recovery: 0}}
  there: {what: off at one point, set: {host.sysctls.net.ipv4.tcp_recovery: 0}, at: {path.rtt: 20 ms}}
"""
FAILS = "expect: {at_least: 0.6}, each: path.rtt, because: it is new"


def test_differs_when_the_control_passes(tmp_path: Path) -> None:
    means = {**MIXED, "without/200 ms": 0.65}
    found = at_rtt(tmp_path, f"{FAILS}, control: without", means, extra=CONTROLS)
    assert found["verdict"] == "differs"
    control = found["control"]
    assert (control["name"], control["what"], control["because"]) == ("without", "the mechanism is off", "it is new")
    assert control["verdict"] == "pass"
    assert [point["mean"] for point in control["measured"]["points"]] == pytest.approx([0.9, 0.7, 0.65])
    assert all("without" in name for name in control["runs"])
    assert not any("without" in name for name in found["runs"])


def test_fails_when_the_control_fails_too(tmp_path: Path) -> None:
    found = at_rtt(tmp_path, f"{FAILS}, control: without", MIXED, extra=CONTROLS)
    assert (found["verdict"], found["control"]["verdict"]) == ("fail", "fail")


def test_a_control_says_nothing_of_points_it_was_not_run_at(tmp_path: Path) -> None:
    found = at_rtt(tmp_path, f"{FAILS}, control: there", MIXED, extra=CONTROLS)
    assert found["verdict"] == "fail"
    assert found["control"]["verdict"] == "unsupported"
    assert found["control"]["why"] == "the control was not run at path.rtt = 200 ms, where the claim fails"


def test_a_claim_that_holds_needs_no_control(tmp_path: Path) -> None:
    claim = "expect: {at_least: 0.4}, each: path.rtt, control: without, because: it is new"
    found = at_rtt(tmp_path, claim, {**MIXED, "without/20 ms": 0.1}, extra=CONTROLS)
    assert (found["verdict"], found["control"]) == ("pass", None)


def test_a_control_may_replace_an_axis(tmp_path: Path) -> None:
    extra = "controls:\n  near: {what: a short path, set: {path.rtt: 20 ms}}\n"
    found = at_rtt(
        tmp_path,
        "expect: {at_least: 0.6}, each: path.rtt, control: near, because: far",
        {**MIXED, "": 0.8},
        extra=extra,
    )
    assert found["verdict"] == "differs"
    assert [point["at"] for point in found["control"]["measured"]["points"]] == [{}]


QUICK = "quick: {repetitions: 2, path.rtt: [20 ms, 100 ms]}\n"


def test_quick_judges_the_points_it_has(tmp_path: Path) -> None:
    found = at_rtt(tmp_path, "expect: {at_least: 0.6}, each: path.rtt", MIXED, quick=True, extra=QUICK)
    assert found["verdict"] == "pass"
    assert "1 of 3 points left out of the quick atlas" in found["why"]
    assert found["measured"]["n"] == 2


def test_a_point_that_quick_leaves_out_is_unsupported(tmp_path: Path) -> None:
    claim = "value: {metric: utilisation, at: {algorithm: cubic, path.rtt: 200 ms}}, expect: {at_least: 0.1}"
    profile = write_profile(tmp_path, f"  - {{id: it, says: so, {claim}}}\n", rtt=RTTS, extra=QUICK)
    experiment = make_runs(tmp_path, profile, lambda _plan: [row("utilisation", 0.5, "ratio")], quick=True)
    found = judged(experiment)["it"]
    assert (found["verdict"], found["why"], found["runs"]) == ("unsupported", "left out of the quick atlas", [])


def test_a_value_that_set_takes_away_is_not_judged_at_another(tmp_path: Path) -> None:
    claim = "value: {metric: utilisation, at: {algorithm: cubic, path.rtt: 200 ms}}, expect: {at_least: 0.1}"
    profile = write_profile(tmp_path, f"  - {{id: it, says: so, {claim}}}\n", rtt=RTTS)
    experiment = make_runs(
        tmp_path, profile, lambda _plan: [row("utilisation", 0.5, "ratio")], overrides=["path.rtt=20 ms"]
    )
    found = judged(experiment)["it"]
    assert (found["verdict"], found["why"]) == ("unsupported", "its points were left out of the sweep")


FLOWS = """\
flows:
  - {name: first}
  - {start: 1 s}
"""


@pytest.mark.parametrize(
    ("flow", "value"),
    [
        ("flow: 1", 100),
        ("flow: first", 100),
        ("flow: 2", 20),
        ("flow: flow2", 20),
        ("flow: all, take: sum", 120),
        ("flow: all, take: mean", 60),
        ("flow: all, take: min", 20),
        ("flow: all, take: max", 100),
    ],
)
def test_which_flow(tmp_path: Path, flow: str, value: float) -> None:
    def rows(_plan: Plan) -> list[Row]:
        first = row("exit_cwnd_packets", 100, "packets", flow=1)
        return [first, row("exit_cwnd_packets", 20, "packets", flow=2), row("utilisation", 0.5, "ratio")]

    claim = f"value: {{metric: exit_cwnd_packets, {flow}, at: {{algorithm: reno}}}}, expect: {{equals: {value}}}"
    profile = write_profile(tmp_path, f"  - {{id: it, says: so, {claim}}}\n", extra=FLOWS)
    found = judged(make_runs(tmp_path, profile, rows))["it"]
    assert (found["verdict"], found["measured"]["mean"]) == ("pass", value)


def test_a_claim_that_does_not_say_which_flow_cannot_be_judged(tmp_path: Path) -> None:
    claim = "value: {metric: exit_cwnd_packets, at: {algorithm: reno}}, expect: {equals: 100}"
    profile = write_profile(tmp_path, f"  - {{id: it, says: so, {claim}}}\n", extra=FLOWS)
    both = [row("exit_cwnd_packets", 100, "packets", flow=flow) for flow in (1, 2)]
    found = judged(make_runs(tmp_path, profile, lambda _plan: both))["it"]
    assert found["verdict"] == "invalid"
    assert found["why"] == "exit_cwnd_packets is measured of 2 flows; say which with flow"


@pytest.mark.parametrize(("take", "value"), [("", 7), (", take: sum", 5), (", take: max", 4)])
def test_a_group_is_meant_as_a_whole_or_by_its_connections(tmp_path: Path, take: str, value: float) -> None:
    group = "groups:\n  - {name: web, connections: 2, size: 100 kB}\n"

    def rows(_plan: Plan) -> list[Row]:
        each = [
            row("retransmitted_packets", count, "packets", flow=flow, group="web") for flow, count in ((1, 1), (2, 4))
        ]
        return [*each, row("retransmitted_packets", 7, "packets", group="web", role="measured")]

    claim = f"value: {{metric: retransmitted_packets, flow: web{take}, at: {{algorithm: reno}}}}"
    text = f"  - {{id: it, says: so, {claim}, expect: {{equals: {value}, within: 0}}}}\n"
    found = judged(make_runs(tmp_path, write_profile(tmp_path, text, extra=group), rows))["it"]
    assert (found["verdict"], found["measured"]["mean"]) == ("pass", value)


@pytest.mark.parametrize(("connections", "verdict"), [(1, "pass"), (2, "invalid")])
def test_a_measure_of_connections_alone_is_that_of_the_only_one(tmp_path: Path, connections: int, verdict: str) -> None:
    group = f"groups:\n  - {{name: bulk, connections: {connections}, size: 100 kB}}\n"

    def rows(_plan: Plan) -> list[Row]:
        return [row("completion_time_s", 2.0, "s", flow=flow, group="bulk") for flow in range(1, connections + 1)]

    claim = "value: {metric: completion_time_s, flow: bulk, at: {algorithm: reno}}, expect: {equals: 2 s}"
    profile = write_profile(tmp_path, f"  - {{id: it, says: so, {claim}}}\n", extra=group)
    found = judged(make_runs(tmp_path, profile, rows))["it"]
    assert found["verdict"] == verdict
    assert verdict == "pass" or "say with take which is meant" in found["why"]
