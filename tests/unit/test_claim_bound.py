# SPDX-License-Identifier: Apache-2.0
"""What an expectation says exactly at its bounds, and of two samples in words."""

from __future__ import annotations

from typing import Any

import pytest

from howdah.claim.claims import final_verdict
from howdah.claim.comparison import Interval
from howdah.claim.expectation import (
    Compared,
    bounds,
    in_enough,
    is_flat,
    judge_compared,
    judge_point,
    judge_range,
    judge_ranks,
    judge_trend,
    moves_by,
)
from howdah.claim.finding import At, metric_named, number_text
from howdah.claim.judging import expected_text, range_text, than_text
from howdah.claim.sample import Sample
from howdah.profile.claim import BoundsSection, ClaimSection, ExpectSection
from howdah.record.claims import TrendRow

COUNT = metric_named("exit_cwnd_packets")
SHARE = metric_named("utilisation")


def of(*values: float | str, runs: int = 0, **more: Any) -> Sample:
    return Sample(
        "packets", dict(enumerate(values)), runs=[f"r{number}" for number in range(max(runs, len(values)))], **more
    )


def expects(**form: Any) -> ExpectSection:
    return ExpectSection.model_validate(form)


@pytest.mark.parametrize(
    ("form", "found", "ok"),
    [
        ({"at_most": "0.3"}, Interval(0.1 + 0.2), True),  # 0.30000000000000004
        ({"at_least": "0.3"}, Interval(0.3 - 5e-17), True),
        ({"at_most": "0.3"}, Interval(0.3 + 1e-9), False),
        ({"at_most": "-0.3"}, Interval(-0.1 - 0.2 + 1e-16), True),
        ({"at_most": "0"}, Interval(1e-13), False),  # of zero there is no rounding
        ({"at_least": "0"}, Interval(-1e-13), False),
        ({"between": ["-0.3", "0.3"]}, Interval(-0.1 - 0.2), True),
        ({"between": ["0", "3000"]}, Interval(3000 + 1e-10), True),
        ({"equals": "300", "within": "0"}, Interval(300.0), True),
        ({"equals": "-100"}, Interval(-110.0), True),  # within 10 % of it
        ({"equals": "-100"}, Interval(-110.1), False),
        ({"above": "5"}, Interval(6.0, 5.0, 7.0), False),  # the end of the interval is not above
        ({"above": "5"}, Interval(6.0, 5.1, 7.0), True),
        ({"above": "5"}, Interval(5.1), True),
        ({"above": "5"}, Interval(5.0), False),
        ({"below": "5"}, Interval(4.0, 3.0, 5.0), False),
        ({"below": "5"}, Interval(4.0, 3.0, 4.9), True),
        ({"below": "5"}, Interval(5.0), False),
    ],
)
def test_a_number_at_the_bound(form: dict[str, Any], found: Interval, ok: bool) -> None:
    assert judge_range(expects(**form), COUNT, found)[0] is ok


def test_what_cannot_be_negative_is_shown_from_zero() -> None:
    assert judge_range(expects(above="1"), COUNT, Interval(2.0, -1.0, 5.0))[1] == "2 packets (0 packets to 5 packets)"
    assert judge_range(expects(above="1"), COUNT, Interval(2.0, None, 5.0))[1] == "2 packets"
    assert number_text(5.0, metric_named("of_another_version")) == "5"


@pytest.mark.parametrize(
    ("form", "low", "high"),
    [
        ({"above": "3"}, 3, None),
        ({"at_least": "4"}, 4, None),
        ({"below": "5"}, None, 5),
        ({"at_most": "6"}, None, 6),
        ({"between": ["7", "8"]}, 7, 8),
        ({"equals": "50"}, 45, 55),
        ({"equals": "50", "within": "1"}, 49, 51),
    ],
)
def test_the_bounds_of_a_range(form: dict[str, Any], low: float | None, high: float | None) -> None:
    assert bounds(expects(**form), COUNT) == (low, high)


def two(first: float, second: float, low: float | None = None, high: float | None = None) -> Compared:
    ratio = Interval(first / second) if second else None
    return Compared(first, second, Interval(first - second, low, high), ratio, True)


