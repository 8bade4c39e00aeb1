# SPDX-License-Identifier: Apache-2.0
"""The profile format's JSON Schema and reference page, made from the models; ``--check`` says whether they are current.

``python -m howdah.profile.reference [--check] [docs]``
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from howdah.algorithm import ALGORITHMS
from howdah.compact import compact_json
from howdah.generated import docs_of, keep_current
from howdah.profile.field import QUANTITIES
from howdah.profile.model import Scenario
from howdah.profile.queue import QueueSection
from howdah.profile.schema import SCHEMA_NAME, fields_of, json_schema, raw_schema
from howdah.profile.sweep import MOST_CELLS, is_fixed, shape_of
from howdah.profile.unsayable import TITLE
from howdah.profile.unsayable import table as unsayable_table
from howdah.receiver import RECEIVERS

PAGE_NAME = "profile-reference.md"


_INTRODUCTION = f"""\
<!-- SPDX-License-Identifier: Apache-2.0 -->
<!-- Made by `python -m howdah.profile.reference` from howdah/profile/model.py; do not edit. -->
# Profile reference

A profile is a YAML mapping. Units are part of a value (`400 Mbit/s`, `120 ms`, `1 bdp`, `0.5 %`); rates are decimal.

**A list in a field that takes one value is a sweep**: one run for each value; several lists make all combinations, and
more than {MOST_CELLS} runs are refused unless `--confirm-runs N` names their number ([sweeps.md](sweeps.md)). Fields
marked *fixed* cannot be swept.

