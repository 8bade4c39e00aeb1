# SPDX-License-Identifier: Apache-2.0
"""Models of files that may come from other people. A value fits its model, or the error names its place in the file."""

from __future__ import annotations

import dataclasses
import json
from functools import cache
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from howdah.errors import RecordError

Kind = TypeVar("Kind")
Scalar = str | int | float | bool | None  # a value of an axis
HINT = "The file is damaged, or another version of howdah wrote it."


class FilePart(BaseModel):
    """Part of a file. Fields that this version does not know are kept."""

    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)

    @classmethod
    def made_of(cls, source: object, **more: Any) -> Self:
        """Make a part from the attributes of ``source`` that have the names of its fields, and from ``more``."""
        own = {name: getattr(source, name) for name in cls.model_fields if name not in more and hasattr(source, name)}
        return cls(**own, **more)

    def plain(self) -> dict[str, Any]:
        """The part as the file has it, without fields that were not set."""
        return self.model_dump(exclude_unset=True)


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """The validator for values of a type; made once."""
    return TypeAdapter(kind)


def checked(kind: type[Kind], value: Any, path: Path) -> Kind:
    """Validate a value. Raise RecordError, which names the place of what is wrong."""
    reads = adapter(cast("Any", kind))
    try:
        # For a dataclass, types are only checked strictly if requested, and only for JSON values.
        found: Kind = (
            reads.validate_json(json.dumps(value), strict=True)
            if dataclasses.is_dataclass(kind)
            else reads.validate_python(value)
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        shown = repr(first["input"])
        shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
        what = f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}, not {shown}" if place else first["msg"]
        raise RecordError(what, where=str(path), hint=HINT) from None
    return found
