# SPDX-License-Identifier: Apache-2.0
"""Makes the tables of operations, events, queueing disciplines and of the path in docs/data-format.md from their
classes; ``--check`` tells whether they are current.

``python -m howdah.plan.reference [--check] [docs]``
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterable

from howdah.generated import between, docs_of, keep_current
from howdah.linux.netlink.discipline import disciplines
from howdah.linux.netlink.discipline.discipline import Discipline
from howdah.plan.event import PlannedChange
from howdah.plan.path import Path
from howdah.plan.placed import Class, PlacedQueue
from howdah.plan.step import Operation, PlanStep

PAGE_NAME = "data-format.md"
BEGIN = "<!-- Made by `make references` from howdah/linux/netlink/discipline: do not edit below. -->"
END = "<!-- Made by `make references` from howdah/linux/netlink/discipline: end. -->"
STEPS_BEGIN = "<!-- Made by `make references` from howdah/plan/operation.py and placed.py: do not edit below. -->"
STEPS_END = "<!-- Made by `make references` from howdah/plan/operation.py and placed.py: end. -->"
EVENTS_BEGIN = "<!-- Made by `make references` from howdah/plan/event.py and placed.py: do not edit below. -->"
EVENTS_END = "<!-- Made by `make references` from howdah/plan/event.py and placed.py: end. -->"
PATH_BEGIN = "<!-- Made by `make references` from howdah/plan/path.py: do not edit below. -->"
PATH_END = "<!-- Made by `make references` from howdah/plan/path.py: end. -->"


def table() -> str:
    """Return a row for each kind of queueing discipline."""
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


def steps_table(steps: Iterable[type[PlanStep]]) -> str:
    """Return a row for each step, with its arguments and the docstring of its class."""
    return "\n".join(["| op | arguments | meaning |", "|---|---|---|", *map(_step, steps)])


def _step(kind: type[PlanStep]) -> str:
    names = [field.name for field in dataclasses.fields(kind)]  # type: ignore[arg-type]  # all are dataclasses
    if issubclass(kind, (PlacedQueue, Class)):
        names[-1:] = ["kind", "options"]
    return f"| `{kind.op}` | {', '.join(f'`{name}`' for name in names)} | {' '.join((kind.__doc__ or '').split())} |"


def path_table() -> str:
    """Return a row for each field of the path that has a description."""
    rows = (f"| `path.{each.name}` | {each.metadata['text']} |" for each in dataclasses.fields(Path) if each.metadata)
    return "\n".join(["| field | meaning; left out where it has no use |", "|---|---|", *rows])


def page(text: str) -> str:
    """Return the page with current tables. Raise HowdahError if the page lacks the markers of one."""
    events = [kind for kind in PlannedChange.known.values() if not issubclass(kind, Operation)]
    text = between(text, STEPS_BEGIN, STEPS_END, steps_table(Operation.known.values()), PAGE_NAME)
    text = between(text, EVENTS_BEGIN, EVENTS_END, steps_table(events), PAGE_NAME)
    text = between(text, PATH_BEGIN, PATH_END, path_table(), PAGE_NAME)
    return between(text, BEGIN, END, table(), PAGE_NAME)


def main(arguments: list[str]) -> int:
    path = docs_of(arguments) / PAGE_NAME
    return keep_current({path: page(path.read_text(encoding="utf-8"))}, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
