# SPDX-License-Identifier: Apache-2.0
"""Turn pydantic's findings into one ProfileError: the place, what was expected, and the nearest valid name.

The hint for an unknown field or value follows from the fields at its place, or from where the field exists.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from howdah.errors import ProfileError, nearest
from howdah.profile.end import BUFFER_TRIPLE
from howdah.profile.field import FieldError
from howdah.profile.model import EXPERIMENT_NAME, Scenario
from howdah.profile.override import dotted
from howdah.profile.queue import TAG
from howdah.profile.source import Document, Path_
from howdah.profile.sweep import shape_of
from howdah.profile.unsayable import section_name, unsayable

_RENAMED = {"lab": "machines"}  # former names of sections
# Names of fields in other tools.
_CALLED = {
    "bandwidth": "rate",
    "bw": "rate",
    "cc": "algorithm",
    "congestion_control": "algorithm",
    "delay": "rtt",
    "initcwnd": "initial_window",
    "initrwnd": "initial_receive_window",
    "jitter": "delay_variation",
    "latency": "rtt",
    "queue_length": "buffer",
    "queue_size": "buffer",
}
SURE = 0.8  # similarity from which a name counts as a typing error
_LIKELY = 0.65
_MOST_HOMES = 3


def hint_for_field(name: str, value: Any, section: Path_, known: list[str], root: type[BaseModel]) -> str:
    """The hint for a field that its section does not have. ``known`` are the section's fields; ``root`` is the model
    that was read.

    A name that is a word of exactly one field's name is taken for that field. A field of that name in another section
    is a better hint than a field with a similar spelling.
    """
    if (same := _same_field(name, section, known)) is not None:
        return f"did you mean {same}?"
    lacking = unsayable(name, section) or (unsayable(value, section) if isinstance(value, str) else None)
    if lacking is not None:
        return lacking.hint()
    words = [each for each in known if name.lower() in each.split("_")]
    if len(words) == 1:
        return f"did you mean {words[0]}?"
    homes = _sections_with(root, name, section)
    if homes and not section and len(homes[0]) == 1 and isinstance(homes[0][0], str):
        return f"did you mean {homes[0][0]}.{name}?"
    if homes:
        return f"{name} is a field of {_listed([*dict.fromkeys(map(section_name, homes))][:_MOST_HOMES])}"
    likely = nearest(name, known, _LIKELY)
    return f"did you mean {likely}?" if likely else f"known fields: {', '.join(known)}"


def _same_field(name: str, section: Path_, known: list[str]) -> str | None:
    """The field that the name means for certain: its new name, a typing error, or another tool's name of it."""
    renamed = None if section else _RENAMED.get(name)
    called = _CALLED.get(name.lower())
    return renamed or nearest(name, known, SURE) or (called if called in known else None)


def hint_for_value(value: Any, path: Path_) -> str | None:
    """The hint for a value that its field does not accept, if the intention is known."""
    name = str(path[-1]) if path else ""
    if isinstance(value, list):
        if name == "path":
            return "several paths are a sweep of path.like, such as path: {like: [paths/geo, paths/leo]}"
        lacking = unsayable(f"several {name}", path[:-1])
        return lacking.hint() if lacking else None
    lacking = unsayable(value, path[:-1]) if isinstance(value, str) else None
    return lacking.hint() if lacking else None


def field_names(model: type[BaseModel]) -> list[str]:
    return [info.alias or name for name, info in model.model_fields.items()]


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _sections_with(root: type[BaseModel], name: str, section: Path_) -> list[Path_]:
    """Paths of the sections that have a field of that name: first those in the same top-level section, then the least
    deep.

    Position 0 means every list member. A kind of section that occurs in several places is listed once.
    """
    found: dict[type[BaseModel], Path_] = {}
    for path, model in sorted(_sections(root, ()), key=lambda each: (each[0][:1] != section[:1], len(each[0]))):
        if path and name in field_names(model):
            found.setdefault(model, path)
    return list(found.values())


def _sections(model: type[BaseModel], path: Path_) -> Iterator[tuple[Path_, type[BaseModel]]]:
    yield path, model
    for name, info in model.model_fields.items():
        below: Path_ = (*path, info.alias or name)
        shape, inner = shape_of(info.annotation)
        if shape == "list":
            below = (*below, 0)
            shape, inner = shape_of(inner)
        for section in inner.values() if shape == "choice" else [inner] if shape == "section" else []:
            yield from _sections(section, below)


_MOST_SHOWN = 6
_ORDER = {"extra_forbidden": 0, "missing": 2}  # all other findings: 1
_PLAIN_TYPES = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a mapping of names to values",
    "model_type": "a mapping of fields",
    "model_attributes_type": "a mapping of fields",
}
# Descriptions of patterns for messages.
_FORMS = {
    BUFFER_TRIPLE: "LEAST INITIAL LARGEST in bytes, such as 4096 131072 6291456, or fixed",
    EXPERIMENT_NAME: "of a name: at most 63 lower-case letters, digits, '-', '_' and '.', such as my-path",
}


