# SPDX-License-Identifier: Apache-2.0
"""What a grid of what a source leaves open shows: a mechanism, or that a claim holds somewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from howdah.claim.grid import reverse_of, summarise_grid, verdict_over
from howdah.plan.plan import Plan
from howdah.profile.claim import ClaimSection
from howdah.record.claims import GridPointRow, GridRow
from tests.claim_factory import Row, judged, make_runs, row

RATES, BUFFERS = ("10", "9.9", "9.5", "9"), ("1000", "100", "200")


def over(holding: set[tuple[str, str]], reverse: set[tuple[str, str]]) -> GridRow:
    points = [
        GridPointRow(
            at={"rate": rate, "buffer": buffer},
            verdict="pass" if (rate, buffer) in holding else "fail",
            reverse=(rate, buffer) in reverse,
            text="",
        )
        for rate in RATES
        for buffer in BUFFERS
    ]
    return summarise_grid(points)


def at(rates: tuple[str, ...], buffers: tuple[str, ...] = BUFFERS) -> set[tuple[str, str]]:
    return {(rate, buffer) for rate in rates for buffer in buffers}


@pytest.mark.parametrize(
    ("holding", "reverse", "verdict"),
    [
        (set(), at(RATES), "fail"),
        (at(("9", "9.5")), set(), "differs"),  # a rate decides it
        (at(("9",)) | {("9.5", "100")}, set(), "differs"),  # at 9 it holds whatever the buffer is
        (at(("9", "9.5"), ("100",)), set(), "differs"),  # both fields decide it
        (at(RATES, ("100",)), at(RATES, ("200",)) - {("10", "200")}, "differs"),  # four against three
        (at(RATES, ("100",)), at(RATES, ("200",)), "depends"),  # four against four
        ({("9.9", "1000")}, set(), "depends"),  # one point of twelve
        ({("9.9", "1000"), ("9", "100")}, set(), "depends"),  # nothing that they have in common
    ],
)
def test_a_grid_shows_a_mechanism_where_what_is_open_decides(
    holding: set[tuple[str, str]], reverse: set[tuple[str, str]], verdict: str
) -> None:
    assert verdict_over(over(holding, reverse)) == verdict


def test_one_point_with_the_reverse_at_eight_says_so_and_shows_nothing() -> None:
    found = over({("9.9", "1000")}, at(RATES[1:]) - {("9.9", "1000")})
    assert verdict_over(found) == "depends"
    assert (found.holds, found.reverse, found.of, found.mechanism) == (1, 8, 12, False)
    assert found.text == (
        "holds where rate is 9.9 and buffer is 1000 (1 of 12 points of what is left open; the reverse at 8)"
    )


@pytest.mark.parametrize(
    ("holding", "where"),
    [
        (at(("9",)), "where rate is 9"),
        (at(RATES, ("100", "1000")), "where buffer is 1000 or 100"),
        (at(("9", "10"), ("100",)), "where rate is 10 or 9 and buffer is 100"),
        # No combinations of values: the first such point.
        (at(("9",)) | {("9.5", "100")}, "for example where rate is 9.5 and buffer is 100"),
        (at(RATES), "for example where rate is 10 and buffer is 1000"),
    ],
)
def test_where_a_claim_holds_is_said_by_the_values_that_matter(holding: set[tuple[str, str]], where: str) -> None:
    found = over(holding, set())
    assert found.text == f"holds {where} ({len(holding)} of 12 points of what is left open)"
    assert found.share == len(holding) / 12
    assert [(point.at["rate"], point.at["buffer"]) for point in found.points] == [
        (rate, buffer) for rate in RATES for buffer in BUFFERS
    ]


def test_of_one_field_a_single_value_decides() -> None:
    points = [
        GridPointRow(at={"simulator": name}, verdict=verdict, reverse=False, text="")
        for name, verdict in (("none", "fail"), ("ns-2", "pass"), ("ns-3", "fail"))
    ]
    assert verdict_over(summarise_grid(points)) == "differs"
    assert verdict_over(summarise_grid([points[0].model_copy(update={"reverse": True}), *points[1:]])) == "depends"


RANKS = {"over": "case", "with": {"a": 1.0, "b": 2.0, "c": 3.0}}


@pytest.mark.parametrize(
    ("expect", "reverse"),
    [
        ("more", {"word": "less"}),
        ("much more", {"word": "less"}),
        ("much less", {"word": "more"}),
        ("less", {"word": "more"}),
        ("similar", None),
        ({"ratio": {"above": "3"}}, {"ratio": {"below": "1"}}),
        ({"ratio": {"equals": "0.5"}}, {"ratio": {"above": "1"}}),
        ({"ratio": {"between": ["0.9", "1.1"]}}, None),
        ({"difference": {"at_least": "2 points"}}, {"difference": {"below": "0 %"}}),
        ({"trend": "rises", "over": "path.rtt", "by": "10 %"}, {"trend": "falls", "over": "path.rtt"}),
        ({"trend": "falls", "over": "path.rtt"}, {"trend": "rises", "over": "path.rtt"}),
        ({"trend": "flat", "over": "path.rtt"}, None),
        ({"rank_correlation": {"at_least": 0.9}, **RANKS}, {"rank_correlation": {"at_most": "0"}, **RANKS}),
        ({"rank_correlation": {"at_most": -0.9}, **RANKS}, {"rank_correlation": {"at_least": "0"}, **RANKS}),
        ({"rank_correlation": {"between": [-0.1, 0.1]}, **RANKS}, None),
        # A range that begins or ends where both sides are the same lies beyond it.
        ({"ratio": {"between": ["1", "2"]}}, {"ratio": {"below": "1"}}),
        ({"ratio": {"between": ["0.5", "1"]}}, {"ratio": {"above": "1"}}),
        ({"difference": {"between": ["-1 %", "0 %"]}}, {"difference": {"above": "0 %"}}),
        ({"difference": {"at_least": "0 %"}}, {"difference": {"below": "0 %"}}),
        ({"difference": {"between": ["-1 %", "1 %"]}}, None),
        ({"above": "90 %"}, None),
        ({"equals": "90 %", "in_at_least": "90 %"}, None),
    ],
)
def test_the_reverse_of_a_claim(expect: object, reverse: dict[str, Any] | None) -> None:
    given: dict[str, Any] = {"id": "a", "says": "x", "value": {"metric": "utilisation"}, "expect": expect}
    if isinstance(expect, str) or "ratio" in str(expect) or "difference" in str(expect):
        given["than"] = {"at": {"algorithm": "reno"}}
    claim = ClaimSection.model_validate(given)
    found = reverse_of(claim)
    if reverse is None:
        assert found is None
        return
    assert found is not None and found.expect is not None
    assert found.expect.model_dump(exclude_none=True, by_alias=True) == reverse
    assert found.model_copy(update={"expect": claim.expect}) == claim


def test_what_cannot_be_measured_has_no_reverse_and_a_number_without_unit_none_to_write() -> None:
    assert reverse_of(ClaimSection.model_validate({"id": "a", "says": "x", "unsupported": "no moon"})) is None
    given: dict[str, Any] = {"id": "a", "says": "x", "expect": {"difference": {"above": "0.1"}}}
    given |= {"value": {"metric": "of_another_version"}, "than": {"at": {"algorithm": "reno"}}}
    found = reverse_of(ClaimSection.model_validate(given))
    assert found is not None and found.expect is not None and found.expect.difference is not None
    assert found.expect.difference.below == "0"


PROFILE = """\
howdah: 1
name: made
path: {rate: 100 Mbit/s, rtt: 20 ms, buffer: 100 packets}
algorithm: [cubic, reno]
duration: 10 s
repetitions: 3
unknown:
  fields:
    path-rate: {what: slower than the interface, field: path.rate, values: [95 Mbit/s, 90 Mbit/s]}
