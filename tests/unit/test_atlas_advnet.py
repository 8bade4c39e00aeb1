# SPDX-License-Identifier: Apache-2.0
"""AdvNet's published paths in the atlas: 24 of each control, as its artefact has them."""

from __future__ import annotations

import pytest

from tests.unit.test_atlas_papers import profile

NAMES = ("advnet-bbr", "advnet-vegas")


@pytest.mark.parametrize("name", NAMES)
def test_each_path_is_one_of_the_search(name: str) -> None:
    """Its units: 500 kbit/s, 1 ms one way, 50 ms and 100 packets, from 1 to 20, 30, 40 (from 10 on) and 100."""
    cells = profile(name).cells()
    assert len(cells) == len({cell.axes["case"] for cell in cells}) == 24
    for cell in cells:
        path = cell.scenario.path
        (step,) = path.schedule
        assert step.rate is not None
        assert step.rtt is not None
        assert path.rtt is not None
        for rate in (path.rate, step.rate):
            assert rate % 500_000 == 0
            assert 1 <= rate // 500_000 <= 20
        for rtt in (path.rtt, step.rtt):
            assert rtt % 2000 == 0
            assert 1 <= rtt // 2000 <= 30
        for time in (step.at, cell.scenario.duration - step.at):
            assert time % 50_000 == 0
            assert 10 <= time // 50_000 <= 40
        assert path.buffer.unit == "packets"
        assert path.buffer.amount % 100 == 0
        assert 1 <= path.buffer.amount // 100 <= 100


@pytest.mark.parametrize("name", NAMES)
def test_scores_are_in_their_order_and_only_the_slowest_paths_are_left_out(name: str) -> None:
    """Paths are in the order of the published scores. A claim names all of them, or all without 500 kbit/s."""
    cases = {cell.axes["case"]: cell.scenario.path for cell in profile(name).cells()}
    slow = {case for case, path in cases.items() if 500_000 in (path.rate, path.schedule[0].rate)}
    compared = {}
    for claim in profile(name).claims:
        assert claim.expect is not None
        if claim.expect.rank_correlation is None:
            continue
        assert claim.expect.rank_correlation.at_most == "-0.9"
        scores = claim.expect.with_ or {}
        assert list(scores) == [case for case in cases if case in scores]
        assert list(scores.values()) == sorted(scores.values())
        assert all(0 < score < 0.9 for score in scores.values())
        compared[claim.id] = set(cases) - set(scores)
    if name == "advnet-bbr":
        assert compared == {"ranks-of-the-scores": set()}
    else:
        assert compared == {"ranks-of-the-scores": slow, "ranks-with-the-slowest-paths": set()}
        assert len(slow) == 6


@pytest.mark.parametrize("name", NAMES)
def test_the_ends_of_the_order_are_expected_to_use_what_was_not_lost(name: str) -> None:
    expected = {
        str(claim.value.at["case"]): str(claim.expect.equals)
        for claim in profile(name).claims
        if claim.value is not None and claim.expect is not None and claim.expect.equals
    }
    [scores] = [
        claim.expect.with_
        for claim in profile(name).claims
        if claim.expect is not None and len(claim.expect.with_ or {}) == 24
    ]
    assert scores is not None
    ends = list(scores.items())[:: len(scores) - 1]
    assert expected == {case: f"{100 * (1 - score):.2f} %" for case, score in ends}
