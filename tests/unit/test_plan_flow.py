# SPDX-License-Identifier: Apache-2.0
"""Times of a plan's flows, and what is refused of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.errors import ProfileError
from howdah.plan.compile import compile_plan
from howdah.profile import load

QUICK = Path(__file__).parents[2] / "profiles" / "quick.yaml"


@pytest.mark.parametrize(
    ("override", "where"),
    [
        ("duration=80 ms", "duration"),
        ("flows=[{stop: 80 ms}]", "flows[0].stop"),
        ("flows=[{start: 1 s, stop: 1080 ms}]", "flows[0].stop"),
        ("flows=[{start: 3920 ms}]", "duration"),
        ("flows=[{rtt: 2 s}]", "duration"),
        ("background=[{stop: 20 ms}]", "background[0].stop"),
    ],
)
def test_a_flow_that_ends_before_an_ack_of_its_data_is_refused(override: str, where: str) -> None:
    cell = load(QUICK, [override]).cells()[0]
    with pytest.raises(ProfileError) as raised:
        compile_plan(cell, None)
    assert "two round trips" in raised.value.what
    assert raised.value.where == cell.place(*(int(part) if part.isdigit() else part for part in _parts(where)))


def _parts(where: str) -> list[str]:
    return where.replace("[", ".").replace("]", "").split(".")


def test_one_that_lasts_a_little_longer_is_planned() -> None:
    assert compile_plan(load(QUICK, ["duration=81 ms"]).cells()[0], None).flows[0].stop_us == 81_000
