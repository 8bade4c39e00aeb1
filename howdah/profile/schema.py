# SPDX-License-Identifier: Apache-2.0
"""The profile format as JSON Schema, generated from the models, for editors and other validators.

It includes every name that howdah ships: algorithms, metrics, atlas entries. Rules that depend on the whole profile
(whether an axis is swept, whether a flow exists) are left to ``howdah plan``.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from howdah.algorithm import ALGORITHMS
from howdah.default import DEFAULT_KERNEL, KERNEL_FORM
from howdah.metric import known_entries, known_metrics
from howdah.place import DOCS
from howdah.profile.experiment import ExperimentSections
from howdah.profile.field import ShortSection
from howdah.profile.figure import ColumnSection
from howdah.profile.model import Scenario
from howdah.profile.sweep import shape_of

SCHEMA_NAME = "profile.schema.json"
SCHEMA = DOCS / SCHEMA_NAME  # exists in a checkout and in a wheel

_INTERNAL_KEYS = ("x-value", "x-shared", "title")
_OWN_NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
_FIELD_REST = r"(\.[^.]+)*"


class _Generator(GenerateJsonSchema):
    # Defaults of quantities are added below, as texts (x-default).
    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012 - as the base class has it


def raw_schema() -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The models' combined schema, and the definition of each model by class name. The sections of
    ``ExperimentSections`` are top-level fields, like those of ``Scenario``."""
    schema = Scenario.model_json_schema(by_alias=True, schema_generator=_Generator)
    whole = ExperimentSections.model_json_schema(by_alias=True, schema_generator=_Generator)
    definitions = {**schema.get("$defs", {}), **whole.get("$defs", {})}
    schema = {**schema, "properties": {**schema["properties"], **whole["properties"]}, "$defs": definitions}
    return schema, {"Scenario": schema, **definitions}


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a profile. Fields that can be swept also accept a list."""
    schema, definitions = raw_schema()
    models = {model.__name__: model for model in _sections()}
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
    """The fields of a section by name; ``whole`` adds the fields of ``ExperimentSections`` to those of ``Scenario``."""
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
    """The schemas of the values that may replace a section with a short form."""
    own = section.model_json_schema(by_alias=True)["properties"][section.short]
    plain = _field_schema(own, section.model_fields[section.short], shared)
    forms = plain.get("anyOf", [plain])
    return [form for form in forms if form != {"type": "null"}]


def plain_schema(schema: Any, shared: dict[str, Any]) -> Any:
    """The schema without this package's own keys. Shared definitions are added to ``shared``."""
    if isinstance(schema, list):
        return [plain_schema(item, shared) for item in schema]
    if isinstance(schema, dict):
        if "x-names" in schema:
            return {"$ref": f"#/$defs/{schema['x-names']}"}
        plain = {key: plain_schema(item, shared) for key, item in schema.items() if key not in _INTERNAL_KEYS}
        if "x-shared" in schema:
            name = schema["x-shared"]
            assert shared.setdefault(name, plain) == plain, f"two definitions are called {name}"
            return {"$ref": f"#/$defs/{name}"}
        return plain
    return schema


def _sections() -> list[type[BaseModel]]:
    """Every model, in order of first use."""
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
    """The definitions that ``x-names`` refers to."""
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
    """Require that a dotted name in ``quick``, a case or a control's ``set`` begins with a field of the profile."""
    names = {"pattern": f"^({'|'.join(Scenario.model_fields)}){_FIELD_REST}$"}
    if section == "quick":
        schema["properties"]["quick"]["propertyNames"] = names
    elif section == "case":
        for settings in schema["properties"]["case"]["patternProperties"].values():
            settings |= {"propertyNames": names, "minProperties": 1}
    else:
        schema["$defs"]["ControlSection"]["properties"]["set"] |= {"propertyNames": names, "minProperties": 1}


def _shipped_algorithms_alone() -> dict[str, Any]:
    """Require a shipped algorithm unless the profile has ``modules`` or ``algorithms``."""
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
