# SPDX-License-Identifier: Apache-2.0
"""The profile format's JSON Schema and reference page, made from the models; ``--check`` says whether they are current.

``python -m howdah.profile.reference [--check] [docs]``

Editors and other validators read the schema. It knows every name that howdah ships: algorithms, metrics, entries of the
atlas. What only the whole profile tells (whether an axis is swept, whether a flow exists) is left to ``howdah plan``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from howdah.algorithm import ALGORITHMS
from howdah.compact import compact_json
from howdah.default import DEFAULT_KERNEL, KERNEL_FORM
from howdah.generated import docs_of, keep_current
from howdah.metric import known_entries, known_metrics
from howdah.place import DOCS
from howdah.profile.experiment import ExperimentSections
from howdah.profile.field import QUANTITIES, ShortSection
from howdah.profile.figure import ColumnSection
from howdah.profile.model import Scenario
from howdah.profile.queue import QueueSection
from howdah.profile.sweep import MOST_CELLS, is_fixed, shape_of
from howdah.profile.unsayable import TITLE
from howdah.profile.unsayable import table as unsayable_table
from howdah.receiver import RECEIVERS

SCHEMA_NAME = "profile.schema.json"
SCHEMA = DOCS / SCHEMA_NAME  # in a checkout and in a wheel

_OURS = ("x-value", "x-shared", "title")
_OWN_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
_FIELD_REST = r"(\.[^.]+)*"


class _Generator(GenerateJsonSchema):
    # Defaults that are quantities are given as texts (x-default) below.
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as the base class has it


def raw_schema() -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The models' own schema, and the definition of each model by its class name. The sections of the experiment stand
    at the top of a profile like those of the scenario."""
    schema = Scenario.model_json_schema(by_alias=True, schema_generator=_Generator)
    whole = ExperimentSections.model_json_schema(by_alias=True, schema_generator=_Generator)
    definitions = {**schema.get("$defs", {}), **whole.get("$defs", {})}
    schema = {**schema, "properties": {**schema["properties"], **whole["properties"]}, "$defs": definitions}
    return schema, {"Scenario": schema, **definitions}


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of a profile; fields that can be swept also accept a list."""
    schema, definitions = raw_schema()
    models = {model.__name__: model for model in _models()}
    shared: dict[str, Any] = {}
    for name, definition in definitions.items():
        for key, info in fields_of(models[name], whole=True):
            definition["properties"][key] = _field_schema(definition["properties"][key], info, shared)
    schema["$defs"] = {**schema["$defs"], **listed_names(), **shared}
    for section in ("quick", "controls", "case"):
        _restrict_settings(schema, section)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "howdah profile",
        **{key: value for key, value in schema.items() if key != "title"},
        **_shipped_algorithms_alone(),
    }


def fields_of(model: type[BaseModel], *, whole: bool = False) -> list[tuple[str, Any]]:
    """The fields of a section by their names; with ``whole`` those of the profile include the experiment's."""
    fields = [(info.alias or name, info) for name, info in model.model_fields.items()]
    return [*fields, *fields_of(ExperimentSections)] if whole and model is Scenario else fields


def _field_schema(schema: dict[str, Any], info: Any, shared: dict[str, Any]) -> dict[str, Any]:
    schema = dict(schema)
    fixed = schema.pop("x-fixed", False)
    default = schema.pop("x-default", None)
    outer: dict[str, Any] = {key: schema.pop(key) for key in ("description", "default") if key in schema}
    schema = plain_schema(schema, shared)
    if default is not None:
        outer["default"] = default
    shape, inner = shape_of(info.annotation)
    if shape == "section" and issubclass(inner, ShortSection):
        return {**outer, "anyOf": [schema, *_short_forms(inner, shared)]}
    if shape == "mapping" and (item := shape_of(inner))[0] == "section" and issubclass(item[1], ShortSection):
        schema["additionalProperties"] = {"anyOf": [schema["additionalProperties"], *_short_forms(item[1], shared)]}
    if shape == "list" and (item := shape_of(inner))[0] == "section" and issubclass(item[1], ShortSection):
        own = item[1].model_json_schema(by_alias=True)["properties"][item[1].short]
        short = {
            key: value for key, value in plain_schema(own, shared).items() if key in ("type", "anyOf", "$ref", "enum")
        }
        return {**outer, **schema, "items": {"anyOf": [schema["items"], short]}}
    if shape == "choice":
        schema = {"anyOf": [{"enum": list(inner)}, *schema["oneOf"]]}
    if not fixed and shape in ("value", "choice"):
        schema = {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1}]}
    return {**outer, **schema}