@pytest.mark.parametrize(
    ("form", "found", "ok", "why"),
    [
        ({"word": "similar"}, two(110, 100), True, "difference 10 packets, ratio 1.1"),
        ({"word": "similar"}, two(90, 100), True, "difference −10 packets, ratio 0.9"),
        ({"word": "similar"}, two(110.01, 100), False, "difference 10.01 packets, ratio 1.1"),
        ({"word": "similar"}, two(89.9, 100), False, "difference −10.1 packets, ratio 0.899"),
        ({"word": "similar"}, two(0, 0), True, "difference 0 packets"),
        ({"word": "similar"}, two(1, 0), False, "difference 1 packets"),
        ({"word": "much more"}, two(0.6, 0.1 + 0.2), True, "difference 0.3 packets, ratio 2"),
        ({"word": "much more"}, two(199, 100), False, "difference 99 packets, ratio 1.99"),
        ({"word": "much more"}, two(5, 0), True, "difference 5 packets"),
        ({"word": "much more"}, two(5, -1), True, "difference 6 packets, ratio −5"),
        ({"word": "much more"}, two(300, 100, -1, 401), False, "difference 200 packets (−1 packets to 401 packets)"),
        (
            {"word": "much more"},
            two(0, -5),
            False,
            "difference 5 packets, ratio 0; of means that are not positive there is no ratio",
        ),
        ({"word": "much less"}, two(100, 200), True, "difference −100 packets, ratio 0.5"),
        ({"word": "much less"}, two(101, 200), False, "difference −99 packets, ratio 0.505"),
        ({"word": "more"}, two(5, 4, 0, 2), False, "difference 1 packets (0 packets to 2 packets), ratio 1.25"),
        ({"word": "more"}, two(5, 4, 0.1, 2), True, "difference 1 packets (0.1 packets to 2 packets), ratio 1.25"),
        ({"word": "more"}, two(4, 4), False, "difference 0 packets, ratio 1"),
        ({"word": "less"}, two(4, 5, -2, 0), False, "difference −1 packets (−2 packets to 0 packets), ratio 0.8"),
        ({"word": "less"}, two(4, 5, -2, -0.1), True, "difference −1 packets (−2 packets to −0.1 packets), ratio 0.8"),
        ({"difference": {"at_least": "1"}}, two(5, 4), True, "difference 1 packets"),
        ({"ratio": {"at_least": "1.25"}}, two(5, 4), True, "ratio 1.25"),
        ({"ratio": {"below": "3"}}, two(5, 0), False, "the mean compared with is 0, so there is no ratio"),
    ],
)
def test_two_means_at_the_bound(form: dict[str, Any], found: Compared, ok: bool, why: str) -> None:
    assert judge_compared(expects(**form), COUNT, found)[0] is ok
    assert judge_compared(expects(**form), COUNT, found)[1].startswith(why)


def test_a_comparison_in_json() -> None:
    names = ("difference", "difference_low", "difference_high", "ratio", "ratio_low", "ratio_high", "paired")
    found = Compared(6, 2, Interval(4, 3, 5), Interval(3, 2, 7), False).row
    assert found.plain() == dict(zip(names, (4, 3, 5, 3, 2, 7, False), strict=True))
    assert Compared(6, 0, Interval(6), None, True).row.plain() == dict(
        zip(names, (6, None, None, None, None, None, True), strict=True)
    )


