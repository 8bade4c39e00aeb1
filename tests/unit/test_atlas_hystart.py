# SPDX-License-Identifier: Apache-2.0
"""The atlas' first half of the HyStart paper: its profiles, its entries, and the numbers that the paper prints."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from howdah.profile import load
from howdah.profile.claim import ClaimSection
from howdah.profile.profile import Profile

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ROOT / "profiles" / "atlas"
ENTRIES = ROOT / "reports" / "atlas" / "entries" / "hystart.yaml"
KINDS = ROOT / "reports" / "atlas" / "kinds.yaml"

# Runs of the full atlas and of the quick one, controls included.
CELLS = {
    "hystart-fig1": (10, 1),
    "hystart-fig1-copy": (10, 1),
    "hystart-fig1-processor": (10, 1),
    "hystart-fig3b": (40, 2),
    "hystart-fig4": (80, 4),
    "hystart-fig4-xp": (10, 1),
    "hystart-fig5": (20, 4),
    "hystart-fig6": (30, 2),
    "hystart-fig9": (70, 5),
    "hystart-fig10": (60, 2),
    "hystart-trains": (80, 2),
    "hystart-fig8": (40, 1),
    "hystart-inflight": (30, 3),
    "hystart-intro": (20, 2),
    "hystart-lss-example": (20, 2),
}

# Entry, what the claim expects, as the paper prints it.
PRINTED = [
    ("HyStart_fig1", "above", "30 s"),
    ("HyStart_fig1", "at_least", "10 %"),  # that it occurs: the share is printed twice and otherwise
    ("HyStart_fig1", "above", "30 %"),
    ("HyStart_claims_intro", "above", "100 s"),
    ("HyStart_claims_intro", "above", "40 %"),
    ("HyStart_claims_intro", "above", "100000 packets"),
    ("HyStart_fig3a", "between", ["10 %", "100 %"]),
    ("HyStart_lss_example", "equals", "105 rounds"),
    ("HyStart_lss_example", "equals", "21 s"),
    ("HyStart_lss_example", "equals", "20 s"),
    ("HyStart_inflight_claim", "equals", "15.6 %"),
    ("HyStart_fig9", "equals", "870 packets"),
    ("HyStart_fig9", "equals", "248 Mbit/s"),
    ("HyStart_fig9", "equals", "2300 packets"),
    ("HyStart_fig9", "equals", "308 Mbit/s"),
    ("HyStart_fig9", "equals", "2800 packets"),
    ("HyStart_fig9", "equals", "1766 packets"),
]


@cache
def profile(name: str, quick: bool = False) -> Profile:
    return load(PROFILES / f"{name}.yaml", quick=quick)


def claims() -> list[ClaimSection]:
    return [claim for name in CELLS for claim in profile(name).claims]


def entries() -> dict[str, dict[str, Any]]:
    return {entry["id"]: entry for entry in YAML(typ="safe").load(ENTRIES)}


@pytest.mark.parametrize("name", CELLS)
def test_the_profile_makes_the_runs_it_is_meant_to(name: str) -> None:
    full, quick = CELLS[name]
    assert sum(1 for _ in profile(name).cells()) == full
    assert sum(1 for _ in profile(name, quick=True).cells()) == quick
    names = {cell.run for cell in profile(name).cells()}
    assert {cell.run for cell in profile(name, quick=True).cells()} <= names


@pytest.mark.parametrize(("entry", "form", "value"), PRINTED)
def test_what_the_paper_prints_is_what_a_claim_expects(entry: str, form: str, value: object) -> None:
    expected = [getattr(claim.expect, form) for claim in claims() if claim.expect and entry in claim.entry]
    assert value in expected


def test_causes_that_the_paper_names_are_claimed() -> None:
    causes = {
        (claim.value.flow, str(claim.value.at.get("algorithm")), claim.expect.is_)
        for claim in profile("hystart-fig9").claims
        if claim.value and claim.expect and claim.value.metric == "exit_cause"
    }
    assert {("first", "hystart", "ack-train"), ("second", "hystart", "delay"), ("first", "ss", "loss")} <= causes


def test_every_entry_of_this_half_is_there_with_claims_or_a_reason() -> None:
    kinds = YAML(typ="safe").load(KINDS)
    wanted = list(kinds)[: list(kinds).index("HyStart_fig11")]
    found = entries()
    assert list(found) == wanted
    claimed = {entry for claim in claims() for entry in claim.entry}
    for name, entry in found.items():
        if kinds[name] == "experiment":
            assert name in claimed
            assert set(entry["profiles"]) & set(CELLS)
        else:
            assert entry["reason"]
            assert "profiles" not in entry


def test_every_profile_named_by_an_entry_speaks_of_it() -> None:
    for entry in entries().values():
        for name in entry.get("profiles", []):
            spoken = {of for claim in profile(name).claims for of in claim.entry}
            spoken |= {of for figure in profile(name).figures for of in figure.entry}
            assert entry["id"] in spoken, f"{name} has nothing of {entry['id']}"


def test_a_claim_without_a_measurement_says_why() -> None:
    unsupported = [claim for claim in claims() if claim.unsupported]
    assert unsupported
    for claim in unsupported:
        assert len(str(claim.unsupported)) > 40
