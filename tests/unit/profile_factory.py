# SPDX-License-Identifier: Apache-2.0
"""Small profiles written to a temporary directory, and their plans."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.profile import load

BASE = """\
howdah: 1
name: small
path:
  rate: 20 Mbit/s
  rtt: 40 ms
duration: 4 s
"""


def write_profile(directory: Path, extra: str = "", base: str = BASE) -> Path:
    """``base`` is six lines long, so that ``extra`` begins on line 7."""
    file = directory / "small.yaml"
    file.write_text(base + extra, encoding="utf-8")
    return file


def make_plans(directory: Path, extra: str = "", overrides: list[str] | None = None, **options: str) -> list[Plan]:
    profile = load(write_profile(directory, extra), overrides or [])
    return [compile_plan(cell, **options) for cell in profile.cells()]


def make_one(directory: Path, extra: str = "", overrides: list[str] | None = None, **options: str) -> Plan:
    (plan,) = make_plans(directory, extra, overrides, **options)
    return plan


def operations(plan: Plan, op: str, **arguments: object) -> list[Any]:
    """Operations of a kind whose arguments have these values."""
    return [
        item
        for item in plan.operations
        if item.op == op and all(getattr(item, name) == value for name, value in arguments.items())
    ]
