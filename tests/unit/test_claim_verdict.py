# SPDX-License-Identifier: Apache-2.0
"""Verdicts over experiments made by hand: what is planted is what is found.

Every form of an expectation is in test_claim_golden.py, and its bounds in test_claim_bound.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from howdah.command.main import main
from howdah.plan.plan import Plan
from tests.claim_factory import HEAD, Row, judged, make_runs, row, write_profile


def one(tmp_path: Path, claim: str, measured: dict[str, list[float | None]], **options: Any) -> dict[str, Any]:
    """The one claim of a profile whose algorithms have these values in their repetitions."""
    count = max(len(values) for values in measured.values())

    def rows(plan: Plan) -> list[Row]:
        return [row("utilisation", measured[plan.algorithm][plan.repetition], "ratio")]

    profile = write_profile(tmp_path, f"  - {{id: it, says: so, {claim}}}\n", repetitions=count)
    found: dict[str, Any] = judged(make_runs(tmp_path, profile, rows, **options))["it"]
    return found


CUBIC = "value: {metric: utilisation, at: {algorithm: cubic}}"
THAN = f"{CUBIC}, than: {{at: {{algorithm: reno}}}}"
FAR: list[float | None] = [0.80, 0.81, 0.82]
HALF: list[float | None] = [0.38, 0.39, 0.41]


@pytest.mark.parametrize(("expect", "verdict"), [("{at_most: 50 %}", "unsupported"), ("{at_least: 50 %}", "pass")])
def test_what_hangs_on_a_contradiction_passes_or_cannot_be_decided(tmp_path: Path, expect: str, verdict: str) -> None:
    found = one(tmp_path, f"{CUBIC}, expect: {expect}, contradiction: 30 is 31", {"cubic": FAR, "reno": HALF})
    assert found["verdict"] == verdict
    assert found["measured"]["mean"] == pytest.approx(0.81)
    assert found["contradiction"] == "30 is 31"
    assert ("contradicts itself: 30 is 31" in found["why"]) == (verdict == "unsupported")


def test_one_repetition_is_compared_by_means_and_says_so(tmp_path: Path) -> None:
    found = one(tmp_path, f"{THAN}, expect: more", {"cubic": [0.8], "reno": [0.7]})
    assert found["verdict"] == "pass"
    assert "n = 1, compared by means" in found["why"]
    assert found["measured"]["low"] is None
    assert found["measured"]["text"] == "80 %, n = 1"


def test_a_valid_run_without_the_value_is_a_failure(tmp_path: Path) -> None:
    found = one(tmp_path, f"{CUBIC}, expect: {{above: 10 %}}", {"cubic": [0.8, 0.8, None], "reno": HALF})
    assert found["verdict"] == "fail"
    assert "1 of 3 runs have none: there was none" in found["why"]


def test_invalid_when_fewer_than_half_of_its_runs_are_valid(tmp_path: Path) -> None:
    values: dict[str, list[float | None]] = {"cubic": [0.8] * 4, "reno": [0.5] * 4}

    def broken(count: int, way: str) -> Any:
        return lambda plan: way if plan.algorithm == "cubic" and plan.repetition < count else "pass"

    claim = f"{CUBIC}, expect: {{above: 10 %}}"
    for directory, count, way, verdict in (
        ("half", 2, "invalid", "pass"),
        ("most", 3, "invalid", "invalid"),
        ("all", 4, "failed", "invalid"),
        ("absent", 3, "pending", "invalid"),
    ):
        place = tmp_path / directory
        place.mkdir()
        found = one(place, claim, values, verdict=broken(count, way))
        assert found["verdict"] == verdict, directory
        assert f"{count} of 4 runs left out: {count} {'not made' if way == 'pending' else way}" in found["why"]


def test_pairs_are_the_repetitions_that_both_sides_have(tmp_path: Path) -> None:
    """Perturbations move both sides by far more than they differ: only pairs show it."""
    cubic: list[float | None] = [0.30, 0.50, 0.70, 0.99]
    reno: list[float | None] = [0.29, 0.49, 0.69, 0.10]
    out = lambda plan: "invalid" if plan.repetition == 3 and plan.algorithm == "reno" else "pass"  # noqa: E731
    found = one(tmp_path, f"{THAN}, expect: more", {"cubic": cubic, "reno": reno}, verdict=out)
    assert found["verdict"] == "pass"
    assert found["comparison"]["difference"] == pytest.approx(0.01)


def test_two_repetitions_of_both_sides_are_pairs(tmp_path: Path) -> None:
    """Differences 0.01 and 0.0102: their interval is t(1) s / sqrt(2) = 12.7 x 0.0001 to both sides of 0.0101."""
    found = one(tmp_path, f"{THAN}, expect: more", {"cubic": [0.30, 0.50], "reno": [0.29, 0.4898]})
    assert (found["verdict"], found["comparison"]["paired"]) == ("pass", True)
    assert found["comparison"]["difference"] == pytest.approx(0.0101)
    low = found["comparison"]["difference_low"]
    assert low == pytest.approx(0.0101 - 12.706 * 0.0001, abs=1e-6)


def test_unsupported_has_its_reason(tmp_path: Path) -> None:
    found = one(tmp_path, "unsupported: no hardware here", {"cubic": FAR, "reno": HALF})
    assert (found["verdict"], found["why"], found["measured"]) == ("unsupported", "no hardware here", None)


def test_the_command_says_what_failed_and_exits_with_6(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one(tmp_path, f"{CUBIC}, expect: {{above: 90 %}}", {"cubic": FAR, "reno": HALF})
    arguments = ["claims", "made", "--runs", str(tmp_path / "runs")]
    assert main(arguments) == 6
    text = capsys.readouterr().out
    assert "claims: 1 fail" in text
    assert "expected above 90 %; measured 81 (80 … 82) %, n = 3" in text
    assert main([*arguments, "--json"]) == 6
    assert json.loads(capsys.readouterr().out)["claims"][0]["verdict"] == "fail"


def test_claims_of_another_profile_can_be_judged_over_the_same_runs(tmp_path: Path) -> None:
    one(tmp_path, f"{CUBIC}, expect: {{above: 90 %}}", {"cubic": FAR, "reno": HALF})
    other = tmp_path / "other.yaml"
    other.write_text((tmp_path / "made.yaml").read_text().replace("above: 90 %", "above: 70 %"))
    assert main(["claims", "made", "--runs", str(tmp_path / "runs"), "--profile", str(other)]) == 0


def test_an_experiment_without_claims_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    experiment = make_runs(tmp_path, write_profile(tmp_path, ""), lambda _plan: [])
    (experiment / "claims.json").write_text("{}")
    assert main(["claims", "made", "--runs", str(tmp_path / "runs")]) == 1
    assert "makes no claims" in capsys.readouterr().err
    assert not (experiment / "claims.json").exists(), "claims of an earlier profile are not these"


@pytest.mark.parametrize("expect", ["{above: 30 %}", "{at_least: 30 %, in_at_least: 90 %}"])
@pytest.mark.parametrize(("machine", "verdict"), [(True, "unsupported"), (False, "fail")])
def test_what_this_machine_cannot_measure_is_unsupported(
    tmp_path: Path, machine: bool, verdict: str, expect: str
) -> None:
    def rows(_plan: Plan) -> list[Row]:
        more: dict[str, Any] = {"why": "perf is not installed", **({"unsupported": True} if machine else {})}
        return [row("cpu_share_tcp_data_queue", None, "ratio", **more)]

    claim = "{metric: cpu_share_tcp_data_queue, at: {algorithm: cubic}}"
    text = f"  - {{id: it, says: so, value: {claim}, expect: {expect}}}\n"
    found = judged(
        make_runs(tmp_path, write_profile(tmp_path, text, repetitions=2, extra="collect: {cpu: true}\n"), rows)
    )["it"]
    assert found["verdict"] == verdict
    assert "perf is not installed" in found["why"]


# Claims over several points: each and hold, trends, controls, quick, and which flow is meant

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
