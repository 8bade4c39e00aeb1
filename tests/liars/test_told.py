# SPDX-License-Identifier: Apache-2.0
"""Every liar about tables, results, modules, baselines and comparisons is caught by name, and nothing honest is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.liars.bench import Bench
from tests.liars.liar import ToldLiar
from tests.liars.registry import HONEST, TOLD

pytestmark = pytest.mark.guest


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("liars"))


@pytest.mark.parametrize("liar", TOLD, ids=lambda liar: liar.name)
def test_a_liar_is_caught_by_name(bench: Bench, liar: ToldLiar, tmp_path: Path) -> None:
    found = liar.told(bench, tmp_path / "lie")
    caught = liar.caught
    assert [
        each for each in found if (each.kind, each.name) == (caught.kind, caught.name) and caught.words in each.words
    ], found


@pytest.mark.parametrize("name", HONEST)
def test_what_is_honest_is_not_caught(bench: Bench, name: str, tmp_path: Path) -> None:
    assert HONEST[name](bench, tmp_path / "honest") == []


def test_every_honest_thing_is_the_other_side_of_a_lie() -> None:
    assert {liar.honest for liar in TOLD} == set(HONEST)
