# SPDX-License-Identifier: Apache-2.0
"""Generate the profile format's JSON Schema and reference page from the models; ``--check`` reports whether they are
current.

``python -m howdah.profile.reference [--check] [docs]``
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from howdah.generated import compact_json, docs_of, keep_current
from howdah.profile.field import QUANTITIES
from howdah.profile.model import Scenario
from howdah.profile.queue import HostQueueSection, QueueSection
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
    """The reference page, as Markdown."""
    lines = [*_INTRODUCTION.splitlines(), "", "| quantity | |", "|---|---|"]
    lines += [f"| {kind} | {expected} |" for kind, expected in QUANTITIES.items()]
    lines += ["", *_Sections().lines(), *_NAMES.splitlines(), ""]
    lines += [f"## {TITLE}", "The message about a profile that asks for one of these names what comes nearest.", ""]
    lines += ["| there is no | nearest |", "|---|---|"]
    lines += [f"| {row.what} | {row.nearest} |" for row in unsayable_table()]
    lines.append("")
    return "\n".join(lines)


_NAMES = """\
## Algorithms and receivers
`howdah list algorithms` names [all algorithms](algorithms.md), with `--json` also their kernel names, modules and
parameters.
Those of this project are over Reno's congestion avoidance, and each with `-cubic` behind its name is over CUBIC's.
The kernel's name then ends in `_cubic`.
Any other name must be declared under `algorithms`, or be what a `modules` entry registers.
A `modules` entry takes the place of what is named here: with `tcp_cubic.c`, `cubic` is that file's.
`howdah list receivers` names the [receivers](receivers.md).
"""
_HEADER = ["| field | value | default | meaning |", "|---|---|---|---|"]
_SMALL = 12  # largest number of fields of a section that is described in its parent's table
_SHORT = 520  # largest number of characters of its text, and of its fields if they share its row
_PLACES = 4  # largest number of places that a section's title lists
_ALIKE = 3  # smallest number of equal rows that are replaced by a reference


class _Sections:
    """The page's text on each section of a profile. Each section is described once."""

    def __init__(self) -> None:
        _, self._definitions = raw_schema()
        self._places: dict[type[BaseModel], list[str]] = {}
        self._models: dict[str, type[BaseModel]] = {}
        for path, model in _places(Scenario, ""):
            self._places.setdefault(model, []).append(path)
            self._models[path] = model
        self._described: list[tuple[str, set[str]]] = []

    def lines(self) -> list[str]:
        lines = ["## The profile", *_HEADER, *self._rows(Scenario, ""), ""]
        choices: set[str] = set()
        for model, paths in self._places.items():
            if issubclass(model, QueueSection | HostQueueSection):
                title = paths[0].partition(": ")[0]
                if title not in choices:
                    choices.add(title)
                    lines += self._choice(title)
            elif paths[0] and not self._is_small(model) and not self._is_in_its_parent(model):
                shortest = sorted(paths, key=len)[: len(paths) if len(paths) <= _PLACES else 2]
                lines += [f"## {', '.join(f'`{path}`' for path in shortest)}", _text(model), ""]
                same, rows = self._split_shared_rows(paths[0], self._rows(model, ""))
                lines += [same, ""] if same else []
                lines += [*_HEADER, *rows, ""] if rows else []
        return lines

    def _is_small(self, model: type[BaseModel]) -> bool:
        """Whether a section is described in its only parent: it has few fields, all of them plain or small sections."""
        places = self._places[model]
        return (
            len({path.rpartition(".")[0] for path in places}) == 1
            and len(places) * len(fields := fields_of(model, whole=True)) <= _SMALL
            and len(_text(model)) <= _SHORT
            and all(inner is None or self._is_small(inner) for inner in (_inner(info)[1] for _, info in fields))
        )

    def _is_in_its_parent(self, model: type[BaseModel]) -> bool:
        """Whether the section's parent has all of its fields too."""
        outer = [path.removesuffix(".<name>").rpartition(".")[0] for path in self._places[model]]
        parents = {self._models[path] for path in outer}
        return len(parents) == 1 and self._plain(model) <= self._plain(parents.pop())

    def _plain(self, model: type[BaseModel]) -> set[str]:
        schemas = self._definitions[model.__name__]["properties"]
        return {_row(name, info, schemas[name]) for name, info in fields_of(model, whole=True)}

    def _rows(self, model: type[BaseModel], prefix: str) -> list[str]:
        rows = []
        first: dict[type[BaseModel], str] = {}
        for name, info in fields_of(model, whole=True):
            suffix, inner = _inner(info)
            schema = self._definitions[model.__name__]["properties"][name]
            further, told = "", []
            if inner is not None and self._is_in_its_parent(inner):
                names = ", ".join(f"`{each}`" for each, _ in fields_of(inner, whole=True))
                further = f"Its fields are {names}, as in this table."
            elif inner in first:
                further = f"Its fields are those of `{first[inner]}`."
            elif inner is not None and self._is_small(inner):
                first[inner] = f"{prefix}{name}"
                further, told = _additional_text(inner), self._rows(inner, f"{prefix}{name}{suffix}.")
            short = "<br>".join(["", *map(_inlined_row, told)])
            if told and len(further + short) <= _SHORT:
                further, told = further + short, []
            rows += [_row(f"{prefix}{name}", info, schema, further), *told]
        return rows

    def _split_shared_rows(self, path: str, rows: list[str]) -> tuple[str, list[str]]:
        """A sentence that refers to another section for the rows they share, or an empty text; and the other rows."""
        found = [(there, [row for row in rows if row in told]) for there, told in self._described]
        place, same = max(found, key=_number, default=("", []))
        self._described.append((path, set(rows)))
        if len(same) < _ALIKE:
            return "", rows
        others = [row for row in rows if row not in same]
        names = ", ".join(row.split(" | ")[0].removeprefix("| ") for row in same)
        return f"As in `{place}`: {names}.", others

    def _choice(self, title: str) -> list[str]:
        """The kinds of a queue and their parameters; kinds that share a parameter share a row."""
        kinds: dict[str, list[str]] = {}
        texts = []
        for model, paths in self._places.items():
            place, _, kind = paths[0].partition(": ")
            if kind and place == title:
                texts.append(f"- `{kind}`: {_text(model)}".replace("\n", "\n  "))
                for row in self._rows(model, ""):
                    kinds.setdefault(row, []).append(f"`{kind}`")
        rows = ["| `kind` | all | one of these | **required** | which queue this is |"]
        for row, which in kinds.items():
            name, rest = row.removeprefix("| ").split(" | ", 1)
            if name != "`kind`":
                rows.append(f"| {name} | {', '.join(which)} | {rest}")
        header = ["| field | kinds | value | default | meaning |", "|---|---|---|---|---|"]
        return [f"## `{title}`", *texts, "", *header, *rows, ""]