@pytest.mark.parametrize(
    ("form", "value", "than", "verdict", "extent", "why"),
    [
        ({"at_least": "5"}, of(5, 5), None, "pass", 5, ""),
        ({"ratio": {"above": "2"}}, of(6, 6), of(2, 2), "pass", 3, "ratio 3"),
        ({"difference": {"above": "2"}}, of(6, 6), of(2, 2), "pass", 4, "difference 4 packets"),
        ({"ratio": {"above": "2"}}, of(6, 6), of(0, 0), "fail", 6, "the mean compared with is 0, so there is no ratio"),
        ({"at_least": "5", "in_at_least": "50 %"}, of(5, 3), None, "pass", 4, "in 1 of 2 repetitions; outside the"),
        ({"is": "loss"}, of("loss", "loss"), None, "pass", None, ""),
        ({"is": "loss"}, of("loss", "delay"), None, "fail", None, "loss in 50 %: delay 1, loss 1"),
        ({"word": "more"}, of(5, 6), of(4), "pass", 1.5, "difference 1.5 packets, ratio 1.375; n = 1, compared by"),
        ({"word": "more"}, of(5), of(4, 4.5), "pass", 0.75, "difference 0.75 packets, ratio 1.176; n = 1, compared by"),
        ({"above": "3"}, of(4), None, "pass", 4, "n = 1, compared by means"),
        ({"at_least": "3"}, of(4), None, "pass", 4, ""),
        ({"above": "3"}, of(), None, "invalid", None, "there is no run of it"),
        ({"above": "3"}, of(4, runs=3, left_out={"r1": "invalid", "r2": "failed"}), None, "invalid", None, "2 of 3"),
        ({"above": "3"}, of(4, missing={1: "none"}, runs=2), None, "fail", None, "1 of 2 runs have none: none"),
        (
            {"above": "3"},
            of(4, missing={1: "no perf", 2: "none"}, unsupported={1}, runs=3),
            None,
            "fail",
            None,
            "2 of 3 runs have none: no perf (and 1 more reasons)",
        ),
        (
            {"word": "more"},
            of(4, 5),
            of(missing={0: "no perf"}, unsupported={0}, runs=2),
            "unsupported",
            None,
            "1 of 1 runs have none: no perf",
        ),
    ],
)
def test_a_point(
    form: dict[str, Any], value: Sample, than: Sample | None, verdict: str, extent: float | None, why: str
) -> None:
    at: At = {"path.rtt": "40 ms"}
    found = judge_point(expects(**form), COUNT, at, value, than)
    assert (found.verdict, found.at, found.value, found.than) == (verdict, at, value, than)
    assert found.extent == pytest.approx(extent)
    assert found.why.startswith(why) and bool(found.why) == bool(why)


@pytest.mark.parametrize(
    ("share", "of_them", "enough"),
    [
        (None, 1, True),
        (None, 0.999, False),
        ("75 %", 0.75, True),
        ("75 %", 0.7499, False),
        ("0.6666666666669", 2 / 3, True),
        ("0.666666666669", 2 / 3, False),
    ],
)
def test_a_share_that_is_enough(share: str | None, of_them: float, enough: bool) -> None:
    assert in_enough(ExpectSection.model_construct(in_at_least=share), of_them) is enough


@pytest.mark.parametrize(
    ("form", "means", "ok"),
    [
        ({"trend": "flat"}, [0.9, 1.1], True),
        ({"trend": "flat"}, [0.899, 1.101], False),
        ({"trend": "flat"}, [-0.9, -1.1], True),
        ({"trend": "flat", "within": "0.2"}, [0.8, 1.2], True),
        ({"trend": "flat", "within": "0.2"}, [0.79, 1.21], False),
        ({"trend": "rises", "by": "10 %"}, [3.0, 2.0, 3.3], True),
        ({"trend": "rises", "by": "10 %"}, [3.0, 4.0, 3.29], False),
        ({"trend": "rises", "by": "10 %"}, [-10, -9], True),
        ({"trend": "rises", "by": "10 %"}, [-10, -9.1], False),
        ({"trend": "falls", "by": "10 %"}, [10, 9], True),
        ({"trend": "falls", "by": "10 %"}, [10, 9.01], False),
        ({"trend": "falls"}, [10, 11], True),  # without by every size is enough
    ],
)
def test_how_far_means_lie_apart(form: dict[str, Any], means: list[float], ok: bool) -> None:
    expect = expects(over="path.rtt", **form)
    assert (is_flat if expect.trend == "flat" else moves_by)(expect, means) is ok


