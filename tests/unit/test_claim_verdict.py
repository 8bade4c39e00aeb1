# SPDX-License-Identifier: Apache-2.0
"""Every form of an expectation and every verdict, over metrics made by hand: what is planted is what is found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from howdah.command.main import main
from howdah.plan.plan import Plan
from tests.claim_factory import Row, judged, make_runs, row, write_profile


def one(tmp_path: Path, claim: str, measured: dict[str, list[float | str | None]], **options: Any) -> dict[str, Any]:
    """The one claim of a profile whose algorithms have these values in their repetitions."""
    count = max(len(values) for values in measured.values())

    def rows(plan: Plan) -> list[Row]:
        values = measured[plan.algorithm]
        metric = "exit_cause" if any(isinstance(value, str) for value in values) else "utilisation"
        return [row(metric, values[plan.repetition], "ratio" if metric == "utilisation" else "")]

    profile = write_profile(tmp_path, f"  - {{id: it, says: so, {claim}}}\n", repetitions=count)
    found: dict[str, Any] = judged(make_runs(tmp_path, profile, rows, **options))["it"]
    return found


CUBIC = "value: {metric: utilisation, at: {algorithm: cubic}}"
THAN = f"{CUBIC}, than: {{at: {{algorithm: reno}}}}"
FAR: list[float | str | None] = [0.80, 0.81, 0.82]
HALF: list[float | str | None] = [0.38, 0.39, 0.41]


@pytest.mark.parametrize(
    ("expect", "cubic", "reno", "verdict"),
    [
        ("much more", FAR, HALF, "pass"),
        ("much more", FAR, [0.42, 0.43, 0.44], "fail"),  # more, but by less than 2
        ("more", FAR, [0.70, 0.71, 0.72], "pass"),
        ("more", [0.80, 0.81, 0.99], [0.79, 0.82, 0.80], "fail"),  # the interval holds 0
        ("more", [0.70, 0.71, 0.72], FAR, "fail"),
        ("less", HALF, FAR, "pass"),
        ("less", FAR, HALF, "fail"),
        ("much less", HALF, FAR, "pass"),
        ("much less", [0.42, 0.43, 0.44], FAR, "fail"),
        ("similar", [0.80, 0.81, 0.82], [0.74, 0.75, 0.76], "pass"),
        ("similar", [0.90, 0.91, 0.92], [0.80, 0.81, 0.82], "fail"),
        ("similar", [0, 0, 0], [0, 0, 0], "pass"),
        ("similar", [0.1, 0.1, 0.1], [0, 0, 0], "fail"),
        ("much more", [0.1, 0.2, 0.15], [0, 0, 0], "pass"),
        ("more", [0.5, 0.5, 0.5], [0.5, 0.5, 0.5], "fail"),  # deterministic and equal
        ("more", [0.6, 0.6, 0.6], [0.5, 0.5, 0.5], "pass"),  # deterministic: no interval, compared by means
        ("{ratio: {equals: 2, within: 5 %}}", FAR, [0.40, 0.405, 0.41], "pass"),
        ("{ratio: {equals: 2.2, within: 5 %}}", FAR, [0.40, 0.405, 0.41], "fail"),
        ("{ratio: {above: 190 %}}", FAR, [0.40, 0.405, 0.41], "pass"),
        ("{ratio: {above: 2}}", FAR, HALF, "fail"),  # 2.06, but its interval reaches below 2
        ("{ratio: {below: 3}}", FAR, [0, 0, 0], "fail"),  # of a mean of 0 there is no ratio
        ("{difference: {at_least: 40 %}}", FAR, HALF, "pass"),
        ("{difference: {at_least: 45 %}}", FAR, HALF, "fail"),
        ("{difference: {between: [0.4, 0.5]}}", FAR, HALF, "pass"),
    ],
)
def test_comparisons(tmp_path: Path, expect: str, cubic: list[Any], reno: list[Any], verdict: str) -> None:
    found = one(tmp_path, f"{THAN}, expect: {expect}", {"cubic": cubic, "reno": reno})
    assert found["verdict"] == verdict, found["why"]
    assert found["measured"]["mean"] == pytest.approx(sum(cubic) / len(cubic))
    assert found["than"]["mean"] == pytest.approx(sum(reno) / len(reno))
    assert found["comparison"]["paired"] is True


@pytest.mark.parametrize(
    ("expect", "verdict"),
    [
        ("{equals: 81 %}", "pass"),
        ("{equals: 73.7 %}", "pass"),  # 81 is within 10 % of 73.7
        ("{equals: 73.6 %}", "fail"),
        ("{equals: 0.8, within: 2 %}", "pass"),
        ("{equals: 0.8, within: 1 %}", "fail"),
        ("{equals: 80 %, within: 1.5 points}", "pass"),
        ("{equals: 80 %, within: 0.5 points}", "fail"),
        ("{above: 78 %}", "pass"),
        ("{above: 80 %}", "fail"),  # the mean is, its interval is not
        ("{below: 84 %}", "pass"),
        ("{below: 82 %}", "fail"),
        ("{at_least: 81 %}", "pass"),
        ("{at_least: 81.1 %}", "fail"),
        ("{at_most: 81 %}", "pass"),
        ("{at_most: 80.9 %}", "fail"),
        ("{between: [80 %, 82 %]}", "pass"),
        ("{between: [82 %, 90 %]}", "fail"),
    ],
)
def test_ranges(tmp_path: Path, expect: str, verdict: str) -> None:
    found = one(tmp_path, f"{CUBIC}, expect: {expect}", {"cubic": FAR, "reno": HALF})
    assert found["verdict"] == verdict
    assert found["measured"]["n"] == 3
    assert found["measured"]["low"] == pytest.approx(0.81 - 4.303 * 0.01 / 3**0.5)
    assert "81 (80 … 82) %, n = 3" in found["measured"]["text"]


@pytest.mark.parametrize(
    ("expect", "why"),
    [
        ("above: 80 %", "the mean is above 80 %, the whole 95 % interval is not: 81.83 % (77.13 % to 86.54 %)"),
        ("below: 85 %", "the mean is below 85 %, the whole 95 % interval is not: 81.83 % (77.13 % to 86.54 %)"),
        ("above: 85 %", ""),
    ],
)
def test_a_mean_in_the_range_that_is_not_enough_says_so(tmp_path: Path, expect: str, why: str) -> None:
    """Of few repetitions the extremes are shown, which may be in the range, too."""
    few: dict[str, list[float | str | None]] = {"cubic": [0.805, 0.81, 0.84], "reno": HALF}
    found = one(tmp_path, f"{CUBIC}, expect: {{{expect}}}", few)
    assert found["measured"]["text"] == "81.83 (80.5 … 84) %, n = 3"
    assert (found["verdict"], found["why"]) == ("fail", why)


def test_the_expected_range_is_in_the_unit_of_the_metric(tmp_path: Path) -> None:
    found = one(tmp_path, f"{CUBIC}, expect: {{equals: 80 %, within: 5 %}}", {"cubic": FAR, "reno": HALF})
    assert found["expected"]["low"], found["expected"]["high"] == pytest.approx((0.76, 0.84))
    assert found["expected"]["text"] == "80 % ± 5 %"


@pytest.mark.parametrize(
    ("share", "causes", "verdict"),
    [
        ("", ["ack-train"] * 4, "pass"),
        ("", ["ack-train"] * 3 + ["loss"], "fail"),
        (", in_at_least: 75 %", ["ack-train"] * 3 + ["loss"], "pass"),
        (", in_at_least: 80 %", ["ack-train"] * 3 + ["loss"], "fail"),
        (", in_at_least: 75 %", ["ack-train"] * 3 + [None], "pass"),  # no exit is no ACK train
        (", in_at_least: 80 %", ["ack-train"] * 3 + [None], "fail"),
        ("", ["loss"] * 4, "fail"),
    ],
)
def test_texts(tmp_path: Path, share: str, causes: list[Any], verdict: str) -> None:
    claim = f"value: {{metric: exit_cause, at: {{algorithm: cubic}}}}, expect: {{is: ack-train{share}}}"
    assert one(tmp_path, claim, {"cubic": causes, "reno": causes})["verdict"] == verdict


ZEROS: list[float | str | None] = [0, 0, 0]


@pytest.mark.parametrize(
    ("expect", "values", "verdict", "why"),
    [
        ("{equals: 0 %, in_at_least: 75 %}", [*ZEROS, 0], "pass", ""),
        ("{equals: 0 %, in_at_least: 75 %}", [*ZEROS, 0.9], "pass", "in 3 of 4 repetitions; outside the range: 90 %"),
        ("{equals: 0 %, in_at_least: 76 %}", [*ZEROS, 0.9], "fail", "in 3 of 4 repetitions; outside the range: 90 %"),
        ("{equals: 0.8, within: 2 %, in_at_least: 0.5}", [0.79, 0.81, 0.7, 0.9], "pass", "in 2 of 4 repetitions"),
        ("{at_least: 50 %, in_at_least: 75 %}", [0.5, 0.6, 0.7, 0.1], "pass", "outside the range: 10 %"),
        ("{at_least: 50 %, in_at_least: 75 %}", [0.5, 0.49, 0.9, 0.1], "fail", "outside the range: 10 %, 49 %"),
        ("{at_least: 50 %, in_at_least: 100 %}", [1, 1, 1, 0.1], "fail", "in 3 of 4"),  # the mean is far above it
        ("{at_most: 10 %, in_at_least: 75 %}", [0, 0.1, 0.1, 1], "pass", "outside the range: 100 %"),  # the mean is not
        ("{at_most: 10 %, in_at_least: 75 %}", [0, 0.2, 0.2, 0.1], "fail", "outside the range: 20 % (2 times)"),
        ("{between: [10 %, 20 %], in_at_least: 50 %}", [0.1, 0.2, 0, 0.9], "pass", "outside the range: 0 %, 90 %"),
        ("{between: [10 %, 20 %], in_at_least: 51 %}", [0.1, 0.2, 0, 0.9], "fail", "in 2 of 4"),  # the mean is not
        ("{at_most: 1 %, in_at_least: 90 %}", [0.02, 0.03, 0.04, 0.05, 0.06, 0.07], "fail", "range: 2 % to 7 %"),
    ],
)
def test_the_share_of_repetitions_in_a_range(
    tmp_path: Path, expect: str, values: list[Any], verdict: str, why: str
) -> None:
    found = one(tmp_path, f"{CUBIC}, expect: {expect}", {"cubic": values, "reno": values})
    assert found["verdict"] == verdict
    assert why in found["why"] and bool(why) == bool(found["why"])
    assert found["measured"]["mean"] == pytest.approx(sum(values) / len(values))


@pytest.mark.parametrize(
    ("values", "verdict", "why"),
    [
        ([*ZEROS, None], "pass", "in 3 of 4 repetitions; 1 of 4 runs have none: there was none"),
        ([0, 0, None, None], "fail", "in 2 of 4 repetitions; 2 of 4 runs have none: there was none"),
        ([*ZEROS[1:], 0.2, None], "fail", "in 2 of 4 repetitions; outside the range: 20 %; 1 of 4 runs have none"),
        ([None] * 4, "fail", "4 of 4 runs have none: there was none"),
    ],
)
def test_a_repetition_without_a_number_is_not_in_the_range(
    tmp_path: Path, values: list[Any], verdict: str, why: str
) -> None:
    expect = "{equals: 0 %, in_at_least: 75 %}"
    found = one(tmp_path, f"{CUBIC}, expect: {expect}", {"cubic": values, "reno": [*ZEROS, 0]})
    assert found["verdict"] == verdict
    assert why in found["why"]


@pytest.mark.parametrize(
    ("expect", "text", "low", "high"),
    [
        ("{equals: 0 %, in_at_least: 90 %}", "0 % in at least 90 % of the repetitions", 0, 0),
        ("{equals: 80 %, in_at_least: 90 %}", "80 % ± 10 % in at least 90 % of the repetitions", 0.72, 0.88),
        ("{equals: 80 %, within: 0 %, in_at_least: 0.9}", "80 % in at least 0.9 of the repetitions", 0.8, 0.8),
        ("{at_least: 80 %, in_at_least: 90 %}", "at least 80 % in at least 90 % of the repetitions", 0.8, None),
        ("{at_most: 0 %, in_at_least: 90 %}", "at most 0 % in at least 90 % of the repetitions", None, 0),
        ("{between: [10 %, 20 %], in_at_least: 90 %}", "10 % to 20 % in at least 90 % of the repetitions", 0.1, 0.2),
        ("{equals: 0 %}", "0 % ± 10 %", 0, 0),
    ],
)
def test_the_words_of_a_share(tmp_path: Path, expect: str, text: str, low: float | None, high: float | None) -> None:
    found = one(tmp_path, f"{CUBIC}, expect: {expect}", {"cubic": FAR, "reno": HALF})
    assert found["expected"]["text"] == text
    assert (found["expected"]["low"], found["expected"]["high"]) == pytest.approx((low, high))


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
    values: dict[str, list[float | str | None]] = {"cubic": [0.8] * 4, "reno": [0.5] * 4}

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
    cubic: list[float | str | None] = [0.30, 0.50, 0.70, 0.99]
    reno: list[float | str | None] = [0.29, 0.49, 0.69, 0.10]
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