def _number(found: tuple[str, list[str]]) -> int:
    return len(found[1])


def _places(model: type[BaseModel], path: str) -> Iterator[tuple[str, type[BaseModel]]]:
    yield path, model
    for name, info in fields_of(model, whole=True):
        suffix, inner = _inner(info)
        if inner is not None:
            yield from _places(inner, f"{path}.{name}{suffix}".lstrip("."))
        else:
            shape, kinds = shape_of(info.annotation)
            for kind, one in kinds.items() if shape == "choice" else ():
                yield from _places(one, f"{path}.{name}: {kind}".lstrip("."))


def _inner(info: Any) -> tuple[str, type[BaseModel] | None]:
    """The suffix that a field's members have in a name, and their section, if they are sections."""
    shape, inner = shape_of(info.annotation)
    suffix = ""
    if shape in ("list", "mapping"):
        suffix = "[…]" if shape == "list" else ".<name>"
        shape, inner = shape_of(inner)
    return suffix, inner if shape == "section" else None


def _additional_text(model: type[BaseModel]) -> str:
    """The section's text to add to its field's meaning: all of it, or what follows the first sentence of a single
    line."""
    text = _text(model)
    return " ".join(text.split()) if "\n" in text else text.partition(". ")[2]


def _text(model: type[BaseModel]) -> str:
    return inspect.cleandoc(model.__doc__ or "").replace("``", "`")


def _row(name: str, info: Any, schema: dict[str, Any], further: str = "") -> str:
    fixed = " *(fixed)*" if is_fixed(info) and shape_of(info.annotation)[0] == "value" else ""
    meaning = f"{info.description}. {further}".replace(". <br>", ".<br>") if further else info.description
    return f"| `{name}` | {_value(schema)}{fixed} | {_default(info)} | {meaning} |"


def _inlined_row(row: str) -> str:
    """A table row as one line of text, to go into its parent's row: name, value, default and meaning."""
    name, value, default, meaning = (cell.strip() for cell in row.removeprefix("| ").removesuffix(" |").split(" | "))
    otherwise = "required" if "**" in default else default and f"by default {default}"
    takes = "; ".join(filter(None, [value, otherwise]))
    return f"{name} ({takes}): {meaning.rstrip('.')}."


def _default(info: Any) -> str:
    if info.is_required():
        return "**required**"
    if isinstance(info.json_schema_extra, dict) and "x-default" in info.json_schema_extra:
        return f"`{info.json_schema_extra['x-default']}`"
    if info.default_factory is not None or info.default in (None, ""):
        return ""
    return f"`{info.default}`".lower() if isinstance(info.default, bool) else f"`{info.default}`"


def _several(words: str) -> str:
    """The plural of a value's description. A choice such as ``value, or list of values`` stays as it is."""
    if "," in words:
        return words
    first, space, rest = words.partition(" with ")
    return words if first[-1] in "s0123456789" else f"{first}s{space}{rest}"


_WORDS = {"boolean": "true or false", "string": "text", "number": "number", "integer": "whole number"}


def _value(schema: dict[str, Any]) -> str:
    """The values that a field accepts, in words. A quantity's schema has its own description."""
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
        if schema["enum"] == list(RECEIVERS):
            return "a [receiver](receivers.md)"
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
