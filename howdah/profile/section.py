# SPDX-License-Identifier: Apache-2.0
"""What every section of a profile is made of."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class FieldError(ValueError):
    """A rule that joins several fields is broken; ``path`` says at which field to point."""

    def __init__(self, what: str, *path: str | int) -> None:
        super().__init__(what)
        self.path = path


def fixed(default: Any = ..., **arguments: Any) -> Any:
    """A field that belongs to the whole profile and cannot be swept."""
    return Field(default, json_schema_extra={"x-fixed": True}, **arguments)


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, arbitrary_types_allowed=True)
