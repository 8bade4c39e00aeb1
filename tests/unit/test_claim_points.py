# SPDX-License-Identifier: Apache-2.0
"""Claims over several points: each and hold, trends, controls, quick, and which flow is meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


def test_a_control_says_nothing_of_points_it_was_not_run_at(tmp_path: Path) -> None:
    found = at_rtt(tmp_path, f"{FAILS}, control: there", MIXED, extra=CONTROLS)
    assert found["verdict"] == "fail"
    assert found["control"]["verdict"] == "unsupported"
    assert found["control"]["why"] == "the control was not run at path.rtt = 200 ms, where the claim fails"


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


def test_a_claim_that_does_not_say_which_flow_cannot_be_judged(tmp_path: Path) -> None:
    claim = "value: {metric: exit_cwnd_packets, at: {algorithm: reno}}, expect: {equals: 100}"
    profile = write_profile(tmp_path, f"  - {{id: it, says: so, {claim}}}\n", extra=FLOWS)
    both = [row("exit_cwnd_packets", 100, "packets", flow=flow) for flow in (1, 2)]
    found = judged(make_runs(tmp_path, profile, lambda _plan: both))["it"]
    assert found["verdict"] == "invalid"
    assert found["why"] == "exit_cwnd_packets is measured of 2 flows; say which with flow"
