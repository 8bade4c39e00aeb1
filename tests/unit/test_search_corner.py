# SPDX-License-Identifier: Apache-2.0
"""The corners that a search tries first: all ends, and all pairs of ends, equally often."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("optuna", reason="optuna is not installed")

from howdah.counterexample.sampler import BATCH, Sampler, corners
from howdah.counterexample.space import Space, read_space
from howdah.place import PROFILES
from howdah.profile import load

HEAD = """\
howdah: 1
name: sought
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
algorithm: cubic
duration: 5 s
search:
  minimise: {metric: link_utilisation}
"""


def _space(directory: Path, more: str) -> Space:
    file = directory / "sought.yaml"
    file.write_text(HEAD + more, encoding="utf-8")
    profile = load(file)
    assert profile.search is not None
    return read_space(file, [], profile.search)


def _two_steps(steps: int) -> Space:
    file, overrides = PROFILES / "search-two-steps.yaml", [f"search.steps.count={steps}"]
    profile = load(file, overrides)
    assert profile.search is not None
    return read_space(file, overrides, profile.search)


@pytest.mark.parametrize(("steps", "rows"), [(2, 8), (3, 16), (5, 32)])
def test_each_pair_of_ends_is_in_equally_many_corners(steps: int, rows: int) -> None:
    space = _two_steps(steps)
    found = corners(space, random.Random(5), 1000)
    assert len(found) == len({repr(each) for each in found}) == rows
    for one, other in itertools.combinations(space.variables.values(), 2):
        pairs = Counter((each[one.name], each[other.name]) for each in found)
        ends = itertools.product((one.values[0], one.values[-1]), (other.values[0], other.values[-1]))
        assert pairs == dict.fromkeys(ends, rows // 4)


def test_another_seed_has_other_corners_and_the_same_one_the_same() -> None:
    space = _two_steps(2)
    several = [{repr(each) for each in corners(space, random.Random(seed), 1000)} for seed in (1, 1, 2, 3)]
    assert several[0] == several[1]
    assert several[1] != several[2] != several[3]


def test_what_has_no_order_is_drawn(tmp_path: Path) -> None:
    space = _space(tmp_path, "  space: {path.rtt: {from: 10 ms, to: 90 ms}, path.buffer: [1 bdp, 2 bdp, 4 bdp]}\n")
    found = corners(space, random.Random(1), 1000)
    assert sorted(each["path.rtt"] for each in found) == ["10 ms", "90 ms"]
    assert all(each["path.buffer"] in ("1 bdp", "2 bdp", "4 bdp") for each in found)
    space = _space(tmp_path, "  space: {path.buffer: [1 bdp, 2 bdp, 4 bdp]}\n")
    assert corners(space, random.Random(1), 1000) == []


def test_the_number_of_steps_has_its_ends_too(tmp_path: Path) -> None:
    space = _space(
        tmp_path,
        "  steps: {count: {from: 2, to: 4}, lasts: {from: 500 ms, to: 1 s}, rate: {from: 1 Mbit/s, to: 9 Mbit/s}}\n",
    )
    found = corners(space, random.Random(1), 1000)
    assert Counter(each["steps"] for each in found) == {2: 8, 4: 8}
    assert all(f"step {each['steps']} rate" in each and f"step {each['steps'] + 1} rate" not in each for each in found)


def test_corners_come_first_and_constraints_hold(tmp_path: Path) -> None:
    more = """\
  space:
    path.rtt: {from: 10 ms, to: 90 ms}
    path.rate: {from: 1 Mbit/s, to: 9 Mbit/s}
    path.reverse_rate: {from: 1 Mbit/s, to: 9 Mbit/s}
  constraints: [path.reverse_rate <= path.rate]
"""
    space = _space(tmp_path, more)

    def ends(most: int) -> list[bool]:
        asked = Sampler(space, 1, most_corners=most).ask(2 * BATCH)
        assert all(space.allows(each) for each in asked)
        return [all(value in (space.variables[name].values[0], space.variables[name].values[-1])
                    for name, value in each.items()) for each in asked]  # fmt: skip

    assert ends(BATCH) == [True] * 3 + [False] * 13, "one of four does not meet the constraint"
    assert not any(ends(0))


def test_of_many_corners_a_batch_is_tried() -> None:
    space = _two_steps(5)
    asked = Sampler(space, 1).ask(2 * BATCH)
    rtts = [[each[f"step {step} rtt"] for step in range(1, 6)] for each in asked]
    assert [set(each) <= {"2 ms", "60 ms"} for each in rtts] == [True] * BATCH + [False] * BATCH