@pytest.mark.parametrize(
    ("trend", "means", "verdict", "correlation"),
    [
        # Ranks 1 3 4 2 5 along 1 2 3 4 5: 1 - 6 (1 + 1 + 4) / 120 = 0.7, which is enough.
        ("rises", [1, 3, 4, 2, 5], "pass", "0.70"),
        ("falls", [5, 3, 2, 4, 1], "pass", "-0.70"),
        # 1 - 6 (4 + 4) / 120 = 0.6
        ("rises", [1, 4, 3, 2, 5], "fail", "0.60"),
        ("falls", [1, 3, 4, 2, 5], "fail", "0.70"),
        ("rises", [2, 2, 2, 2, 2], "fail", "0.00"),
        ("falls", [2, 2, 2, 2, 2], "fail", "0.00"),
    ],
)
def test_a_trend_at_the_bound(trend: str, means: list[float], verdict: str, correlation: str) -> None:
    points = [(f"{number} ms", of(mean, mean)) for number, mean in enumerate(means)]
    found = judge_trend(
        expects(trend=trend, over="path.rtt"), COUNT, {"a": "b"}, points[::-1], lambda value: float(value.split()[0])
    )
    assert (found.verdict, found.at) == (verdict, {"a": "b"})
    assert found.why.endswith(f", rank correlation {correlation}")
    assert found.why.startswith(f"from {means[0]} packets, deterministic, n = 2 to {means[-1]} packets, det")
    assert found.trend == [TrendRow(axis=f"{number} ms", mean=mean) for number, mean in enumerate(means)]
    assert (found.value.unit, found.value.values, found.value.runs) == ("packets", {}, ["r0", "r1"] * 5)


def test_a_trend_without_a_value_somewhere_is_not_judged() -> None:
    points = [
        (20, of(1, 2, runs=3, left_out={"r2": "failed"})),
        (40, of(missing={0: "none", 1: "none"}, runs=2, left_out={"r0": "invalid"})),
    ]
    found = judge_trend(expects(trend="rises", over="path.rtt"), COUNT, {}, points, float)
    assert (found.verdict, found.why) == ("fail", "2 of 2 runs have none: none")
    assert (found.note, found.value.left_out) == (
        "2 of 3 runs left out: 1 failed, 1 invalid",
        {"r2": "failed", "r0": "invalid"},
    )
    assert found.trend == [TrendRow(axis="20", mean=1.5), TrendRow(axis="40", mean=None)]
    one = judge_trend(expects(trend="flat", over="path.rtt"), COUNT, {}, [(20, of(1)), (40, of(1.1, 1.1))], float)
    assert (one.verdict, one.why) == ("pass", "means from 1 packets to 1.1 packets; n = 1, compared by means")


PUBLISHED = {"a": 0.1, "b": 0.2, "c": 0.3, "d": 0.4, "e": 0.5}


@pytest.mark.parametrize(
    ("means", "range_", "verdict", "correlation"),
    [
        # As above, 0.7 and 0.6: ranks alone count, not by how far they are apart.
        ([1, 30, 31, 29, 5000], {"at_least": 0.7}, "pass", "0.700"),
        ([1, 4, 3, 2, 5], {"at_least": 0.7}, "fail", "0.600"),
        ([5, 3, 2, 4, 1], {"at_most": -0.7}, "pass", "-0.700"),
        ([5, 3, 2, 4, 1], {"at_least": 0.7}, "fail", "-0.700"),
        ([1, 3, 4, 2, 5], {"between": [0.5, 0.8]}, "pass", "0.700"),
    ],
)
def test_a_rank_correlation_at_the_bound(
    means: list[float], range_: dict[str, Any], verdict: str, correlation: str
) -> None:
    expect = expects(rank_correlation=range_, over="case", **{"with": PUBLISHED})
    points = [(name, of(mean - 1, mean + 1)) for name, mean in zip("abcde", means, strict=True)]
    found = judge_ranks(expect, {"x": "y"}, points)
    assert (found.verdict, found.at) == (verdict, {"x": "y"})
    assert found.why == f"rank correlation {correlation} over 5 values of case"
    pairs = zip("abcde", means, PUBLISHED.values(), strict=True)
    assert found.trend == [TrendRow(axis=name, mean=mean, other=number) for name, mean, number in pairs]


def test_a_rank_correlation_needs_every_mean_and_some_difference() -> None:
    expect = expects(rank_correlation={"at_least": 0.5}, over="case", **{"with": PUBLISHED})
    same = judge_ranks(expect, {}, [(name, of(2, 2)) for name in "abc"])
    assert (same.verdict, same.why) == ("fail", "the means are all the same, so they have no rank correlation")
    lacking = judge_ranks(expect, {}, [("a", of(1)), ("b", of(missing={0: "none"}, runs=1)), ("c", of(2))])
    assert (lacking.verdict, lacking.why) == ("fail", "1 of 1 runs have none: none")


