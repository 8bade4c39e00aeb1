# SPDX-License-Identifier: Apache-2.0
"""The table of queueing disciplines in docs/data-format.md, made from their classes; ``--check`` says whether it is
current.

``python -m howdah.plan.reference [--check] [docs]``
"""

from __future__ import annotations

import dataclasses
import sys

from howdah.generated import between, docs_of, keep_current
from howdah.linux.netlink.discipline import disciplines
from howdah.linux.netlink.discipline.discipline import Discipline

PAGE_NAME = "data-format.md"
BEGIN = "<!-- Made by `make references` from howdah/linux/netlink/discipline: do not edit below. -->"
END = "<!-- Made by `make references` from howdah/linux/netlink/discipline: end. -->"


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


def page(text: str) -> str:
    """The page with the table as it is now. Raises HowdahError where the page has no place for it."""
    return between(text, BEGIN, END, table(), PAGE_NAME)


def main(arguments: list[str]) -> int:
    path = docs_of(arguments) / PAGE_NAME
    return keep_current({path: page(path.read_text(encoding="utf-8"))}, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
