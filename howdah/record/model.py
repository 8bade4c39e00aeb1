# SPDX-License-Identifier: Apache-2.0
"""Models of files that may be somebody else's: a value is of its model, or the error names the place in the file."""

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
    """Of a file. Fields that this version does not know are kept."""

    model_config = ConfigDict(extra="allow", strict=True, defer_build=True)

    @classmethod
    def made_of(cls, source: object, **more: Any) -> Self:
        """What the fields of ``source`` say that have the same names, and ``more``."""
        own = {name: getattr(source, name) for name in cls.model_fields if name not in more and hasattr(source, name)}
        return cls(**own, **more)

    def plain(self) -> dict[str, Any]:
        """As the file has it: without what was not set."""
        return self.model_dump(exclude_unset=True)


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """What checks values of a kind; made once."""
    return TypeAdapter(kind)


def checked(kind: type[Kind], value: Any, path: Path) -> Kind:
    """The value as one of the kind. Raises RecordError, which names the place of what is wrong."""
    reads = adapter(cast("Any", kind))
    try:
        # Of a dataclass it checks types strictly where it is told so, and only values of JSON.
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
