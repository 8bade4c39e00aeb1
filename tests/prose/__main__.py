# SPDX-License-Identifier: Apache-2.0
"""``python -m tests.prose [PAGE …]``: print what the rules find. Without a page: all but those of legacy.txt."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.prose.rule import HERE, check

ROOT = Path(__file__).resolve().parents[2]
_PLACES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", "docs/algorithms/*.md", "modules/README.md")
_MORE = ("tests/decision/README.md",)
# Written by `make references` from docstrings and descriptions in the code.
GENERATED = ("docs/profile-reference.md",)


def pages() -> list[Path]:
    """Every page that is linted, legacy pages included."""
    found = [page for place in (*_PLACES, *_MORE) for page in sorted(ROOT.glob(place))]
    return [page for page in found if _name(page) not in GENERATED]


def legacy() -> set[str]:
    """Names of pages that are excused until they are rewritten."""
    lines = (HERE / "legacy.txt").read_text(encoding="utf-8").splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def _name(page: Path) -> str:
    page = page.resolve()
    return str(page.relative_to(ROOT)) if page.is_relative_to(ROOT) else str(page)


def main(arguments: list[str]) -> int:
    excused = set() if arguments else legacy()
    number = 0
    for page in [Path(argument) for argument in arguments] or pages():
        if _name(page) in excused:
            continue
        for finding in check(page.read_text(encoding="utf-8")):
            sys.stderr.write(f"{_name(page)}:{finding.line}: {finding.rule}: {finding.message}\n")
            number += 1
    if number:
        sys.stderr.write(f"{number} findings; the rules are in tests/prose\n")
    return 1 if number else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