def _short_forms(section: type[ShortSection], shared: dict[str, Any]) -> list[dict[str, Any]]:
    """What may stand in place of a section with a short form."""
    own = section.model_json_schema(by_alias=True)["properties"][section.short]
    plain = _field_schema(own, section.model_fields[section.short], shared)
    forms = plain.get("anyOf", [plain])
    return [form for form in forms if form != {"type": "null"}]


def plain_schema(schema: Any, shared: dict[str, Any]) -> Any:
    """A schema without what only this package understands. Definitions that fields share are added to ``shared``."""
    if isinstance(schema, list):
        return [plain_schema(item, shared) for item in schema]
    if isinstance(schema, dict):
        if "x-names" in schema:
            return {"$ref": f"#/$defs/{schema['x-names']}"}
        plain = {key: plain_schema(item, shared) for key, item in schema.items() if key not in _OURS}
        if "x-shared" in schema:
            name = schema["x-shared"]
            assert shared.setdefault(name, plain) == plain, f"two definitions are called {name}"
            return {"$ref": f"#/$defs/{name}"}
        return plain
    return schema


def _models() -> list[type[BaseModel]]:
    """Every model, in the order of its first use."""
    found: list[type[BaseModel]] = []
    waiting: list[Any] = [Scenario, ExperimentSections, ColumnSection]
    while waiting:
        shape, inner = shape_of(waiting.pop(0))
        if shape in ("list", "mapping"):
            waiting.insert(0, inner)
        elif shape == "choice":
            waiting = [*inner.values(), *waiting]
        elif shape == "section" and inner not in found:
            found += [] if inner is ExperimentSections else [inner]
            waiting = [info.annotation for info in inner.model_fields.values()] + waiting
    return found


def listed_names() -> dict[str, Any]:
    """What ``x-names`` stands for."""
    known = {"$ref": "#/$defs/KnownAlgorithm"}
    own = {"type": "string", "pattern": _OWN_NAME}
    debian = {"type": "string", "pattern": rf"^{KERNEL_FORM}$"}
    return {
        "KnownAlgorithm": {"description": "an algorithm that howdah ships", "enum": list(ALGORITHMS)},
        "AlgorithmName": {
            "description": "an algorithm that howdah ships, or one of modules or algorithms",
            "anyOf": [known, own],
        },
        "KernelName": {
            "description": "debian-VERSION, debian-VERSION+PATCHES, debian-newest, or the path of a source tree",
            "anyOf": [
                {"enum": [DEFAULT_KERNEL, "debian-newest"]},
                debian,
                {"type": "string", "pattern": "/"},
                {"type": "number"},
            ],
        },
        "MetricName": {"description": "a measure (docs/measures.md)", "enum": list(known_metrics())},
        "AtlasEntry": {"description": "an entry of the atlas", "enum": sorted(known_entries())},
    }


def _restrict_settings(schema: dict[str, Any], section: str) -> None:
    """A dotted name in ``quick``, a case or a control's ``set`` begins with a field of the profile."""
    names = {"pattern": f"^({'|'.join(Scenario.model_fields)}){_FIELD_REST}$"}
    if section == "quick":
        schema["properties"]["quick"]["propertyNames"] = names
    elif section == "case":
        for settings in schema["properties"]["case"]["patternProperties"].values():
            settings |= {"propertyNames": names, "minProperties": 1}
    else:
        schema["$defs"]["ControlSection"]["properties"]["set"] |= {"propertyNames": names, "minProperties": 1}


def _shipped_algorithms_alone() -> dict[str, Any]:
    """Where the profile brings neither modules nor names of its own, every algorithm is one that howdah ships."""
    known = {"$ref": "#/$defs/KnownAlgorithm"}
    one = {"anyOf": [known, {"type": "null"}]}
    swept = {"properties": {"algorithm": {"anyOf": [one, {"type": "array", "items": one}]}}}
    names = {
        **swept["properties"],
        **{section: {"items": swept} for section in ("flows", "background", "groups")},
        "cross_check": {"properties": {"algorithm": one}},
    }
    alike = {"additionalProperties": {"properties": {"like": one}}, "maxProperties": 1}
    return {
        "if": {"anyOf": [{"required": ["modules"]}, {"required": ["algorithms"]}]},
        "then": {
            "anyOf": [
                {"required": ["modules"]},
                {"properties": {"algorithms": alike}},
                {"properties": {"algorithms": {"minProperties": 2}}},
            ]
        },
        "else": {"properties": names},
    }


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
