# SPDX-License-Identifier: Apache-2.0
"""Writes the tables of docs/data-format.md that the models of files on disk give."""

from __future__ import annotations

from pydantic import BaseModel

from howdah.place import PROJECT
from howdah.record.index import ExperimentIndex, IndexedRun, ProfileSource

PAGE = PROJECT / "docs" / "data-format.md"
_TITLE = "## experiment.json\n"
_PARTS = (
    ("The list of runs, one line a run in `cells`.", ExperimentIndex),
    ("Its `profile`:", ProfileSource),
    ("A row of `cells`:", IndexedRun),
)


def page(text: str) -> str:
    """The page with the section of experiment.json as the models give it."""
    before, title, after = text.partition(_TITLE)
    _, heading, rest = after.partition("\n## ")
    tables = "\n".join(f"{words}\n\n{_table(model)}" for words, model in _PARTS)
    return f"{before}{title}{tables}{heading}{rest}"


def _table(model: type[BaseModel]) -> str:
    rows = (f"| `{name}` | {field.description} |\n" for name, field in model.model_fields.items())
    return f"| field | what it is |\n|---|---|\n{''.join(rows)}"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
