# SPDX-License-Identifier: Apache-2.0
"""The files of ``reports/atlas``: YAML that becomes sections, with errors that name file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from howdah.errors import ProfileError
from howdah.profile.field import Section
from howdah.profile.override import dotted
from howdah.profile.source import Document, parse_yaml

_Section = TypeVar("_Section", bound=Section)
Keys = tuple[str | int, ...]  # of a value in its file


def yaml_of(file: Path) -> tuple[Any, dict[Keys, str]]:
    """What a file holds, and the place of each value. Raises ProfileError."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ProfileError(f"cannot be read: {error.strerror}", where=str(file)) from error
    return parse_yaml(text, str(file))


def items_of(file: Path) -> list[tuple[Any, Document, Keys]]:
    """The items of a file that is a list. Raises ProfileError."""
    data, places = yaml_of(file)
    if not isinstance(data, list):
        raise ProfileError("expected a list", where=str(file))
    document = Document({}, places)
    return [(item, document, (index,)) for index, item in enumerate(data)]


def section_of(model: type[_Section], data: Any, document: Document, path: Keys) -> _Section:
    """A section of what stands at ``path``. Raises ProfileError that names the line."""
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        inner = tuple(first["loc"])
        name = dotted(inner)
        raise ProfileError(f"{name}: {first['msg'].lower()}", where=document.place((*path, *inner))) from None