Any field can be set from the command line: `--set path.rate=100Mbit/s`, `--set 'flows.2.start=5 s'`,
`--set 'algorithm=[cubic, reno]'`. A path in a profile starts at the profile's directory; one of
`--set` that begins with `./` or `../` starts at the current directory.
**Everything is counted from 1**: `flows.2` is flow 2, and the same number is in claims, tables, metrics, labels, checks
and messages; a member of a list that has a name may be called by it (`flows.second.start`). Background flows and the
connections of groups are counted on after the profile's flows. YAML tags, anchors and aliases are refused.
[profile.schema.json](profile.schema.json) is the format as JSON Schema, for
[editors](environment.md#profiles-in-an-editor). `howdah new` writes a profile to begin with.

```yaml
# yaml-language-server: $schema=../docs/profile.schema.json
howdah: 1
name: example
path: {{rate: 100 Mbit/s, rtt: [50 ms, 100 ms], buffer: 1 bdp}}   # two points
algorithm: [cubic, reno]                                        # times two
duration: 10 s
```
"""


def page() -> str:
    """The reference page, Markdown."""
    lines = [*_INTRODUCTION.splitlines(), "", "| quantity | |", "|---|---|"]
    lines += [f"| {kind} | {expected} |" for kind, expected in QUANTITIES.items()]
    lines.append("")
    _, definitions = raw_schema()
    sections = _sections()
    for model, paths in sections.items():
        named = paths[:1] if issubclass(model, QueueSection) else paths  # which hops have, too
        title = ", ".join(f"`{path}`" for path in named)
        lines += [f"## {title}", "", _text(model), ""] if paths[0] else ["## The profile", ""]
        base = next((base for base in model.__bases__ if base in sections), None)
        properties = definitions[model.__name__]["properties"]
        rows = [_row(name, info, properties[name]) for name, info in fields_of(model, whole=True)]
        if base is not None:
            known = definitions[base.__name__]["properties"]
            told = {_row(name, info, known[name]) for name, info in fields_of(base, whole=True)}
            rows = [row for row in rows if row not in told]
            lines += [f"It takes what `{sections[base][0]}` takes{', and:' if rows else '.'}", ""]
        if rows:
            lines += ["| field | value | default | meaning |", "|---|---|---|---|", *rows, ""]
    lines += ["## Algorithms", "", "| name | kernel | parameters | what it is |", "|---|---|---|---|"]
    for algorithm in ALGORITHMS.values():
        parameters = ", ".join(f"`{algorithm.module}.{key}={value}`" for key, value in algorithm.parameters.items())
        lines.append(f"| `{algorithm.name}` | `{algorithm.kernel}` | {parameters} | {algorithm.summary} |")
    lines += [
        "",
        "A name not in this table must be declared under `algorithms`, or be what a `modules` entry registers.",
        "A `modules` entry takes the place of what is in this table: with `tcp_cubic.c`, `cubic` is that file's.",
        "",
    ]
    lines += ["## Receivers", "", "| name | | what it is |", "|---|---|---|"]
    for receiver in RECEIVERS.values():
        lines.append(f"| `{receiver.name}` | {'emulated' if receiver.emulated else ''} | {receiver.summary} |")
    lines += ["", "Sections are those of the HyStart paper; [receivers.md](receivers.md) has the details.", ""]
    lines += [f"## {TITLE}", "", "The message about a profile that asks for one of these names what comes nearest.", ""]
    lines += ["| there is no | nearest |", "|---|---|"]
    lines += [f"| {row.what} | {row.nearest} |" for row in unsayable_table()]
    lines.append("")
    return "\n".join(lines)


def _sections() -> dict[type[BaseModel], list[str]]:
    """Each model with the places that take it."""
    found: dict[type[BaseModel], list[str]] = {}
    for path, model in _places(Scenario, ""):
        found.setdefault(model, []).append(path)
    return found


def _places(model: type[BaseModel], path: str) -> Iterator[tuple[str, type[BaseModel]]]:
    yield path, model
    for name, info in fields_of(model, whole=True):
        shape, inner = shape_of(info.annotation)
        suffix = ""
        if shape in ("list", "mapping"):
            suffix = "[…]" if shape == "list" else ".<name>"
            shape, inner = shape_of(inner)
        if shape == "choice":
            for kind, one in inner.items():
                yield from _places(one, f"{path}.{name}{suffix}: {kind}".lstrip("."))
        if shape == "section":
            yield from _places(inner, f"{path}.{name}{suffix}".lstrip("."))


def _text(model: type[BaseModel]) -> str:
    return inspect.cleandoc(model.__doc__ or "").replace("``", "`")


def _row(name: str, info: Any, schema: dict[str, Any]) -> str:
    fixed = " *(fixed)*" if is_fixed(info) and shape_of(info.annotation)[0] == "value" else ""
    return f"| `{name}` | {_value(schema)}{fixed} | {_default(info)} | {info.description} |"


def _default(info: Any) -> str:
    if info.is_required():
        return "**required**"
    if isinstance(info.json_schema_extra, dict) and "x-default" in info.json_schema_extra:
        return f"`{info.json_schema_extra['x-default']}`"
    if info.default_factory is not None or info.default in (None, ""):
        return ""
    return f"`{info.default}`".lower() if isinstance(info.default, bool) else f"`{info.default}`"


def _several(words: str) -> str:
    """More than one: of a choice, ``value, or list of values``, each is one."""
    if "," in words:
        return words
    first, space, rest = words.partition(" with ")
    return f"{first}s{space}{rest}"


_WORDS = {"boolean": "true or false", "string": "text", "number": "number", "integer": "whole number"}


def _value(schema: dict[str, Any]) -> str:
    """What a field takes, in words. A quantity's own schema carries its description."""
    if "x-value" in schema:
        return str(schema["x-value"])
    if "$ref" in schema:
        return "section"
    if "discriminator" in schema:
        return f"{', '.join(f'`{name}`' for name in schema['discriminator']['mapping'])}, or section"
    if "anyOf" in schema:
        words = [_value(item) for item in schema["anyOf"] if item.get("type") != "null"]
        return " or ".join(dict.fromkeys(words))
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return ", ".join(f"`{item}`" for item in schema["enum"])
    kind = schema.get("type")
    if kind == "array" and "items" in schema:
        return f"list of {_several(_value(schema['items']))}"
    if kind == "object":
        values = schema.get("additionalProperties") or next(iter(schema["patternProperties"].values()))
        return f"mapping of names to {_several(_value(values))}"
    if kind == "integer" and "minimum" in schema:
        return f"{schema['minimum']} … {schema['maximum']}" if "maximum" in schema else f"from {schema['minimum']}"
    kinds = kind if isinstance(kind, list) else [kind]
    return _WORDS[str(next(item for item in kinds if item != "null"))]


def main(arguments: list[str]) -> int:
    docs = docs_of(arguments)
    return keep_current({docs / SCHEMA_NAME: compact_json(json_schema()), docs / PAGE_NAME: page()}, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
