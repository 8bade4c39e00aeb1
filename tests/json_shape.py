# SPDX-License-Identifier: Apache-2.0
"""What a command printed against the schema of its shape, by a validator that is not ours."""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from howdah.command.answer import SHAPE
from howdah.command.shapes import schema

SEEN: set[str] = set()


@cache
def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schema(name))


def check_shape(value: dict[str, Any]) -> str:
    """The name of the shape. Raises AssertionError where the object is not of it."""
    name = str(value[SHAPE]).partition("/")[0]
    problems = [
        f"{'.'.join(map(str, error.path))}: {error.message[:300]}" for error in validator(name).iter_errors(value)
    ]
    assert not problems, f"{name}: {problems}"
    SEEN.add(name)
    return name
