# SPDX-License-Identifier: Apache-2.0
"""Sizes of a group's connections: what is drawn has the distribution that the profile names, and the same for all."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from howdah.errors import ProfileError
from howdah.plan import mix as distribution
from howdah.plan.sizes import sampler
from howdah.profile.sizes import PUBLISHED_SIZES, SizesSection
from tests.unit.profile_factory import make_one, make_plans

LISTED = "{listed: [{size: 4 kB, weight: 3}, {size: 100 kB}]}"
COUNT = 20_000


def group(sizes: str, more: str = "") -> str:
    return f"groups:\n- {{name: cdn, connections: 100, interval: 10 ms, sizes: {sizes}{more}}}\n"


def drawn(sizes: SizesSection) -> list[int]:
    generator, draw = random.Random(1), sampler(sizes)
    return sorted(draw(generator) for _ in range(COUNT))


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
        assert least <= sampler(sizes)(random.Random(seed)) <= least + more


def test_algorithms_get_the_same_sizes_and_repetitions_others(tmp_path: Path) -> None:
    plans = make_plans(
        tmp_path, "algorithm: [cubic, bbr]\nrepetitions: 2\n" + group("{pareto: {scale: 1 kB, shape: 1.2}}")
    )
    found = {(plan.flows[0].algorithm, plan.repetition): [flow.size_bytes for flow in plan.flows] for plan in plans}
    assert found["cubic", 0] == found["bbr", 0] != found["cubic", 1] == found["bbr", 1]


@pytest.mark.parametrize(
    ("sizes", "more", "what"),
    [
        ("{}", "", "expected one of listed, file, lognormal, pareto and published"),
        ("{listed: [{size: 1 kB}], most: 1 MB}", "", "a list is not truncated; leave most out"),
        ("{published: web-search, least: 100 MB}", "", "next to nothing"),
        ("{published: websearch}", "", "did you mean web-search"),
        ("{published: web-search, file: a.csv}", "", "expected one of"),
        ("{file: a.csv, least: 2 kB, most: 1 kB}", "", "smaller than the smallest"),
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


def table(tmp_path: Path, text: str) -> None:
    (tmp_path / "sizes.csv").write_text(text, encoding="utf-8")


def test_a_file_of_weights_is_a_list(tmp_path: Path) -> None:
    """It draws what the same list draws."""
    table(tmp_path, "# measured\nweight,size\n3,4 kB\n1,100000\n")
    of_file, of_list = (make_one(tmp_path, group(sizes)) for sizes in ("{file: sizes.csv}", LISTED))
    assert [flow.size_bytes for flow in of_file.flows] == [flow.size_bytes for flow in of_list.flows]


def test_a_file_may_be_that_of_a_spreadsheet(tmp_path: Path) -> None:
    """With a byte order mark, capitals, and lines that end as those of Windows."""
    (tmp_path / "sizes.csv").write_bytes(b"\xef\xbb\xbfSize,Weight\r\n4 kB,1\r\n")
    plan = make_one(tmp_path, group("{file: sizes.csv}"))
    assert {flow.size_bytes for flow in plan.flows if flow.group} == {4000}


def test_a_file_of_shares_is_a_distribution(tmp_path: Path) -> None:
    """A share at the first size and a step are connections of just that size; between rows sizes are spread evenly."""
    table(tmp_path, "size,cdf\n1 kB,10 %\n2 kB,0.3\n2 kB,0.5\n10 kB,1\n")
    plan = make_one(
        tmp_path,
        group("{file: sizes.csv}").replace("connections: 100, interval: 10 ms", "connections: 4000, interval: 100 us"),
    )
    found = [flow.size_bytes or 0 for flow in plan.flows]
    near = 4 * math.sqrt(0.25 / len(found))
    assert found.count(1000) / len(found) == pytest.approx(0.1, abs=near)
    assert found.count(2000) / len(found) == pytest.approx(0.2, abs=near)
    assert share_up_to(found, 1500) == pytest.approx(0.2, abs=near)
    assert share_up_to(found, 6000) == pytest.approx(0.75, abs=near)
    assert max(found) <= 10_000


def test_bounds_cut_a_distribution_with_steps(tmp_path: Path) -> None:
    """A step at a bound is inside."""
    table(tmp_path, "size,cdf\n1000,0.2\n2000,0.4\n2000,0.6\n3000,1\n")
    plan = make_one(tmp_path, group("{file: sizes.csv, least: 2 kB, most: 2 kB}"))
    assert {flow.size_bytes for flow in plan.flows} == {2000}


@pytest.mark.parametrize(
    ("name", "points"),
    [
        ("web-search", {10_000: 0.15, 80_000: 0.53, 5_000_000: 0.9}),
        ("data-mining", {1100: 0.5, 10_000: 0.8, 100_000_000: 0.98}),
        ("facebook-hadoop", {300: 0.05, 1000: 0.6, 300_000: 0.95}),
    ],
)
def test_a_published_distribution_has_its_points(name: str, points: dict[int, float]) -> None:
    found = drawn(SizesSection.model_validate({"published": name}))
    for size, share in points.items():
        assert share_up_to(found, size) == pytest.approx(share, abs=4 * math.sqrt(share * (1 - share) / COUNT))


def test_every_published_distribution_can_be_asked_for() -> None:
    for name, each in PUBLISHED_SIZES.items():
        assert SizesSection.model_validate({"published": name}).law is each.sizes
        assert each.sizes.shares[-1] == 1 and list(each.sizes.shares) == sorted(each.sizes.shares)
        assert list(each.sizes.sizes_bytes) == sorted(each.sizes.sizes_bytes)


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("size,count\n1,1\n", 1, "no column weight or cdf"),
        ("bytes,cdf\n1,1\n", 1, "no column size"),
        ("size;cdf\n1;1\n", 1, "separated by semicolons, a CSV's by commas"),
        ("size\tcdf\n1\t1\n", 1, "separated by tabs, a CSV's by commas"),
        ("sise,cdf\n1,1\n", 1, "no column size\n  did you mean size"),
        ("size,weight,cdf\n1,1,1\n", 1, "both weight and cdf"),
        ("size,size,cdf\n1,1,1\n", 1, "given twice"),
        ("size,weight\n1,1\n2,-1\n", 3, "a weight of -1; weights are from 0"),
        ("size,weight\n1,nan\n", 2, "a weight of nan"),
        ("size,weight\n1,many\n", 2, "a number without a unit, not 'many'"),
        ("size,weight\n0,1\n", 2, "a size of 0 bytes"),
        ("size,weight\n1 ms,1\n", 2, "expected a size"),
        ("size,weight\n1\n", 2, "1 values under 2 columns"),
        ("size,weight\n2,5 kB,1\n", 2, "3 values under 2 columns\n  commas only separate values"),
        ("size,weight\n2 kB,30 %\n", 2, "expected a weight, a number without a unit, not '30 %'"),
        ("size,weight\n1,0\n2,0\n", None, "all weights are 0: no size can be drawn"),
        ("size,cdf\n1,0.5\n2,0.4\n3,1\n", 3, "cdf falls from 0.5 to 0.4"),
        ("size,cdf\n2,0.5\n1,1\n", 3, "the size falls from 2 to 1 bytes"),
        ("size,cdf\n1,0.5\n2,0.9\n", 3, "the last cdf is 0.9: the sizes of the other"),
        ("size,cdf\n1,50\n2,100\n", 2, "between 0 and 100 %, not '50'"),
        ("size,cdf\n0,0.5\n2,1\n", 2, "a share of 0.5 has size 0"),
        ("size,cdf\n", None, "has no row of sizes"),
        ("\0\0", None, "no row of sizes"),
        ("PK\3\4", None, "a zip archive, not a table of sizes"),
        ('size,cdf\n"1,1\n', None, "is not a CSV"),
    ],
)
def test_a_file_that_says_no_sizes_is_refused_with_its_line(
    tmp_path: Path, text: str, line: int | None, what: str
) -> None:
    table(tmp_path, text)
    with pytest.raises(ProfileError) as caught:
        make_one(tmp_path, group("{file: sizes.csv}"))
    assert what in str(caught.value)
    place = f"sizes.csv:{line}" if line else "sizes" if "weights are 0" in what else ":8"
    assert place in str(caught.value.where)
    assert caught.value.hint or "values under" in what


@pytest.mark.parametrize(
    ("sizes", "what"),
    [
        ("{file: none.csv}", "cannot be read: No such file"),
        ("{file: .}", "is not a file"),
        ("{file: sizes.csv, most: 1 MB}", "is a list, which has its sizes as they are; leave most out"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, sizes: str, what: str) -> None:
    table(tmp_path, "size,weight\n1,1\n")
    with pytest.raises(ProfileError, match=what):
        make_one(tmp_path, group(sizes))


# Draws against the formulas of their distributions

_DRAWS = 20_000
# Kolmogorov and Smirnov: with 20 000 draws the largest distance is above this once in ten thousand seeds.
_FARTHEST = 2.23 / math.sqrt(_DRAWS)


@pytest.mark.parametrize(
    ("draw", "share"),
    [
        (lambda r: distribution.exponential(r, 50.0), lambda x: 1 - math.exp(-x / 50)),
        (lambda r: distribution.pareto(r, 3.0, 1.1), lambda x: 1 - (3 / x) ** 1.1),
        (lambda r: distribution.pareto_of_mean(r, 9.0, 1.5), lambda x: 1 - (3 / x) ** 1.5),
        (lambda r: distribution.pareto_second(r, 4.0, 1.2), lambda x: 1 - (1 + x / 0.8) ** -1.2),
    ],
    ids=["exponential", "pareto", "pareto of a mean", "pareto of the second kind"],
)
def test_the_cumulative_distribution(draw: Callable[[Random], float], share: Callable[[float], float]) -> None:
    random = Random(7)
    values = sorted(draw(random) for _ in range(_DRAWS))
    farthest = max(abs(share(value) - (index + 0.5) / _DRAWS) for index, value in enumerate(values))
    assert farthest < _FARTHEST


def test_a_seed_gives_the_same_values() -> None:
    once, again = Random(3), Random(3)
    assert [distribution.exponential(once, 1) for _ in range(5)] == [
        distribution.exponential(again, 1) for _ in range(5)
    ]
