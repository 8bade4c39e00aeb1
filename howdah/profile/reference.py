# SPDX-License-Identifier: Apache-2.0
"""The profile format's JSON Schema and reference page, made from the models; ``--check`` says whether they are current.

``python -m howdah.profile.reference [--check] [docs]``

Editors and other validators read the schema. It knows every name that howdah ships: algorithms, metrics, entries of the
atlas. What only the whole profile tells (whether an axis is swept, whether a flow exists) is left to ``howdah plan``.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from howdah.algorithm import ALGORITHMS, PLUG_INS, Algorithm
from howdah.compact import compact_json
from howdah.default import DEFAULT_KERNEL, KERNEL_FORM
from howdah.generated import docs_of, keep_current
from howdah.metric import known_entries, known_metrics
from howdah.place import DOCS
from howdah.profile.experiment import ExperimentSections
from howdah.profile.field import QUANTITIES, ShortSection
from howdah.profile.figure import ColumnSection
from howdah.profile.model import Scenario
from howdah.profile.queue import HostQueueSection, QueueSection
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
    lines += ["", *_Sections().lines(), *_names()]
    lines += [f"## {TITLE}", "The message about a profile that asks for one of these names what comes nearest.", ""]
    lines += ["| there is no | nearest |", "|---|---|"]
    lines += [f"| {row.what} | {row.nearest} |" for row in unsayable_table()]
    lines.append("")
    return "\n".join(lines)


def _names() -> list[str]:
    """Algorithms with the kernel's name and parameters where these differ, and receivers; their own pages describe
    them."""
    over_reno = [one for plug_in in PLUG_INS for one in plug_in.algorithms() if one.base == "reno"]
    own = {one.name for plug_in in PLUG_INS for one in plug_in.algorithms()}
    tree = [one for one in ALGORITHMS.values() if one.name not in own]
    return [
        "## Algorithms and receivers",
        "The kernel's own algorithms are:",
        *_wrapped(map(_named, tree)),
        "",
        "[Those of this project](algorithms.md) are, with the kernel's name and their parameters:",
        *_wrapped(map(_named, over_reno)),
        "",
        "These are over Reno's congestion avoidance, and each with `-cubic` behind its name is over CUBIC's.",
        "Any other name must be declared under `algorithms`, or be what a `modules` entry registers.",
        "A `modules` entry takes the place of what is named here: with `tcp_cubic.c`, `cubic` is that file's.",
        "",
        "[Receivers](receivers.md) are:",
        *_wrapped(f"`{receiver.name}`" for receiver in RECEIVERS.values()),
        "",
    ]


def _named(algorithm: Algorithm) -> str:
    parts = [] if algorithm.kernel == algorithm.name else [algorithm.kernel]
    parts += [f"{algorithm.module}.{key}={value}" for key, value in algorithm.parameters.items()]
    return f"`{algorithm.name}`" + (f" ({', '.join(f'`{part}`' for part in parts)})" if parts else "")


def _wrapped(names: Iterable[str]) -> list[str]:
    return textwrap.wrap(", ".join(names) + ".", _COLUMNS, break_on_hyphens=False, break_long_words=False)


_COLUMNS = 120
_HEADER = ["| field | value | default | meaning |", "|---|---|---|---|"]
_SMALL = 5  # the most fields of a section that is told in the table of the one that has it
_SHORT = 250  # the most characters of its text
_PLACES = 4  # the most places of a section that its title has
_ALIKE = 3  # the fewest rows of another section that are worth a reference


class _Sections:
    """What the page says of each section of a profile, each once."""

    def __init__(self) -> None:
        _, self._definitions = raw_schema()
        self._places: dict[type[BaseModel], list[str]] = {}
        for path, model in _places(Scenario, ""):
            self._places.setdefault(model, []).append(path)
        self._told: list[tuple[str, set[str]]] = []

    def lines(self) -> list[str]:
        lines = ["## The profile", *_HEADER, *self._rows(Scenario, ""), ""]
        choices: set[str] = set()
        for model, paths in self._places.items():
            if issubclass(model, QueueSection | HostQueueSection):
                title = paths[0].partition(": ")[0]
                if title not in choices:
                    choices.add(title)
                    lines += self._choice(title)
            elif paths[0] and not self._is_small(model):
                shortest = sorted(paths, key=len)[: len(paths) if len(paths) <= _PLACES else 2]
                lines += [f"## {', '.join(f'`{path}`' for path in shortest)}", _text(model), ""]
                same, rows = self._unlike(paths[0], self._rows(model, ""))
                lines += [same, ""] if same else []
                lines += [*_HEADER, *rows, ""] if rows else []
        return lines

    def _is_small(self, model: type[BaseModel]) -> bool:
        """Whether a section has few fields below one other, and its fields are plain or small as well."""
        places = self._places[model]
        return (
            len({path.rpartition(".")[0] for path in places}) == 1
            and len(places) * len(fields := fields_of(model, whole=True)) <= _SMALL
            and len(text := _text(model)) <= _SHORT
            and "\n\n" not in text
            and all(inner is None or self._is_small(inner) for inner in (_inner(info)[1] for _, info in fields))
        )

    def _rows(self, model: type[BaseModel], prefix: str) -> list[str]:
        rows = []
        for name, info in fields_of(model, whole=True):
            suffix, inner = _inner(info)
            small = inner is not None and self._is_small(inner)
            further = _further(inner) if small and inner else ""
            schema = self._definitions[model.__name__]["properties"][name]
            rows.append(_row(f"{prefix}{name}", info, schema, further))
            if small and inner:
                rows += self._rows(inner, f"{prefix}{name}{suffix}.")
        return rows

    def _unlike(self, path: str, rows: list[str]) -> tuple[str, list[str]]:
        """A sentence on those rows that another section has, too, or none; and the others."""
        found = [(there, [row for row in rows if row in told]) for there, told in self._told]
        place, same = max(found, key=_number, default=("", []))
        self._told.append((path, set(rows)))
        if len(same) < _ALIKE:
            return "", rows
        others = [row for row in rows if row not in same]
        names = ", ".join(row.split(" | ")[0].removeprefix("| ") for row in same)
        return f"As in `{place}`: {names}.", others

    def _choice(self, title: str) -> list[str]:
        """The kinds of a queue, and their parameters; a parameter that several kinds have is one row."""
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
    """How a field's members are written, and the section that each of them is."""
    shape, inner = shape_of(info.annotation)
    suffix = ""
    if shape in ("list", "mapping"):
        suffix = "[…]" if shape == "list" else ".<name>"
        shape, inner = shape_of(inner)
    return suffix, inner if shape == "section" else None


def _further(model: type[BaseModel]) -> str:
    """What a section's text says beyond the meaning of its field: of a line, what follows the first sentence."""
    text = _text(model)
    return text.replace("\n", " ") if "\n" in text else text.partition(". ")[2]


def _text(model: type[BaseModel]) -> str:
    return inspect.cleandoc(model.__doc__ or "").replace("``", "`")


def _row(name: str, info: Any, schema: dict[str, Any], further: str = "") -> str:
    fixed = " *(fixed)*" if is_fixed(info) and shape_of(info.annotation)[0] == "value" else ""
    meaning = f"{info.description}. {further}" if further else info.description
    return f"| `{name}` | {_value(schema)}{fixed} | {_default(info)} | {meaning} |"


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
    return words if first[-1] in "s0123456789" else f"{first}s{space}{rest}"


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