def claim(expect: Any, **more: Any) -> ClaimSection:
    given = {"id": "a", "says": "x", "value": {"metric": "exit_cwnd_packets", "flow": "first"}, "expect": expect}
    return ClaimSection.model_validate({**given, **more})


THAN = {"than": {"at": {"algorithm": "reno", "path.rtt": "1 s"}}}
SPACE = "algorithm = reno, path.rtt = 1 s"


@pytest.mark.parametrize(
    ("expect", "more", "text"),
    [
        ("similar", THAN, f"similar to {SPACE}"),
        ("more", THAN, f"more than {SPACE}"),
        ("much less", THAN, f"much less than {SPACE}"),
        ({"ratio": {"at_most": 2}}, THAN, f"ratio to {SPACE}: at most 2"),
        ({"difference": {"between": [1, 2]}}, THAN, f"difference from {SPACE}: 1 to 2"),
        ({"is": "loss"}, {}, "loss in all of the repetitions"),
        ({"is": "loss", "in_at_least": "60 %"}, {}, "loss in at least 60 % of the repetitions"),
        ({"trend": "rises", "over": "path.rtt"}, {}, "rises with path.rtt"),
        ({"trend": "falls", "over": "path.rtt", "by": "5 %"}, {}, "falls with path.rtt by 5 % at least"),
        ({"trend": "flat", "over": "path.rtt"}, {}, "does not change with path.rtt"),
        ({"trend": "flat", "over": "a", "within": "5 %"}, {}, "does not change with a by more than 5 %"),
        (
            {"rank_correlation": {"at_least": 0.9}, "over": "case", "with": PUBLISHED},
            {},
            "rank correlation with 5 given numbers over case: at least 0.9",
        ),
        ({"above": 5}, {"each": ["a", "b"]}, "above 5, at each a and b"),
        ({"above": 5}, {"each": ["a"], "hold": "any"}, "above 5, at one a at least"),
        ({"above": 5}, {"each": ["a"], "hold": "max"}, "above 5, the largest over a"),
        ({"below": 5}, {"each": ["a"], "hold": "min"}, "below 5, the smallest over a"),
        ({"at_least": 5}, {"each": ["a"], "hold": "mean"}, "at least 5, in the mean over a"),
        ({"equals": 5, "within": "1", "in_at_least": 1}, {}, "5 ± 1 in at least 1 of the repetitions"),
        ({"equals": 5, "within": "0", "in_at_least": 1}, {}, "5 in at least 1 of the repetitions"),
        ({"between": [0, 0], "in_at_least": 1}, {}, "0 to 0 in at least 1 of the repetitions"),
    ],
)
def test_what_is_expected_in_words(expect: Any, more: dict[str, Any], text: str) -> None:
    assert expected_text(claim(expect, **more)) == text


@pytest.mark.parametrize(
    ("than", "text"),
    [
        ({"flow": "second"}, "flow second"),
        ({"flow": 2}, "flow 2"),
        ({"metric": "other", "flow": "web", "take": "min"}, "other, the least of flow web"),
        *(
            ({"flow": "all", "take": take}, f"the {word} of all flows")
            for take, word in {"sum": "sum", "mean": "mean", "max": "largest"}.items()
        ),
        ({"metric": "other", "at": {"a": "1", "b": "2"}}, "other, a = 1, b = 2"),
    ],
)
def test_the_other_side_in_words(than: dict[str, Any], text: str) -> None:
    assert than_text(claim("more", than=than)) == text


def test_a_range_in_words() -> None:
    words = {"above": "above 5", "below": "below 5", "at_least": "at least 5", "at_most": "at most 5"}
    assert {form: range_text(BoundsSection.model_validate({form: 5})) for form in words} == words
    assert range_text(expects(equals=5)) == "5 ± 10 %"


def test_a_contradiction_says_why_as_well() -> None:
    hangs = claim({"above": 5}, contradiction="30 is 31")
    assert final_verdict(hangs, "fail", "why") == ("unsupported", "its source contradicts itself: 30 is 31; why")
    assert final_verdict(hangs, "fail", "") == ("unsupported", "its source contradicts itself: 30 is 31")
    assert final_verdict(hangs, "pass", "why") == ("pass", "why")
    assert final_verdict(claim({"above": 5}), "fail", "why") == ("fail", "why")
