# SPDX-License-Identifier: Apache-2.0
"""Two slow starts for short transfers beside bulk flows: what the competition does is not what the slow start does."""

from __future__ import annotations

import statistics

import pytest

from tests.field.answer import ask, says

pytestmark = pytest.mark.guest

PROFILE = """howdah: 1
name: competition
path: {rate: 20 Mbit/s, rtt: 60 ms, buffer: 1 bdp}
groups: [{name: web, connections: 10, request: 300 B, size: 100 kB, start: 2 s}]
duration: 5 s
"""
HELD = "background: [{algorithm: cubic}, {algorithm: cubic}, {algorithm: cubic}]\n"
PAIR = "algorithm: [hystart-linux-cubic, standard-cubic]\n"
SETTINGS = "algorithm: [cubic, cubic-no-hystart]\n"


def test_with_the_competition_held_both_slow_starts_take_as_long() -> None:
    """The agent noted when the last byte of each connection came: the same in both runs."""
    answer = ask(PROFILE + HELD + PAIR)
    ends = []
    for algorithm in ("hystart-linux-cubic", "standard-cubic"):
        run = answer.run(algorithm=algorithm)
        records = [run.agent(number) for number in range(1, 11)]
        ends.append([(record["end_ns"] - record["start_ns"]) / 1e9 for record in records])
    assert statistics.median(ends[0]) == statistics.median(ends[1])
    assert says(answer.sentence, statistics.median(ends[0]), "s")
    assert "background flows too" not in answer.sentence


def test_a_competition_that_changes_with_the_sides_is_told() -> None:
    answer = ask(f"{PROFILE}background: [{{}}, {{}}, {{}}]\n{SETTINGS}")
    assert "3 background flows" in " ".join(answer.sentence.split())
