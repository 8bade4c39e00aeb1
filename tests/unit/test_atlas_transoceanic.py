# SPDX-License-Identifier: Apache-2.0
"""Profiles and entries of the transoceanic slides: how many runs they are, and what of the slides they claim."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.atlas.catalogue import ATLAS
from howdah.profile import load
from howdah.profile.claim import ClaimSection
from howdah.profile.source import parse_yaml

PROFILES = Path(__file__).parents[2] / "profiles" / "atlas"
GBYTE = 2**30
# Runs of the full experiment and of its quick part.
CELLS = {
    "transoceanic-chicago-100m": (130, 8),
    "transoceanic-chicago-1g": (130, 4),
    "transoceanic-chicago-10g": (40, 2),
    "transoceanic-servers-100m": (60, 2),
    "transoceanic-servers-1g": (60, 2),
    "transoceanic-servers-10g": (20, 2),
    "transoceanic-carolina-100m": (40, 2),
    "transoceanic-carolina-1g": (40, 4),
    "transoceanic-carolina-100m-reduction": (40, 2),
    "transoceanic-carolina-1g-reduction": (70, 4),
    "transoceanic-sessions": (30, 2),
    "transoceanic-http": (20, 2),
}
SMALL = 2**25  # the object of the check by real programs
NARROWEST = {"100m": 100_000_000, "1g": 1_000_000_000, "10g": 10_000_000_000}


def claims_of(profile: str) -> dict[str, ClaimSection]:
    return {claim.id: claim for claim in load(PROFILES / f"{profile}.yaml").claims}


def test_these_are_all_profiles_of_the_slides() -> None:
    assert {file.stem for file in PROFILES.glob("transoceanic-*.yaml")} == set(CELLS)


@pytest.mark.parametrize("profile", CELLS)
def test_the_number_of_runs_is_as_intended(profile: str) -> None:
    full, quick = CELLS[profile]
    assert len(list(load(PROFILES / f"{profile}.yaml").cells())) == full
    assert len(list(load(PROFILES / f"{profile}.yaml", quick=True).cells())) == quick


@pytest.mark.parametrize("profile", CELLS)
def test_the_narrowest_link_the_round_trip_and_the_transaction_are_those_of_the_slides(profile: str) -> None:
    rate = next((NARROWEST[part] for part in profile.split("-") if part in NARROWEST), NARROWEST["1g"])
    rtt_us = 220_000 if "carolina" in profile or "sessions" in profile else 180_000
    for cell in load(PROFILES / f"{profile}.yaml").cells():
        path = cell.scenario.path
        assert isinstance(path.sender_interface, int)
        assert min(path.rate, path.sender_interface) == rate
        assert path.forward_delay_us + path.reverse_delay_us == rtt_us
        for group in cell.scenario.groups:
            if group.http is not None:
                assert (group.http.object, group.http.requests) == (SMALL, 1)
            else:
                assert (group.size, group.request) == (SMALL if group.name == "model" else GBYTE, 300)


@pytest.mark.parametrize("profile", CELLS)
def test_a_scenario_is_an_expansion_or_a_reduction_as_it_says(profile: str) -> None:
    """The path is not slower than the interface, or it is; both where the profile sweeps over the interface."""
    kinds = set()
    for cell in load(PROFILES / f"{profile}.yaml").cells():
        path = cell.scenario.path
        assert isinstance(path.sender_interface, int)
        kinds.add("expansion" if path.rate >= path.sender_interface else "reduction")
    if profile.endswith("-reduction"):
        assert kinds == {"reduction"}
    elif profile.endswith(("-10g", "-http", "-sessions")) or "carolina" in profile:
        assert kinds == {"expansion"}
    else:
        assert kinds == {"expansion", "reduction"}


def test_every_id_has_an_entry_and_every_profile_belongs_to_one() -> None:
    kinds, _ = parse_yaml((ATLAS / "kinds.yaml").read_text(encoding="utf-8"), "kinds.yaml")
    entries, _ = parse_yaml((ATLAS / "entries" / "transoceanic.yaml").read_text(encoding="utf-8"), "transoceanic.yaml")
    assert [entry["id"] for entry in entries] == [name for name in kinds if name.startswith("Transoceanic_")]
    for entry in entries:
        assert bool(entry.get("profiles")) == (kinds[entry["id"]] == "experiment")
        assert bool(entry.get("reason")) == (kinds[entry["id"]] != "experiment")
    assert {name for entry in entries for name in entry.get("profiles", [])} == set(CELLS)


def test_every_claim_is_of_an_entry_that_names_its_profile() -> None:
    entries, _ = parse_yaml((ATLAS / "entries" / "transoceanic.yaml").read_text(encoding="utf-8"), "transoceanic.yaml")
    profiles = {entry["id"]: entry.get("profiles", []) for entry in entries}
    for profile in CELLS:
        for claim in claims_of(profile).values():
            assert claim.entry
            for entry in claim.entry:
                assert profile in profiles[entry], f"{claim.id} of {profile} is of {entry}"


@pytest.mark.parametrize(
    ("claim", "other", "ratio"),
    [
        ("half-of-reno", "standard", {"equals": "0.5", "within": "10 %"}),
        ("quarter-of-limited", "limited", {"between": ["0.2", "0.3"]}),
    ],
)
def test_the_printed_ratios_are_expected(claim: str, other: str, ratio: dict[str, object]) -> None:
    found = claims_of("transoceanic-chicago-1g")[claim]
    assert found.value is not None
    assert found.value.at["algorithm"] == "qs-app"
    assert found.than is not None
    assert found.than.at == {"algorithm": other}
    assert found.expect is not None
    assert found.expect.ratio is not None
    assert found.expect.ratio.model_dump(exclude_none=True) == ratio
