# SPDX-License-Identifier: Apache-2.0
"""What happens in a single printed trace is claimed of nine of ten repetitions, in every profile of the atlas."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from howdah.place import PROFILES
from howdah.profile import load
from howdah.profile.claim import ClaimSection

# Figures and slides that draw one run against time. What others print is averaged, or read off a distribution.
TRACES = {
    *(f"HyStart_fig{number}" for number in (1, 4, 5, 9, 10, 11, 12)),
    *("Transoceanic_cwnd_chicago", "Transoceanic_cwnd_nc", "SEARCH_geo_motivation", "SEARCH_geo_eval"),
    *(f"Astart_fig{number}" for number in (2, 3, 4, 5, 6, 7, 8, 12, 13, 17)),
}
# Measures of what happens, and of how often: not of when, how long and how large.
EVENTS = {
    *("exit_cause", "timeouts", "estimates", "synchronous_losses_measured", "synchronous_losses_background"),
    *("dropped_packets", "bottleneck_drops_packets", "retransmitted_packets"),
    *("startup_retransmitted_packets", "first_loss_retransmitted_packets"),
}
# Claims of such a figure that are about runs which it does not draw.
NOT_DRAWN = {
    "adaptive-start-buffer/half-a-bdp-is-enough": "what a buffer must hold by the paper's arithmetic",
    "adaptive-start-buffer/less-is-not-enough": "the same arithmetic",
}
SHARE = "90 %"


def claims() -> Iterator[tuple[str, ClaimSection]]:
    for file in sorted((PROFILES / "atlas").glob("*.yaml")):
        for claim in load(file).claims:
            yield f"{file.stem}/{claim.id}", claim


@pytest.fixture(scope="module")
def events() -> dict[str, ClaimSection]:
    """The claims about events of a trace, and about no other side."""
    return {
        name: claim
        for name, claim in claims()
        if claim.value is not None and claim.expect is not None and not claim.expect.compares
        if TRACES & set(claim.entry) and claim.value.metric in EVENTS
    }


def test_events_of_a_single_trace_hold_in_nine_of_ten_repetitions(events: dict[str, ClaimSection]) -> None:
    wrong = [
        name
        for name, claim in events.items()
        if claim.expect is not None and (claim.expect.in_at_least == SHARE) == (name in NOT_DRAWN)
    ]
    assert len(events) > 30
    assert wrong == [], f"the paper shows one run: in_at_least: {SHARE}, unless the figure does not draw it"


def test_nothing_else_is_counted(events: dict[str, ClaimSection]) -> None:
    counted = {name for name, claim in claims() if claim.expect is not None and claim.expect.in_at_least is not None}
    assert counted <= events.keys(), "the paper prints more than one run of it"
    assert NOT_DRAWN.keys() <= events.keys()
