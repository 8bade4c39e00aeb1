# SPDX-License-Identifier: Apache-2.0
"""Profiles and entries of the Jump Start paper: how many runs they are, and that every number printed is a claim."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.atlas.catalogue import ATLAS
from howdah.profile import load
from howdah.profile.claim import ClaimSection
from howdah.profile.source import parse_yaml

PROFILES = Path(__file__).parents[2] / "profiles" / "atlas"
# Runs of the full experiment and of its quick part.
CELLS = {
    "jump-start-intro": (30, 2),
    "jump-start-fig1": (200, 20),
    "jump-start-fig2": (80, 4),
    "jump-start-fig4": (20, 2),
    "jump-start-half-lost": (40, 8),
    "jump-start-algorithm": (40, 8),
    "jump-start-pacing": (10, 2),
    "jump-start-timeout": (20, 4),
    "jump-start-end": (20, 2),
    "jump-start-below-2n": (40, 4),
    "jump-start-aqm": (60, 6),
    "jump-start-marked": (40, 4),
    "jump-start-scoped": (40, 4),
}


def claims_of(profile: str) -> dict[str, ClaimSection]:
    return {claim.id: claim for claim in load(PROFILES / f"{profile}.yaml").claims}


def test_these_are_all_profiles_of_the_paper() -> None:
    assert {file.stem for file in PROFILES.glob("jump-start-*.yaml")} == set(CELLS)


@pytest.mark.parametrize("profile", CELLS)
def test_the_number_of_runs_is_as_intended(profile: str) -> None:
    full, quick = CELLS[profile]
    assert len(list(load(PROFILES / f"{profile}.yaml").cells())) == full
    assert len(list(load(PROFILES / f"{profile}.yaml", quick=True).cells())) == quick


def test_every_id_has_an_entry_and_every_profile_belongs_to_one() -> None:
    kinds, _ = parse_yaml((ATLAS / "kinds.yaml").read_text(encoding="utf-8"), "kinds.yaml")
    entries, _ = parse_yaml((ATLAS / "entries" / "jump-start.yaml").read_text(encoding="utf-8"), "jump-start.yaml")
    assert [entry["id"] for entry in entries] == [name for name in kinds if name.startswith("JumpStart_")]
    for entry in entries:
        assert bool(entry.get("profiles")) == (kinds[entry["id"]] == "experiment")
        assert bool(entry.get("reason")) == (kinds[entry["id"]] != "experiment")
    assert {name for entry in entries for name in entry.get("profiles", [])} == set(CELLS)


@pytest.mark.parametrize(
    ("profile", "claim", "form", "printed"),
    [
        ("jump-start-intro", "needed-window", "at_least", "99 %"),  # with 83 334 segments
        ("jump-start-intro", "slow-start-time", "above", "1.5 s"),
        ("jump-start-intro", "bytes-before-full", "above", "100 MB"),
        ("jump-start-intro", "round-trips", "equals", "1.635 s"),  # log2 83 333 round trips
        ("jump-start-intro", "twice-the-window", "equals", "241.3 MB"),  # 2 x 83 333 segments
        ("jump-start-half-lost", "fifty-in-four-to-five-round-trips", "between", ["352 ms", "416 ms"]),
        ("jump-start-algorithm", "jump-is-all-the-data-queued", "equals", "200 packets"),
        ("jump-start-timeout", "one-segment", "equals", "1 packets"),
    ],
)
def test_printed_numbers_are_expected(profile: str, claim: str, form: str, printed: object) -> None:
    expect = claims_of(profile)[claim].expect
    assert expect is not None
    assert getattr(expect, form) == printed


@pytest.mark.parametrize(
    ("profile", "claim", "form", "printed"),
    [
        *[("jump-start-fig1", f"at-least-ten-percent-{size}", "at_most", "0.9") for size in (4, 8, 16, 32, 64)],
        ("jump-start-fig1", "up-to-forty-percent", "below", "0.6"),
        ("jump-start-fig1", "one-packet", "equals", "1"),
        ("jump-start-fig2", "seven-percent-at-1s", "between", ["0.88", "0.96"]),
        ("jump-start-fig2", "four-times-the-losses-at-1s", "above", "4"),
        *[("jump-start-fig2", f"twice-the-losses-at-{each}ms", "between", ["1.5", "3"]) for each in (100, 200, 300)],
        ("jump-start-fig4", "short-ones-in-half-the-time", "above", "2"),
        ("jump-start-fig4", "twice-the-loss-rate", "equals", "2"),
    ],
)
def test_printed_ratios_are_expected(profile: str, claim: str, form: str, printed: object) -> None:
    expect = claims_of(profile)[claim].expect
    assert expect is not None
    assert expect.ratio is not None
    assert getattr(expect.ratio, form) == printed


def test_the_words_of_figures_one_two_and_four() -> None:
    words = {
        name: claim.expect.word
        for profile in ("jump-start-fig1", "jump-start-fig2", "jump-start-fig4", "jump-start-half-lost")
        for name, claim in claims_of(profile).items()
        if claim.expect is not None and claim.expect.word is not None
    }
    assert words == {
        "two-packets": "more",
        "next-power-of-two": "more",
        "similar-at-1s": "similar",
        "slow-start-better-at-100ms": "more",
        "slow-start-better-at-200ms": "more",
        "slow-start-better-at-300ms": "more",
        "equal-from-one-second": "similar",
        "more-without-loss": "more",
        "ahead-of-slow-start": "less",
    }
    difference = claims_of("jump-start-fig4")["ten-points-more-without-loss"].expect
    assert difference is not None
    assert difference.difference is not None
    assert difference.difference.between == ["9 %", "11 %"]


def test_no_drop_up_to_64_packets() -> None:
    claims = claims_of("jump-start-fig1")
    for size in (1, 2, 4, 8, 16, 32, 64):
        claim = claims[f"no-drops-{size}"]
        assert claim.value is not None
        assert claim.value.at == {"groups.1.size": f"{size * 1448} B"}
        assert claim.expect is not None
        assert claim.expect.at_most == "0 packets"
