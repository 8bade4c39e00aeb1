# SPDX-License-Identifier: Apache-2.0
"""The evaluation suite of the IRTF and RFC 9743 in the atlas: their numbers, and runs that follow from them."""

from __future__ import annotations

import pytest

from tests.unit.atlas_paper import Paper, profile

SUITE = Paper("TCPEVAL_", "tcpeval", ("tcpeval-ramp-up", "tcpeval-impact"))
GUIDELINES = Paper(
    "RFC9743_",
    "rfc9743",
    ("rfc9743-short-flows", "rfc9743-queues", "rfc9743-varying-delay", "rfc9743-sudden-change"),
)


@pytest.mark.parametrize("paper", [SUITE, GUIDELINES], ids=["tcpeval", "rfc9743"])
def test_every_entry_is_claimed(paper: Paper) -> None:
    paper.check()


def test_the_ramp_up_has_the_round_trips_and_the_buffer_of_the_draft() -> None:
    """Table 8: (80, 80), (120, 30) and (30, 120) ms; 80 ms of packets of 1500 bytes at 10 Mbit/s are 66."""
    cells = profile("tcpeval-ramp-up").cells()
    pairs = {tuple((flow.rtt or 0) // 1000 for flow in cell.scenario.flows) for cell in cells}
    assert pairs == {(80, 80), (120, 30), (30, 120)}
    assert {cell.scenario.path.buffer.amount for cell in cells} == {int(10e6 * 0.08 / 8 / 1500)}
    assert {cell.scenario.flows[1].size for cell in cells} == {1500 * 10**2, 1500 * 10**3}
    for cell in cells:
        (cross,) = cell.scenario.groups
        assert cross.mix is not None
        assert cross.mix.rate * 2 == cell.scenario.path.rate


def test_the_camps_have_the_same_flows_and_half_of_the_rate() -> None:
    for cell in profile("tcpeval-impact").cells():
        groups = cell.scenario.groups
        camps = [
            [(each.size, each.interval, each.connections) for each in groups if each.name[0] == camp] for camp in "ab"
        ]
        assert camps[0] == camps[1]
        assert len(camps[0]) == 4
        bits_per_second = sum((each.size or 0) * 8e6 / (each.interval or 1) for each in groups)
        assert 0.45 < bits_per_second / cell.scenario.path.rate < 0.5  # and their headers
        assert {each.algorithm for each in groups if each.name[0] == "a"} == {"reno"}


@pytest.mark.parametrize("name", [*SUITE.profiles, *GUIDELINES.profiles])
def test_the_quick_atlas_makes_runs_of_the_full_one(name: str) -> None:
    whole, part = ({cell.run for cell in profile(name, quick=quick).cells()} for quick in (False, True))
    assert part < whole