claims:
  - {id: more, says: Reno loses more than CUBIC., than: {at: {algorithm: cubic}}, expect: more,
     value: {metric: retransmitted_packets, flow: 1, at: {algorithm: reno}}}
"""


@pytest.mark.parametrize(("at_90", "verdict"), [(0.0, "differs"), (30.0, "depends")])
def test_the_reverse_is_judged_at_every_point_of_the_grid(tmp_path: Path, at_90: float, verdict: str) -> None:
    """Reno loses as many on the path as it is written, more at 95 Mbit/s; CUBIC may lose more at 90."""

    def lost(plan: Plan) -> list[Row]:
        rate, reno = plan.path.rate_bits_per_second, plan.algorithm == "reno"
        number = {95_000_000: 20.0 if reno else 0.0, 90_000_000: 0.0 if reno else at_90}.get(rate, 0.0)
        return [row("retransmitted_packets", number + plan.repetition / 10, "packets", flow=1)]

    file = tmp_path / "made.yaml"
    file.write_text(PROFILE, encoding="utf-8")
    claim = judged(make_runs(tmp_path, file, lost, unknowns=True))["more"]
    assert claim["verdict"] == verdict
    assert [point["reverse"] for point in claim["unknown"]["points"]] == [False, False, at_90 > 0]
