# SPDX-License-Identifier: Apache-2.0
"""Reads the files of ``reports/atlas``: YAML to sections, with file and line in errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from howdah.errors import ProfileError
from howdah.profile.field import Section
from howdah.profile.override import dotted
from howdah.profile.source import Document, parse_yaml

_Section = TypeVar("_Section", bound=Section)
Keys = tuple[str | int, ...]  # path of a value in its file


def yaml_of(file: Path) -> tuple[Any, dict[Keys, str]]:
    """Return the content of a file, and the place of each value. Raise ProfileError."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ProfileError(f"cannot be read: {error.strerror}", where=str(file)) from error
    return parse_yaml(text, str(file))


def items_of(file: Path) -> list[tuple[Any, Document, Keys]]:
    """Return the items of a file that is a list. Raise ProfileError."""
    data, places = yaml_of(file)
    if not isinstance(data, list):
        raise ProfileError("expected a list", where=str(file))
    document = Document({}, places)
    return [(item, document, (index,)) for index, item in enumerate(data)]


def section_of(model: type[_Section], data: Any, document: Document, path: Keys) -> _Section:
    """Return the value at ``path`` as a section. Raise ProfileError with its line."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        inner = tuple(first["loc"])
        name = dotted(inner)
        raise ProfileError(f"{name}: {first['msg'].lower()}", where=document.place((*path, *inner))) from None
