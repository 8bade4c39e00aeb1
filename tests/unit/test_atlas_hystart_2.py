# SPDX-License-Identifier: Apache-2.0
"""The profiles and entries of the HyStart paper's Figs. 11 to 19: they load, and claim what the paper prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.atlas.catalogue import ATLAS
from howdah.profile import load
from howdah.profile.claim import ClaimSection
from howdah.profile.source import parse_yaml

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ROOT / "profiles" / "atlas"
REPETITIONS = 10
FIGURES = ("11", "12", "13", "14a", "14b", "14c", "15", "16_bw", "16_delay", "17", "18", "19")
ENTRIES = {f"HyStart_fig{number}" for number in FIGURES}
OF_OTHERS = {"HyStart_claims_intro", "HyStart_asymmetry_claim"}  # claimed of these runs, too

# Points of the sweep without controls, in full and quick; a point has 10, or 3, 2 or 1, repetitions.
POINTS = {
    "hystart-fig11": (2, 2),
    "hystart-fig11-processor": (1, 1),
    "hystart-fig13": (9, 2),
    "hystart-fig14a": (18, 2),
    "hystart-fig14a-hosts": (8, 2),
    "hystart-fig14b": (12, 2),
    "hystart-fig14b-hosts": (3, 2),
    "hystart-fig14b-hystart": (2, 1),
    "hystart-fig14c": (18, 4),
    "hystart-fig14c-hosts": (6, 2),
    "hystart-fig15": (12, 2),
    "hystart-fig16-bandwidth": (4, 1),
    "hystart-fig16-delay": (4, 1),
    "hystart-fig18": (18, 6),
    "hystart-fig18-hosts": (3, 2),
    "hystart-fig18-clock": (3, 1),
    "hystart-fig19": (3, 2),
}

# Repetitions of the quick atlas, where they are not one.
QUICK = {"hystart-fig14c": 3, "hystart-fig18": 2, "hystart-fig19": 3}


def entries() -> list[dict[str, object]]:
    file = ATLAS / "entries" / "hystart-2.yaml"
    data, _places = parse_yaml(file.read_text(encoding="utf-8"), str(file))
    assert isinstance(data, list)
    return data


def claim(profile: str, name: str) -> ClaimSection:
    return next(item for item in load(PROFILES / f"{profile}.yaml").claims if item.id == name)


@pytest.mark.parametrize("name", POINTS)
@pytest.mark.parametrize("quick", [False, True])
def test_each_profile_has_the_runs_that_are_meant(name: str, quick: bool) -> None:
    profile = load(PROFILES / f"{name}.yaml", quick=quick)
    cells = [cell for cell in profile.cells() if "control" not in cell.axes]
    assert len(cells) == POINTS[name][quick] * (QUICK.get(name, 1) if quick else REPETITIONS)


@pytest.mark.parametrize("name", POINTS)
def test_claims_and_figures_belong_to_entries(name: str) -> None:
    profile = load(PROFILES / f"{name}.yaml")
    belonging = [entry for item in profile.claims for entry in item.entry]
    belonging += [entry for item in profile.figures for entry in item.entry]
    assert set(belonging) <= ENTRIES | OF_OTHERS
    assert all(item.entry and item.source for item in profile.claims)
    listed = {str(entry["id"]) for entry in entries() if name in list(entry.get("profiles", []))}  # type: ignore[call-overload]
    assert listed == set(belonging) & ENTRIES


def test_every_figure_has_an_entry_and_all_but_the_map_are_run() -> None:
    found = {str(entry["id"]): entry for entry in entries()}
    assert set(found) == ENTRIES
    for name, entry in found.items():
        assert bool(entry.get("profiles")) != bool(entry.get("reason")), name
    assert [name for name, entry in found.items() if entry.get("reason")] == ["HyStart_fig17"]


@pytest.mark.parametrize(
    ("name", "metric", "flow", "form", "value"),
    [
        ("standard-timeout", "longest_blackout_s", "first", "equals", "20 s"),
        ("standard-overshoot", "peak_cwnd_packets", "first", "at_most", "22000"),
        ("standard-losses-in-ten-seconds", "exit_time_s", "first", "at_most", "10 s"),
        ("standard-heavy-losses", "exit_cause", "first", "is_", "loss"),
        ("hystart-no-loss-first", "startup_retransmitted_packets", "first", "equals", "0 packets"),
        ("hystart-no-loss-second", "startup_retransmitted_packets", "second", "equals", "0 packets"),
        ("hystart-no-loss-at-all", "retransmitted_packets", "all", "equals", "0 packets"),
        ("hystart-second-by-delay", "exit_cause", "second", "is_", "delay"),
        ("hystart-first-before-full", "exit_cwnd_bdp", "first", "between", ["0.5", "1"]),
    ],
)
def test_figs_11_and_12_claim_what_is_printed(name: str, metric: str, flow: str, form: str, value: object) -> None:
    found = claim("hystart-fig11", name)
    assert found.value is not None
    assert found.expect is not None
    assert (found.value.metric, found.value.flow) == (metric, flow)
    assert getattr(found.expect, form) == value


def test_the_second_flow_of_figs_11_and_12_joins_at_130_s() -> None:
    cell = load(PROFILES / "hystart-fig11.yaml").cells()[0]
    assert [flow.start for flow in cell.scenario.flows] == [0, 130_000_000]


@pytest.mark.parametrize("profile", ["hystart-fig14a", "hystart-fig14b", "hystart-fig14c"])
def test_hystart_is_said_to_be_three_times_each_other(profile: str) -> None:
    algorithms = {point.scenario.algorithm for point in load(PROFILES / f"{profile}.yaml").points}
    hosts = f"{profile}-hosts"
    beside = PROFILES / f"{hosts}.yaml"
    elsewhere = {item.id for item in load(beside).claims} if beside.exists() else set()
    for other in algorithms - {"hystart-paper"}:
        name = f"three-times-{other}"
        found = claim(hosts if name in elsewhere else profile, name)
        assert found.value is not None
        assert found.value.at["algorithm"] == "hystart-paper"
        assert found.than is not None
        assert found.than.at == {"algorithm": other}
        assert found.expect is not None
        assert found.expect.ratio is not None
        assert found.expect.ratio.above == "3"
