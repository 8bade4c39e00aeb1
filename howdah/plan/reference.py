# SPDX-License-Identifier: Apache-2.0
"""The tables of queueing disciplines and of the path in docs/data-format.md, made from their classes; ``--check`` says
whether they are current.

``python -m howdah.plan.reference [--check] [docs]``
"""

from __future__ import annotations

import dataclasses
import sys

from howdah.generated import between, docs_of, keep_current
from howdah.linux.netlink.discipline import disciplines
from howdah.linux.netlink.discipline.discipline import Discipline
from howdah.plan.path import Path

PAGE_NAME = "data-format.md"
BEGIN = "<!-- Made by `make references` from howdah/linux/netlink/discipline: do not edit below. -->"
END = "<!-- Made by `make references` from howdah/linux/netlink/discipline: end. -->"
PATH_BEGIN = "<!-- Made by `make references` from howdah/plan/path.py: do not edit below. -->"
PATH_END = "<!-- Made by `make references` from howdah/plan/path.py: end. -->"


def table() -> str:
    """A row for each kind."""
    return "\n".join(["| kind | options |", "|---|---|", *map(_row, disciplines().values())])


def _row(kind: type[Discipline]) -> str:
    words = _options(kind)
    if kind.classes is not None:
        words += f"; its class: {_options(kind.classes)}"
    return f"| `{kind.kind}` | {'; '.join(filter(None, [words, kind.of_module]))} |"


def _options(kind: type[Discipline]) -> str:
    written = [field.name for field in dataclasses.fields(kind) if field.compare]
    return ", ".join(f"`{name}`" + (f" ({note})" if (note := kind.notes.get(name)) else "") for name in written) or (
        kind.notes.get("", "none")
    )


def path_table() -> str:
    """A row for each property of the path that says what it is."""
    rows = (f"| `path.{each.name}` | {each.metadata['text']} |" for each in dataclasses.fields(Path) if each.metadata)
    return "\n".join(["| field | meaning; left out where it has no use |", "|---|---|", *rows])


def page(text: str) -> str:
    """The page with the tables as they are now. Raises HowdahError where the page has no place for one."""
    text = between(text, PATH_BEGIN, PATH_END, path_table(), PAGE_NAME)
    return between(text, BEGIN, END, table(), PAGE_NAME)


def main(arguments: list[str]) -> int:
    path = docs_of(arguments) / PAGE_NAME
    return keep_current({path: page(path.read_text(encoding="utf-8"))}, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
