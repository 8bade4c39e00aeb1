# SPDX-License-Identifier: Apache-2.0
"""Sizes of a group's connections: what is drawn has the distribution that the profile names, and the same for all."""

from __future__ import annotations

import math
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from howdah.errors import ProfileError
from howdah.plan.sizes import drawn_size_bytes
from howdah.profile.sizes import SizesSection
from tests.unit.profile_factory import make_one, make_plans

LISTED = "{listed: [{size: 4 kB, weight: 3}, {size: 100 kB}]}"
COUNT = 20_000


def group(sizes: str, more: str = "") -> str:
    return f"groups:\n- {{name: cdn, connections: 100, interval: 10 ms, sizes: {sizes}{more}}}\n"


def drawn(sizes: SizesSection) -> list[int]:
    generator = random.Random(1)
    return sorted(drawn_size_bytes(sizes, generator) for _ in range(COUNT))


def share_up_to(found: list[int], size: float) -> float:
    return sum(each <= size for each in found) / len(found)


def test_a_list_is_drawn_by_its_weights(tmp_path: Path) -> None:
    plan = make_one(tmp_path, group(LISTED))
    counts = Counter(flow.size_bytes for flow in plan.flows)
    assert counts.keys() == {4000, 100_000}
    assert 60 <= counts[4000] <= 90  # 75 of 100, give or take 3.5 standard deviations


@pytest.mark.parametrize("size", [1000, 12_000, 50_000, 400_000])
def test_a_lognormal_has_its_distribution(size: int) -> None:
    found = drawn(SizesSection.model_validate({"lognormal": {"median": "12 kB", "sigma": 1.5}}))
    theory = 0.5 * (1 + math.erf(math.log(size / 12_000) / 1.5 / math.sqrt(2)))
    assert share_up_to(found, size) == pytest.approx(theory, abs=4 * math.sqrt(0.25 / COUNT))


@pytest.mark.parametrize("size", [1000, 2000, 30_000])
def test_a_pareto_is_cut_to_its_bounds(size: int) -> None:
    """Between the bounds it is the distribution over what they leave of it."""
    found = drawn(SizesSection.model_validate({"pareto": {"scale": "1 kB", "shape": 1.2}, "most": "100 kB"}))
    assert (found[0] >= 1000, found[-1] <= 100_000) == (True, True)
    theory = (1 - (1000 / size) ** 1.2) / (1 - 0.01**1.2)
    assert share_up_to(found, size) == pytest.approx(theory, abs=4 * math.sqrt(0.25 / COUNT))


@given(
    median=st.integers(1, 10**9),
    sigma=st.floats(0.01, 10),
    shape=st.floats(0.01, 100),
    least=st.integers(1, 10**9),
    more=st.integers(0, 10**9),
    seed=st.integers(0, 2**32),
)
def test_no_size_is_out_of_bounds(median: int, sigma: float, shape: float, least: int, more: int, seed: int) -> None:
    for law in (
        {"lognormal": {"median": f"{median} B", "sigma": sigma}},
        {"pareto": {"scale": f"{median} B", "shape": shape}},
    ):
        asked = {**law, "least": f"{least} B", "most": f"{least + more} B"}
        try:
            sizes = SizesSection.model_validate(asked)
        except ValidationError as error:
            assert "next to nothing" in str(error)
            continue
        assert least <= drawn_size_bytes(sizes, random.Random(seed)) <= least + more


def test_algorithms_get_the_same_sizes_and_repetitions_others(tmp_path: Path) -> None:
    plans = make_plans(
        tmp_path, "algorithm: [cubic, bbr]\nrepetitions: 2\n" + group("{pareto: {scale: 1 kB, shape: 1.2}}")
    )
    found = {(plan.flows[0].algorithm, plan.repetition): [flow.size_bytes for flow in plan.flows] for plan in plans}
    assert found["cubic", 0] == found["bbr", 0] != found["cubic", 1] == found["bbr", 1]


@pytest.mark.parametrize(
    ("sizes", "more", "what"),
    [
        ("{}", "", "expected one of listed, lognormal and pareto"),
        ("{listed: [{size: 1 kB, weight: 0}]}", "", "all weights are 0"),
        ("{listed: [{size: 1 kB, weight: -1}]}", "", "greater than or equal to 0"),
        ("{listed: [{size: 1 kB}], pareto: {scale: 1 kB, shape: 2}}", "", "expected one of"),
        ("{pareto: {scale: 1 kB, shape: 2}, least: 2 kB, most: 1 kB}", "", "smaller than the smallest"),
        ("{pareto: {scale: 1 MB, shape: 2}, most: 1 kB}", "", "next to nothing"),
        ("{lognormal: {median: 1 kB, sigma: 0}}", "", "greater than 0"),
        (LISTED, ", size: 1 kB", "sizes cannot be combined with size"),
        (LISTED, ", http: {object: 1 kB}", "sizes cannot be combined with http"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_its_line(tmp_path: Path, sizes: str, more: str, what: str) -> None:
    with pytest.raises(ProfileError, match=what) as caught:
        make_one(tmp_path, group(sizes, more))
    assert ":8" in str(caught.value.where)
