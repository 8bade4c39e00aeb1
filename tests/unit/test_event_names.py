# SPDX-License-Identifier: Apache-2.0
"""The names of events and reasons are those of the modules' header, number for number."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from howdah.record.schema import EVENTS, REASONS, name_of

HEADER = Path(__file__).parents[2] / "modules" / "include" / "slow_start_event.h"


def enumeration(name: str) -> dict[int, str]:
    """Numbers and kebab-case names of an enum of the header."""
    (body,) = re.findall(rf"^enum {name} \{{$(.*?)^\}};$", HEADER.read_text(), re.DOTALL | re.MULTILINE)
    found = re.findall(r"^\tSLOW_START_(\w+) = (\d+),$", body, re.MULTILINE)
    assert len(found) == len(body.strip().splitlines()), "a line of the enum was not understood"
    return {int(number): text.lower().replace("_", "-") for text, number in found}


@pytest.mark.parametrize(
    ("enum", "names"), [("slow_start_event", EVENTS), ("slow_start_reason", REASONS)], ids=["events", "reasons"]
)
def test_names_are_those_of_the_header(enum: str, names: tuple[str, ...]) -> None:
    assert enumeration(enum) == dict(enumerate(names))


def test_a_number_without_a_name_is_kept() -> None:
    assert name_of(len(EVENTS), EVENTS) == f"unknown-{len(EVENTS)}"
    assert name_of(2, REASONS) == "delay"
