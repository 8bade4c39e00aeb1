# SPDX-License-Identifier: Apache-2.0
"""docs/algorithms.md and its pages speak of every plug-in and of every parameter there is, and of no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from howdah.algorithm import PLUG_INS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCES = sorted((ROOT / "modules" / "algorithms").glob("ss_*.c"))
_PARAMETER = re.compile(r"^(?:module_param(?:_cb)?|slow_start_parameter(?:_named)?)\(\s*(\w+)", re.MULTILINE)
_TABLE_ROW = re.compile(r"^\| ((?:`[a-z_0-9]+`(?:, )?)+) \|", re.MULTILINE)


def _page(source: Path) -> str:
    return (DOCS / "algorithms" / f"{source.stem.removeprefix('ss_')}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_a_page_lists_the_parameters_of_its_plug_in(source: Path) -> None:
    parameters = set(_PARAMETER.findall(source.read_text(encoding="utf-8")))
    # prefix_ipv4, prefix_ipv6 and the like may share a row.
    rows = {name for row in _TABLE_ROW.findall(_page(source)) for name in re.findall(r"`(\w+)`", row)}
    algorithms = {name for plug_in in PLUG_INS for name in (plug_in.name, plug_in.short)}
    assert parameters <= rows
    assert {row for row in rows - algorithms if "-" not in row} == parameters


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_every_plug_in_has_a_row_with_a_link(source: Path) -> None:
    short = source.stem.removeprefix("ss_")
    assert f"](algorithms/{short}.md)" in (DOCS / "algorithms.md").read_text(encoding="utf-8")


def test_every_name_of_a_profile_is_there_and_its_module_exists() -> None:
    text = (DOCS / "algorithms.md").read_text(encoding="utf-8")
    for plug_in in PLUG_INS:
        assert ROOT / "modules" / "algorithms" / f"ss_{plug_in.short}.c" in SOURCES
        suffix = re.search(r"-(ca|app)$", plug_in.name)
        assert f"`{plug_in.name}`" in text or (suffix and f"`-{suffix[1]}`" in text), plug_in.name
