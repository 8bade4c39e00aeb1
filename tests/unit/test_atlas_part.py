# SPDX-License-Identifier: Apache-2.0
"""A part of the atlas for each of several machines: all profiles once, the same everywhere, of about the same cost."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from howdah.atlas.chapter import Chapter
from howdah.atlas.part import Part, chapters_of, divide, read_part
from howdah.command.main import main
from howdah.errors import HowdahError
from howdah.profile import load

LENGTHS_S = {"long": 600, "middle": 400, "short": 100, "shorter": 90}


@pytest.fixture
def chapters(tmp_path: Path) -> list[Chapter]:
    """Of one run each, at 100 Mbit/s for so many seconds."""
    found = []
    for name, length_s in LENGTHS_S.items():
        file = tmp_path / f"{name}.yaml"
        path = "{rate: 100 Mbit/s, rtt: 40 ms, buffer: 1 bdp}"
        file.write_text(f"howdah: 1\nname: {name}\npath: {path}\nalgorithm: cubic\nduration: {length_s} s\n")
        found.append(Chapter(load(file), tmp_path / "runs" / name))
    return found


def test_parts_have_every_profile_once_and_about_the_same_to_do(chapters: list[Chapter]) -> None:
    def names(part: Part) -> list[str]:
        return [chapter.name for chapter in chapters_of(part, chapters)]

    assert [names(Part(number, 2)) for number in (1, 2)] == [["long"], ["middle", "short", "shorter"]]
    assert names(Part(1, 1)) == list(LENGTHS_S)
    assert [names(Part(number, 4)) for number in (1, 2, 3, 4)] == [[name] for name in LENGTHS_S]


def test_more_parts_than_profiles_are_refused(chapters: list[Chapter]) -> None:
    with pytest.raises(HowdahError, match="4 profiles cannot be divided into 5 parts"):
        chapters_of(Part(1, 5), chapters)


@pytest.mark.parametrize("text", ["0/4", "5/4", "1/0", "2", "1/4/2", "-1/4", "a/b", "1.5/2", ""])
def test_what_is_no_part_is_told(text: str) -> None:
    with pytest.raises(HowdahError, match="is no part"):
        read_part(text)


def test_a_part_is_read() -> None:
    assert read_part("2/4") == Part(2, 4)


def test_the_command_refuses_before_anything_is_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["atlas", "--part", "5/4", "--runs", str(tmp_path / "runs")]) == 1
    assert "'5/4' is no part" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@given(
    st.dictionaries(st.text(min_size=1, max_size=3), st.floats(0.1, 1e5), min_size=1, max_size=12), st.integers(1, 6)
)
def test_groups_hold_all_and_none_is_far_above_the_others(costs: dict[str, float], parts: int) -> None:
    groups = divide(costs, parts)
    assert sorted(name for group in groups for name in group) == sorted(costs)
    assert divide(dict(reversed(list(costs.items()))), parts) == groups
    sums = [sum(costs[name] for name in group) for group in groups]
    assert max(sums) - min(sums) <= max(costs.values()) * (1 + 1e-9)
