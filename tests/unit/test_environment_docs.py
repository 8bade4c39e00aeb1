# SPDX-License-Identifier: Apache-2.0
"""docs/environment.md has every variable that the program reads or sets, and no other."""

from __future__ import annotations

import re

from howdah.place import DOCS, PACKAGE

_NAME = re.compile(r"\bHOWDAH_[A-Z_]+\b")


def test_the_page_has_the_variables_of_the_program() -> None:
    used = {name for file in PACKAGE.rglob("*.py") for name in _NAME.findall(file.read_text(encoding="utf-8"))}
    page = (DOCS / "environment.md").read_text(encoding="utf-8")
    assert set(_NAME.findall(page)) == used