def profile_error(
    error: ValidationError,
    document: Document,
    chosen: dict[Path_, int],
    model: type[BaseModel] = Scenario,
    beside: tuple[str, ...] = (),
) -> ProfileError:
    """Describe the findings; unknown names come first because they often cause the others.

    ``model`` is the model that was read; ``beside`` are top-level names that other models read.
    """
    known = _Known(model, beside)
    items = sorted(error.errors(include_url=False), key=lambda item: _ORDER.get(item["type"], 1))
    # Describe only a few: searching the nearest name for thousands takes seconds.
    findings = [_describe(item, document, chosen, known) for item in items[:_MOST_SHOWN]]
    where, what, hint = findings[0]
    notes = [hint] if hint else []
    notes += [f"also {place}: {text}" for place, text, _ in findings[1:]]
    if len(items) > _MOST_SHOWN:
        notes.append(f"and {len(items) - _MOST_SHOWN} more")
    return ProfileError(what, where=where, hint="\n  ".join(notes) or None)


@dataclass(frozen=True)
class _Known:
    """The model and names to search for a nearest name."""

    model: type[BaseModel]
    beside: tuple[str, ...]

    def kinds(self, path: Path_) -> list[str]:
        """The kinds of the choice at that place."""
        shape, inner = shape_of(_annotation_at(self.model, path))
        return list(inner) if shape == "choice" else []

    def at(self, path: Path_) -> list[str]:
        return [*_names_at(self.model, path), *(self.beside if not path else ())]


def _describe(item: Any, document: Document, chosen: dict[Path_, int], names: _Known) -> tuple[str, str, str | None]:
    """The place, what is wrong, and a hint."""
    location: Path_ = tuple(item["loc"])
    path = _without_kinds(names.model, location)
    kind, context, value = item["type"], item.get("ctx", {}), item["input"]
    cause = context.get("error")
    if isinstance(cause, FieldError):
        path += cause.path
    name = dotted(path)
    where = _place(document, path, chosen)
    if kind == "extra_forbidden":
        known, parent = names.at(location[:-1]), dotted(path[:-1])
        what = f"there is no field {str(path[-1])!r}" + (f" in {parent}" if parent else "")
        return where, what, hint_for_field(str(path[-1]), value, path[:-1], known, names.model)
    if kind == "missing":
        parent = dotted(path[:-1])
        return where, f"the field {str(path[-1])!r} is missing" + (f" in {parent}" if parent else ""), None
    if kind == "union_tag_not_found":
        kinds = ", ".join(names.kinds(location))
        return where, f"the field {TAG!r} is missing in {name}", f"the kinds: {kinds}"
    if kind == "union_tag_invalid":
        context, value, kind = {"expected": context["expected_tags"]}, context["tag"], "literal_error"
    if kind == "literal_error":
        expected = str(context["expected"]).replace("'", "")
        near = nearest(str(value), expected.replace(" or ", ", ").split(", ")) if isinstance(value, str) else None
        hint = hint_for_value(value, path) or (f"did you mean {near}?" if near else None)
        return where, f"{name}: expected {expected}, not {_shown(value)}", hint
    if cause is not None:
        return where, f"{name}: {cause}" if name else str(cause), hint_for_value(value, path)
    if kind in _PLAIN_TYPES:
        fields = names.at(location)
        hint = f"its fields: {', '.join(fields)}" if fields else None
        return where, f"{name}: expected {_PLAIN_TYPES[kind]}, not {_shown(value)}", hint_for_value(value, path) or hint
    if kind == "string_pattern_mismatch":
        form = _FORMS.get(context["pattern"], context["pattern"])
        return where, f"{name}: {_shown(value)} does not have the form {form}", hint_for_value(value, path)
    return where, f"{name}: {item['msg'][0].lower()}{item['msg'][1:]}, not {_shown(value)}", None


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _place(document: Document, path: Path_, chosen: dict[Path_, int]) -> str:
    index = chosen.get(path)
    return document.place(path if index is None else (*path, index))


def _without_kinds(root: type[BaseModel], location: Path_) -> Path_:
    """The path without the kinds that pydantic adds after a field with several kinds."""
    choices = [shape_of(_annotation_at(root, location[:length]))[0] == "choice" for length in range(len(location))]
    return tuple(part for part, is_kind in zip(location, choices, strict=True) if not is_kind)


def _names_at(root: type[BaseModel], path: Path_) -> list[str]:
    """Names of the fields of the section at ``path``; empty if it is a value."""
    shape, inner = shape_of(_annotation_at(root, path))
    return field_names(inner) if shape == "section" else []


def _annotation_at(root: type[BaseModel], path: Path_) -> Any:
    """The type at ``path``, or None. ``path`` has the kinds that pydantic adds after a field with several kinds."""
    model: Any = root
    for part in path:
        shape, inner = shape_of(model)
        if shape == "section":
            model = next(
                (info.annotation for name, info in inner.model_fields.items() if part == (info.alias or name)), None
            )
        elif shape == "choice":
            model = inner.get(part)
        else:
            model = inner if shape in ("list", "mapping") else None
    return model
