# SPDX-License-Identifier: Apache-2.0
"""Claims and controls in a profile: what they expand to, and what a wrong one says, with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.errors import ProfileError
from howdah.metric import known_metrics
from howdah.plan.compile import compile_plan
from howdah.profile import claim_check, load
from howdah.profile.claim_check import completed
from tests.claim_factory import CONTROLS, GOOD, RTTS, VALUE, write_profile


def wrong(tmp_path: Path, claim: str, extra: str = CONTROLS) -> ProfileError:
    """What loading a profile with this claim says; the claim is on the line that the error names."""
    file = write_profile(tmp_path, f"  - {{id: it, says: so, {claim}}}\n", rtt=RTTS, extra=extra)
    with pytest.raises(ProfileError) as raised:
        load(file)
    line = 1 + file.read_text().splitlines().index(
        next(line for line in file.read_text().splitlines() if "says: so" in line)
    )
    assert raised.value.where == f"{file}:{line}"
    return raised.value


RANKS = "with: {20 ms: 1, 40ms: 2, 60 ms: 4}"


@pytest.mark.parametrize(
    ("expect", "what"),
    [
        ("rank_correlation: {at_least: 0.9}, over: path.rtt", "rank_correlation and with belong together; with is"),
        (f"rank_correlation: {{at_least: 0.9}}, {RANKS}", "rank_correlation and over belong together; over is"),
        (f"trend: rises, over: path.rtt, {RANKS}", "rank_correlation and with belong together; rank_correlation is"),
        (f"rank_correlation: {{above: 0.9}}, over: path.rtt, {RANKS}", "a rank correlation has no interval; give at_l"),
        (f"rank_correlation: {{}}, over: path.rtt, {RANKS}", "expected one of equals"),
        (f"rank_correlation: {{at_least: 0.9 s}}, over: path.rtt, {RANKS}", "0.9 s"),
        ("rank_correlation: {at_least: 0.9}, over: path.rtt, with: {20 ms: 1, 40 ms: 2}", "expected 3 numbers at"),
        ("rank_correlation: {at_least: 0.9}, over: path.rtt, with: {20 ms: 1, 40 ms: 1, 60 ms: 1}", "not all of them"),
        ("rank_correlation: {at_least: 0.9}, over: path.rtt, with: {20 ms: 1, 40 ms: 2, 80 ms: 3}", "is never 80 ms"),
        (f"rank_correlation: {{at_least: 0.9}}, over: path.rate, {RANKS}", "does not sweep over path.rate"),
    ],
)
def test_a_rank_correlation_that_cannot_be(tmp_path: Path, expect: str, what: str) -> None:
    value = "value: {metric: utilisation, at: {algorithm: cubic}}"
    file = write_profile(
        tmp_path, f"  - {{id: it, says: so, {value}, expect: {{{expect}}}}}\n", rtt="[20 ms, 40 ms, 60 ms]"
    )
    with pytest.raises(ProfileError) as raised:
        load(file)
    assert what in raised.value.what
    fine = f"rank_correlation: {{at_least: 0.9}}, over: path.rtt, {RANKS}"
    claim = f"  - {{id: it, says: so, {value}, expect: {{{fine}}}}}\n"
    assert load(write_profile(tmp_path, claim, rtt="[20 ms, 40 ms, 60 ms]")).claims[0].expect is not None


GROUPS = "groups: [{name: web, connections: 2}]\n"
SIZED = "groups: [{name: web, connections: 2, size: 10 kB}]\n"


@pytest.mark.parametrize(
    ("metric", "unit", "traffic", "lacks"),
    [
        ("completion_time_s", "s", "", "no flow or group of the profile has a size"),
        ("transfer_time_s", "s", "flows: [{}, {}]\n", "no flow or group of the profile has a size"),
        ("completion_time_median_s", "s", GROUPS, "no flow or group of the profile has a size"),
        ("completion_time_p95_s", "s", GROUPS, "no flow or group of the profile has a size"),
        ("completed_share", "", GROUPS, "no flow or group of the profile has a size"),
        ("exit_cwnd_bdp", "", SIZED, "the profile has groups alone"),
        ("exit_time_s", "s", SIZED, "the profile has groups alone"),
        ("exits", "", SIZED, "the profile has groups alone"),
        ("overshoot_packets", "", SIZED, "the profile has groups alone"),
        ("time_to_90_percent_s", "s", SIZED, "the profile has groups alone"),
        ("time_to_1_mb_s", "s", SIZED, "the profile has groups alone"),
        ("recovery_s", "s", SIZED, "the profile has groups alone"),
        ("window_cuts", "", SIZED, "the profile has groups alone"),
    ],
)
def test_a_claim_on_what_no_flow_of_the_profile_has_is_refused(
    tmp_path: Path, metric: str, unit: str, traffic: str, lacks: str
) -> None:
    """As the measures of every traffic say: what is refused without it is accepted with it."""
    claim = f"value: {{metric: {metric}, at: {{algorithm: cubic}}}}, expect: {{at_least: 1 {unit}}}, each: path.rtt"
    found = wrong(tmp_path, claim, CONTROLS + traffic)
    assert f"no run of this profile can measure {metric}" in found.what
    assert lacks in found.what
    assert f"did you mean {metric}" not in (found.hint or "")
    for other in ("flows: [{size: 1 MB}]\n" + SIZED, "flows: [{}]\n" + SIZED):
        load(write_profile(tmp_path, f"  - {{id: it, says: so, {claim}}}\n", rtt=RTTS, extra=CONTROLS + other))


@pytest.mark.parametrize("size", ["size: 10 kB", "sizes: {lognormal: {median: 12 kB, sigma: 1}}"])
def test_a_claim_on_completion_is_accepted_of_every_size_of_a_group(tmp_path: Path, size: str) -> None:
    at = "flow: web, at: {algorithm: cubic}"
    claim = f"value: {{metric: completion_time_median_s, {at}}}, expect: {{above: 1 ms}}, each: path.rtt"
    extra = f"{CONTROLS}groups: [{{name: web, connections: 2, {size}}}]\n"
    load(write_profile(tmp_path, f"  - {{id: it, says: so, {claim}}}\n", rtt=RTTS, extra=extra))


def test_every_need_is_of_a_module_that_measures() -> None:
    modules = {module for each in known_metrics().values() for module in each.modules}
    assert {f"howdah.measure.{need.module}" for need in claim_check._NEEDS if need.module} <= modules


@pytest.mark.parametrize(
    ("metric", "lacks", "instead"),
    [
        ("autotuning_lag_s", "collect.pcap names no interface", "held_autotuning_share"),
        ("offered_window_most_bdp", "collect.pcap names no interface", "receive_window_peak_bytes"),
        ("completion_time_median_s", "has no group", ""),
        ("cpu_utilisation", "collect.cpu is off", "utilisation"),
        ("utilisation_background", "has no background", "utilisation"),
        ("answered_share", "has no group", ""),
    ],
)
def test_a_claim_on_what_no_run_can_measure_is_refused(tmp_path: Path, metric: str, lacks: str, instead: str) -> None:
    claim = f"value: {{metric: {metric}, at: {{algorithm: cubic}}}}, expect: {{above: 1}}, each: path.rtt"
    found = wrong(tmp_path, claim)
    assert f"no run of this profile can measure {metric}" in found.what
    assert lacks in found.what
    assert f"did you mean {instead}" in (found.hint or "")


def test_a_claim_on_what_is_captured_is_accepted(tmp_path: Path) -> None:
    claim = "value: {metric: autotuning_lag_s, at: {algorithm: cubic}}, expect: {above: 1 s}, each: path.rtt"
    extra = f"{CONTROLS}collect: {{pcap: ['r1:r1-eth0']}}\n"
    load(write_profile(tmp_path, f"  - {{id: it, says: so, {claim}}}\n", rtt=RTTS, extra=extra))


@pytest.mark.parametrize(
    ("claim", "what", "hint"),
    [
        (f"{VALUE}, each: path.rtt", "expect is missing", None),
        ("expect: more", "value is missing", None),
        ("value: {metric: utilization}, expect: {above: 1 %}", "no metric 'utilization'", "utilisation"),
        (f"{VALUE}, than: {{metric: }}, expect: more", "metric is empty", None),
        (f"{VALUE}, expect: {{above: 50 %}}", "the axis path.rtt is not fixed: it is 20 ms, 40 ms", "path.rtt in each"),
        (
            "value: {metric: utilisation, at: {path.rtt: 40 ms}}, expect: {above: 50 %}",
            "the axis algorithm is not fixed",
            None,
        ),
        (f"{VALUE}, expect: {{above: 50 %}}, each: path.rt", "does not sweep over path.rt", "path.rtt"),
        (
            "value: {metric: utilisation, at: {algorithm: cubik, path.rtt: 40 ms}}, expect: {above: 50 %}",
            "algorithm is never cubik in this profile",
            "cubic",
        ),
        (
            "value: {metric: utilisation, at: {algoritm: cubic, path.rtt: 40 ms}}, expect: {above: 50 %}",
            "does not sweep over algoritm",
            "algorithm",
        ),
        (
            "value: {metric: utilisation, at: {algorithm: [cubic, reno], path.rtt: 40 ms}}, expect: {above: 50 %}",
            "a claim is about one point",
            "each",
        ),
        (
            "value: {metric: utilisation, at: {algorithm: cubic, path.rtt: 40 ms}}, expect: {above: 5 %}, "
            "each: path.rtt",
            "path.rtt is fixed here and given in each or over as well",
            None,
        ),
        (
            "value: {metric: exit_time_s, flow: 2, at: {algorithm: cubic}}, expect: {below: 3 s}, each: path.rtt",
            "there is no flow 2: the profile has 1 flow, counted from 1",
            None,
        ),
        (
            "value: {metric: exit_time_s, flow: frist, at: {algorithm: cubic}}, expect: {below: 3 s}, each: path.rtt",
            "no flow or group 'frist'",
            "flow1",
        ),
        (
            "value: {metric: exit_time_s, flow: all, at: {algorithm: cubic}}, expect: {below: 3 s}, each: path.rtt",
            "flow: all needs take",
            None,
        ),
        (
            "value: {metric: exit_time_s, flow: 1, take: max, at: {algorithm: reno}}, expect: {below: 3 s}, "
            "each: path.rtt",
            "take is over flow: all or the connections of a group",
            None,
        ),
        (f"{VALUE}, expect: more, each: path.rtt", "the word more is a comparison; than is missing", None),
        (f"{VALUE}, expect: bigger, each: path.rtt", "expected much more, more, similar, less, much less", None),
        (
            f"{VALUE}, than: {{at: {{algorithm: reno}}}}, expect: {{above: 3 %}}, each: path.rtt",
            "above is not a comparison; leave than out",
            None,
        ),
        (f"{VALUE}, than: {{at: {{algorithm: cubic}}}}, expect: more, each: path.rtt", "both sides are the same", None),
        (
            f"{VALUE}, than: {{metric: exit_time_s, at: {{algorithm: reno}}}}, expect: more, each: path.rtt",
            "have different units and cannot be compared",
            None,
        ),
        (f"{VALUE}, expect: {{above: 3 %, below: 5 %}}, each: path.rtt", "above and below are both given", None),
        (f"{VALUE}, expect: {{within: 5 %}}, each: path.rtt", "within belongs to equals", None),
        (f"{VALUE}, expect: {{}}, each: path.rtt", "nothing is expected; give one of", None),
        (f"{VALUE}, expect: {{is: loss}}, each: path.rtt", "utilisation is a number; expect", None),
        (
            "value: {metric: exit_cause, at: {algorithm: cubic}}, expect: {equals: 3}, each: path.rtt",
            "exit_cause is a text; expect is",
            None,
        ),
        (f"{VALUE}, expect: {{above: 3 s}}, each: path.rtt", "expected a number with its unit", None),
        (
            "value: {metric: exit_time_s, at: {algorithm: cubic}}, expect: {below: 3}, each: path.rtt",
            "'3' (the unit is missing)",
            None,
        ),
        (f"{VALUE}, expect: {{between: [5 %, 3 %]}}, each: path.rtt", "the range from 5 % to 3 % is empty", None),
        (
            f"{VALUE}, expect: {{above: 50 %, in_at_least: 90 %}}, each: path.rtt",
            "in_at_least judges each repetition, and above the interval of their mean; give at_least",
            None,
        ),
        (
            f"{VALUE}, expect: {{below: 50 %, in_at_least: 90 %}}, each: path.rtt",
            "in_at_least judges each repetition, and below the interval of their mean; give at_most",
            None,
        ),
        (
            f"{VALUE}, than: {{at: {{algorithm: reno}}}}, expect: {{word: more, in_at_least: 90 %}}, each: path.rtt",
            "in_at_least belongs to is, equals, at_least, at_most and between, not to a word",
            None,
        ),
        (
            f"{VALUE}, than: {{at: {{algorithm: reno}}}}, expect: {{ratio: {{below: 2}}, in_at_least: 90 %}}, "
            "each: path.rtt",
            "in_at_least belongs to is, equals, at_least, at_most and between, not to ratio",
            None,
        ),
        (
            f"{VALUE}, than: {{at: {{algorithm: reno}}}}, expect: {{ratio: {{at_most: 2, in_at_least: 90 %}}}}, "
            "each: path.rtt",
            "there is no field 'in_at_least'",
            None,
        ),
        (f"{VALUE}, expect: {{trend: rises, over: path.rtt, in_at_least: 90 %}}", "between, not to trend", None),
        (f"{VALUE}, expect: {{in_at_least: 90 %}}, each: path.rtt", "nothing is expected; give one of", None),
        (f"{VALUE}, expect: {{at_least: 5 %, in_at_least: 110 %}}, each: path.rtt", "between 0 and 100 %", None),
        (f"{VALUE}, expect: {{at_least: 5 s, in_at_least: 90 %}}, each: path.rtt", "a number with its unit", None),
        (
            f"{VALUE}, expect: {{at_least: 5 %, in_at_least: 90 %}}, each: path.rtt, hold: max",
            "hold: max is of the means of the points, and in_at_least of each repetition; give all, any or mean",
            None,
        ),
        (f"{VALUE}, expect: {{trend: rises}}", "trend and over belong together; over is missing", None),
        (
            f"{VALUE}, expect: {{trend: flat, over: path.rtt, by: 5 %}}",
            "by belongs to the trends",
            None,
        ),
        (f"{VALUE}, expect: {{trend: falls, over: path.rtt, by: 5 s}}", "expected", None),
        (f"{VALUE}, expect: {{trend: flat, over: path.rtt, within: 5 s}}", "expected", None),
        (f"{VALUE}, expect: {{trend: rises, over: path.rtt, within: 5 %}}", "within belongs to equals", None),
        ("unsupported: why, contradiction: two", "contradiction and unsupported are both given", None),
        (
            f"{VALUE}, expect: {{trend: rises, over: path.rtt}}, each: path.rtt",
            "path.rtt is the axis of the trend",
            None,
        ),
        (f"{VALUE}, expect: {{above: 3 %}}, hold: any", "hold: any is over the values of each", None),
        (
            f"{VALUE}, expect: {{above: 3 %}}, each: path.rtt, control: wihtout, because: x",
            "no control 'wihtout'",
            "without",
        ),
        (f"{VALUE}, expect: {{above: 3 %}}, each: path.rtt, control: without", "because is missing", None),
        (
            "value: {metric: utilisation, at: {algorithm: cubic, path.rtt: 20 ms}}, expect: {above: 3 %}, "
            "control: without, because: x",
            "the control without has no runs at path.rtt = 20 ms",
            "widen controls.without.at",
        ),
        (f"{VALUE}, expect: {{above: 3 %}}, each: path.rtt, unsupported: no", "value and unsupported are both", None),
        (
            f"{VALUE}, expect: {{above: 3 %}}, each: path.rtt, entry: HyStart_fig99",
            "no entry 'HyStart_fig99'",
            "HyStart_fig",
        ),
        (f"{VALUE}, expect: {{above: 3 %}}, each: path.rtt, sorce: x", "there is no field 'sorce'", "source"),
    ],
)
def test_a_wrong_claim_says_what_and_where(tmp_path: Path, claim: str, what: str, hint: str | None) -> None:
    error = wrong(tmp_path, claim)
    assert what in error.what
    assert hint is None or hint in str(error.hint)


def test_two_claims_of_one_name(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="two claims are called 'it'"):
        load(write_profile(tmp_path, GOOD + GOOD, rtt=RTTS))


def test_a_misspelt_section_is_told_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(ProfileError) as raised:
        load(write_profile(tmp_path, "", extra="claim: []\n"))
    assert raised.value.what == "there is no field 'claim'"
    assert "claims" in str(raised.value.hint)


def test_than_inherits_what_it_does_not_give(tmp_path: Path) -> None:
    text = (
        "value: {metric: exit_time_s, flow: 1, at: {algorithm: cubic, path.rtt: 20 ms}}, than: {at: {algorithm: reno}}"
    )
    (claim,) = load(write_profile(tmp_path, f"  - {{id: it, says: so, {text}, expect: more}}\n", rtt=RTTS)).claims
    value, than = completed(claim)
    assert than is not None
    assert (than.metric, than.flow, than.at) == ("exit_time_s", 1, {"algorithm": "reno", "path.rtt": "20 ms"})
    assert value.at == {"algorithm": "cubic", "path.rtt": "20 ms"}


def test_control_cells_have_an_axis_of_their_own(tmp_path: Path) -> None:
    profile = load(write_profile(tmp_path, GOOD, rtt=RTTS, extra=CONTROLS))
    ordinary = [cell for cell in profile.cells() if "control" not in cell.axes]
    control = [cell for cell in profile.cells() if "control" in cell.axes]
    assert len(ordinary) == 2 * 2 * 3
    assert {(cell.axes["control"], cell.axes["path.rtt"]) for cell in control} == {("without", "40 ms")}
    assert [cell.run for cell in control][:3] == [f"40ms-cubic-without-r{number}" for number in range(3)]
    for cell in control:
        assert cell.scenario.host.sysctls == {"net.ipv4.tcp_recovery": "0"}
        assert "without" in compile_plan(cell).run
    assert all(not cell.scenario.host.sysctls for cell in ordinary)


def test_a_control_that_replaces_an_axis_has_one_point_for_it(tmp_path: Path) -> None:
    extra = "controls:\n  far: {what: far, set: {path.rtt: 200 ms}}\n"
    cells = [
        cell for cell in load(write_profile(tmp_path, "", rtt=RTTS, extra=extra)).cells() if "control" in cell.axes
    ]
    assert len(cells) == 2 * 3
    assert {tuple(cell.axes) for cell in cells} == {("control", "algorithm")}
    assert {cell.scenario.path.rtt for cell in cells} == {200_000}


@pytest.mark.parametrize(
    ("control", "what"),
    [
        ("{what: x, set: {path.rtt: [20 ms, 40 ms]}}", "lists several values for path.rtt, which is swept"),
        ("{what: x, set: {path.buffer: [1 bdp, 2 bdp]}}", "sweeps path.buffer; it sets one value"),
        ("{what: x, set: {path.rat: 1 Mbit/s}}", "there is no field 'rat' in path"),
        ("{what: x, set: {}}", "nothing is changed"),
        ("{what: x, set: {path.mtu: 1000}, at: {path.rtt: 30 ms}}", "path.rtt is never 30 ms in this profile"),
        ("{what: x, set: {path.mtu: 1000}, at: {path.rate: 30 ms}}", "path.rate is never 30 ms in this profile"),
        ("{what: x, set: {path.mtu: 1000}, at: {path.queue: fifo}}", "this profile does not sweep over path.queue"),
        ("{set: {path.mtu: 1000}}", "the field 'what' is missing"),
    ],
)
def test_a_wrong_control_says_what_and_where(tmp_path: Path, control: str, what: str) -> None:
    file = write_profile(tmp_path, "", rtt=RTTS, extra=f"controls:\n  x: {control}\n")
    with pytest.raises(ProfileError) as raised:
        load(file)
    assert what in raised.value.what
    assert raised.value.where == f"{file}:8"


def test_claims_enter_no_plan(tmp_path: Path) -> None:
    plain = [compile_plan(cell).to_json() for cell in load(write_profile(tmp_path, "", rtt=RTTS)).cells()]
    claimed = [compile_plan(cell).to_json() for cell in load(write_profile(tmp_path, GOOD, rtt=RTTS)).cells()]
    assert plain == claimed
