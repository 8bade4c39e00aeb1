# SPDX-License-Identifier: Apache-2.0
"""Cases: combinations of values that belong together, each of which is one value of the axis ``case``."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from howdah.errors import ProfileError
from howdah.profile.dotted import canonical, keys_of
from howdah.profile.source import Document

CASE = "case"
MOST_CASES = 1000
_NAME = r"^[a-z0-9]+(-[a-z0-9]+)*$"


def _settings(value: object) -> object:
    if isinstance(value, dict) and not value:
        raise ValueError("nothing is changed; expected field.field: value")
    return value


AnySettings = Annotated[
    dict[str, Any], WithJsonSchema({"type": "object", "x-value": "mapping of field.field to value"})
]
Settings = Annotated[AnySettings, BeforeValidator(_settings)]
Cases = dict[Annotated[str, Field(pattern=_NAME, max_length=40)], Settings]


def case_names(document: Document) -> tuple[str, ...]:
    """The names of the cases in the order written. Raises ProfileError for one without a name or a setting."""
    cases = document.data[CASE]
    where = document.place((CASE,))
    if not 1 <= len(cases) <= MOST_CASES:
        raise ProfileError(f"case has {len(cases)} cases; expected 1 to {MOST_CASES}", where=where)
    for name, settings in cases.items():
        where = document.place((CASE, name))
        if not isinstance(name, str) or not re.fullmatch(_NAME, name) or len(name) > 40:
            hint = "lower-case words joined by hyphens"
            raise ProfileError(f"case: {name!r} is not a name", where=where, hint=hint)
        if not isinstance(settings, dict) or not settings:
            what = f"case.{name} changes nothing; expected field.field: value"
            raise ProfileError(what, where=where, hint="for example path.rate: 10 Mbit/s")
    return tuple(cases)


def set_by_case(document: Document, field: str) -> tuple[str, str] | None:
    """A case, and its field, that decides all or a part of the field of that dotted name; None if none does."""
    data = document.data
    wanted = keys_of(canonical(data, field))
    cases = data.get(CASE)
    for name, settings in cases.items() if isinstance(cases, dict) else ():
        for each in settings if isinstance(settings, dict) else ():
            keys = keys_of(canonical(data, str(each)))
            shared = min(len(keys), len(wanted))
            if keys[:shared] == wanted[:shared]:
                return str(name), str(each)
    return None
