# SPDX-License-Identifier: Apache-2.0
"""Reads KTAP as Documentation/dev-tools/ktap.rst of Linux has it, and refuses what is none."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_RESULT = re.compile(r"(ok|not ok) (\d+) ([^#]*[^# ])(?: # (.+))?")
_INDENT = "  "


@dataclass
class Case:
    name: str
    ok: bool
    directive: str
    diagnostics: list[str] = field(default_factory=list)
    cases: list[Case] = field(default_factory=list)


def read_ktap(text: str) -> list[Case]:
    """The results of the outermost document, each with those of its subtest. Raises ValueError."""
    return _read(text.splitlines())


def _read(lines: list[str]) -> list[Case]:
    if lines[0] != "KTAP version 1":
        raise ValueError(f"no version: {lines[0]!r}")
    found: list[Case] = []
    inner: list[str] = []
    said: list[str] = []
    planned = None
    name = ""
    for line in lines[1:]:
        if line.startswith(_INDENT):
            inner.append(line.removeprefix(_INDENT))
        elif line.startswith("# Subtest: "):
            name = line.removeprefix("# Subtest: ")
        elif line.startswith("# "):
            said.append(line[2:])
        elif (plan := re.fullmatch(r"1\.\.(\d+)", line)) is not None:
            planned = int(plan[1])
        elif (result := _RESULT.fullmatch(line)) is not None:
            if int(result[2]) != len(found) + 1:
                raise ValueError(f"expected number {len(found) + 1}: {line}")
            case = Case(result[3], result[1] == "ok", result[4] or "", said, _read(inner) if inner else [])
            if inner and f"# Subtest: {case.name}" not in inner[:3]:
                raise ValueError(f"the subtest of {case.name} has another name")
            found.append(case)
            inner, said = [], []
        else:
            raise ValueError(f"no line of KTAP: {line!r}")
    if planned != len(found) or inner:
        raise ValueError(f"{planned} results were planned, {len(found)} are there{f' ({name})' if name else ''}")
    return found
