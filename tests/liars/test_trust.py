# SPDX-License-Identifier: Apache-2.0
"""The list has every liar, as the registry has it."""

from __future__ import annotations

from tests.liars.liar import ABOUTS
from tests.liars.registry import LIARS
from tests.liars.trust import PAGE, page


def test_the_page_is_that_of_the_registry() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run make references"


def test_every_liar_is_in_the_table_once() -> None:
    table = page()
    assert [liar.name for liar in LIARS if table.count(f"| `{liar.name}` |") != 1] == []


def test_names_are_unique_and_every_kind_has_a_liar() -> None:
    names = [liar.name for liar in LIARS]
    assert len(set(names)) == len(names) >= 30
    assert {liar.about for liar in LIARS} == set(ABOUTS)
    assert all(liar.lie.endswith(".") and liar.caught.words for liar in LIARS)
