# SPDX-License-Identifier: Apache-2.0
"""Write docs/json.schema.json, the schema of all ``--json`` objects, from their classes.

``python -m howdah.command.shapes [--check] [docs]`` writes it, or tells whether it is current. An object may have more
fields than its shape: readers ignore fields that they do not know.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from typing import Any

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from howdah.command import listing
from howdah.command.answer import SHAPE
from howdah.command.commands import COMMANDS
from howdah.command.shape import CommandAnswer
from howdah.extension import extensions
from howdah.generated import compact_json, docs_of, keep_current
from howdah.hooks import CommandEntry
from howdah.plan.plan import Plan
from howdah.record.model import FilePart


class _ErrorText(FilePart):
    what: str
    where: str | None
    hint: str | None


class Error(CommandAnswer, shape="error"):
    error: _ErrorText


def _answers() -> Iterator[type[CommandAnswer]]:
    """Yield the object classes of all commands, and those that howdah's own packages add."""
    for each in extensions("commands").values():
        if each.is_own:
            entry: CommandEntry = each.load()
            yield from entry.answers()
    for module in dict.fromkeys(command.module for command in COMMANDS.values()):
        there = vars(importlib.import_module(f"howdah.command.{module}")).values()
        yield from (
            each for each in there if isinstance(each, type) and issubclass(each, CommandAnswer) and each.shape_name
        )
    yield from listing.ANSWERS.values()
    yield Error


SHAPES: dict[str, type[CommandAnswer]] = {each.shape_name: each for each in _answers()}


class _PrintedSchema(GenerateJsonSchema):
    """Require all fields of a dataclass: it is printed with its defaults."""

    def field_is_required(self, field: Any, total: bool) -> bool:
        return field["type"] == "dataclass-field" or super().field_is_required(field, total)


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of one shape, including its name and version."""
    found: dict[str, Any] = SHAPES[name].model_json_schema(schema_generator=_PrintedSchema)
    found["properties"] = {SHAPE: {"const": SHAPES[name].shape()}, **found.get("properties", {})}
    found["required"] = [SHAPE, *found.get("required", [])]
    if name == "plan":
        plan = TypeAdapter(Plan).json_schema(ref_template="#/$defs/{model}")
        found.setdefault("$defs", {}).update(plan.pop("$defs", {}) | {"Plan": plan})
        found["properties"]["plans"]["items"] = {"$ref": "#/$defs/Plan"}
    return found


def document() -> dict[str, Any]:
    """Return all shapes as one schema; an object's ``shape`` selects one."""
    definitions: dict[str, Any] = {}
    for name, each in SHAPES.items():
        text = each.shape()
        definitions[text] = {**schema(name), "$id": f"urn:howdah:json:{text}", "title": text}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What howdah prints with --json",
        "oneOf": [{"$ref": f"urn:howdah:json:{name}"} for name in definitions],
        "$defs": definitions,
    }


SCHEMA_NAME = "json.schema.json"


def main(arguments: list[str]) -> int:
    return keep_current({docs_of(arguments) / SCHEMA_NAME: compact_json(document())}, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
