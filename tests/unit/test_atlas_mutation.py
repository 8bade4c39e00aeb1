# SPDX-License-Identifier: Apache-2.0
"""Each claim of the atlas that passes can fail: another published series makes it, or it is listed with a reason."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from howdah.atlas.catalogue import ATLAS
from howdah.atlas.published import published
from howdah.claim.finding import PASS
from howdah.profile import load
from howdah.profile.claim import ClaimSection
from howdah.profile.source import parse_yaml
from tests.atlas_mutation import Judged, can_fail

PROFILES = Path(__file__).resolve().parents[2] / "profiles" / "atlas"
LISTED = ATLAS / "cannot-fail.yaml"
MOST_LISTED = 72  # it may become less


@cache
def judged() -> dict[str, Judged]:
    found = {}
    for file in sorted(PROFILES.glob("*.yaml")):
        profile = load(file)
        shown = published(profile.name, profile.text, profile.claims)
        if shown is None:  # it makes other runs than are published
            continue
        rows = {row.id: row for row in shown.claims}
        found[profile.name] = [(claim, rows[claim.id].plain()) for claim in profile.claims]
    return found


def paper(claim: ClaimSection) -> str:
    return claim.entry[0].partition("_")[0]


def of_its_paper(name: str, claim: ClaimSection) -> Judged:
    """What is published of the other profiles of a claim's paper."""
    return [
        each for other, rows in judged().items() if other != name for each in rows if paper(each[0]) == paper(claim)
    ]


def listed() -> list[tuple[str, list[str]]]:
    """Of each group its reason and its claims, as profile/claim, where the profile has published results."""
    data, _ = parse_yaml(LISTED.read_text(encoding="utf-8"), str(LISTED))
    return [
        (
            str(group["reason"]),
            [f"{name}/{claim}" for name, claims in group["claims"].items() if name in judged() for claim in claims],
        )
        for group in data
    ]


def test_each_passing_claim_can_fail_or_is_listed() -> None:
    unopposed = {
        f"{name}/{claim.id}"
        for name, rows in judged().items()
        for claim, row in rows
        if row["verdict"] == PASS and not can_fail(claim, row, rows, of_its_paper(name, claim))
    }
    named = [claim for _, claims in listed() for claim in claims]
    assert sorted(named) == sorted(set(named))
    assert unopposed - set(named) == set(), "pass whatever is published of others; re-encode or list them with a reason"
    assert set(named) - unopposed == set(), "could fail, or do not pass; take them off the list"
    assert len(named) <= MOST_LISTED, "the list has grown"


def test_the_list_says_why() -> None:
    assert all(len(reason.split()) > 5 for reason, _ in listed())


def test_what_is_listed_exists() -> None:
    data, _ = parse_yaml(LISTED.read_text(encoding="utf-8"), str(LISTED))
    for name, claims in [each for group in data for each in group["claims"].items()]:
        assert set(claims) <= {claim.id for claim in load(PROFILES / f"{name}.yaml").claims}


def test_what_passes_whatever_is_wrong_says_so_on_its_page() -> None:
    [claims] = [claims for reason, claims in listed() if "its note says why" in reason]
    notes = {f"{name}/{claim.id}": claim.note for name, rows in judged().items() for claim, _ in rows}
    assert all(notes[claim] for claim in claims)


One = tuple[ClaimSection, dict[str, Any]]


def number(mean: float, text: str = "") -> dict[str, Any]:
    return {"mean": mean, "low": None, "high": None, "text": text, "than": None, "comparison": None}


def made(metric: str, algorithm: str, expect: object, points: list[dict[str, Any]], than: str = "") -> One:
    given: dict[str, Any] = {"id": "it", "says": "so", "expect": expect}
    given["value"] = {"metric": metric, "at": {"algorithm": algorithm}}
    if than:
        given["than"] = {"at": {"algorithm": than}}
    row = {"verdict": "pass", "measured": {"points": [{"at": {}, **point} for point in points]}, "control": None}
    return ClaimSection.model_validate(given), row


def test_a_number_needs_another_that_is_out_of_range() -> None:
    mine = made("utilisation", "cubic", {"at_least": "80 %"}, [number(0.9)])
    same = made("utilisation", "reno", {"at_least": "80 %"}, [number(0.85)])
    less = made("utilisation", "reno", {"at_least": "10 %"}, [number(0.5)])
    assert not can_fail(*mine, [mine], [])
    assert not can_fail(*mine, [mine, same], [less])  # its profile has others, which hold
    assert can_fail(*mine, [mine, less], [])
    assert can_fail(*mine, [mine], [less])
    assert not can_fail(*mine, [mine, made("exit_cwnd_bdp", "reno", {"at_least": "0"}, [number(0.5)])], [])


def test_a_text_needs_another_text() -> None:
    mine = made(
        "exit_cause", "cubic", {"is": "loss"}, [{**number(0, "loss, n = 3"), "mean": None, "counts": {"loss": 3}}]
    )
    other = made(
        "exit_cause", "reno", {"is": "delay"}, [{**number(0, "delay, n = 3"), "mean": None, "counts": {"delay": 3}}]
    )
    assert not can_fail(*mine, [mine, mine], [])
    assert can_fail(*mine, [mine, other], [])


@pytest.mark.parametrize(("expect", "verdict"), [("more", True), ("similar", False)])
def test_sides_are_exchanged(expect: str, verdict: bool) -> None:
    point = {**number(0.9), "than": number(0.85)}
    mine = made("utilisation", "cubic", expect, [point], than="reno")
    assert can_fail(*mine, [mine], []) is verdict
    far = made("utilisation", "bbr", {"at_least": "10 %"}, [number(0.2)])
    assert can_fail(*mine, [mine, far], [])


def curve(algorithm: str, expect: dict[str, Any], means: list[float]) -> One:
    trend = [{"axis": rtt, "mean": mean} for rtt, mean in zip(("10 ms", "40 ms", "160 ms"), means, strict=True)]
    return made("utilisation", algorithm, {**expect, "over": "path.rtt"}, [{**number(0), "trend": trend}])


def test_a_trend_needs_a_curve_without_it() -> None:
    falls = curve("cubic", {"trend": "falls"}, [0.99, 0.98, 0.97])
    assert can_fail(*falls, [falls], [])  # along the axis turned round
    level = curve("reno", {"trend": "flat"}, [0.99, 0.98, 0.97])
    assert not can_fail(*falls, [falls, level], [])  # the same curve falls and is flat
    steep = curve("cubic", {"trend": "falls", "by": "10 %"}, [0.99, 0.9, 0.8])
    assert can_fail(*steep, [steep, level], [])
    assert not can_fail(*level, [level, falls], [])
    assert can_fail(*level, [level, steep], [])


def test_an_order_needs_a_curve_in_another() -> None:
    scores = {"10 ms": 0.1, "40 ms": 0.2, "160 ms": 0.3}
    ranks = {"rank_correlation": {"at_most": "-0.9"}, "over": "path.rtt", "with": scores}
    mine = curve("cubic", ranks, [0.9, 0.8, 0.7])
    assert can_fail(*mine, [mine], [])  # along the axis turned round
    assert not can_fail(*mine, [mine, curve("reno", {"trend": "falls"}, [0.6, 0.5, 0.4])], [])
    assert can_fail(*mine, [mine, curve("reno", {"trend": "flat"}, [0.6, 0.7, 0.4])], [])
