# SPDX-License-Identifier: Apache-2.0
"""``--quick``: a part of the sweep. Its runs are runs of the full experiment and have the same keys."""

from __future__ import annotations

import copy
from typing import Any

from howdah.errors import ProfileError
from howdah.profile.case import CASE
from howdah.profile.control import axis_key
from howdah.profile.override import field_value, set_field
from howdah.profile.source import Document

REPETITIONS = "repetitions"
CROSS_CHECK = "cross_check"


def apply_quick(document: Document) -> int | None:
    """Set the fields of ``quick:`` in the document. Raises ProfileError for a field that would make other runs.

    Returns how many of the profile's repetitions are left, where that is not for the document to say: a profile of one
    repetition has other runs than the first of several has, which is perturbed.
    """
    fields = document.data.get("quick")
    if not isinstance(fields, dict) or not fields:
        raise ProfileError(
            "this profile has no quick section, so --quick has nothing to leave out",
            where=document.place(()),
            hint="for example quick: {repetitions: 3}",
        )
    check_quick(document)
    left = None
    for name, value in fields.items():
        if name == REPETITIONS and value == 1 and value is not True:  # what is no number is refused where it is read
            left = 1
            continue
        place = ("quick", name)
        where = document.place(place)
        before = field_value(document.data, name)
        set_field(document, name, _as_written(name, before, value), document.below(place) or {(): where}, where)
    return left


def _as_written(name: str, before: Any, value: Any) -> Any:
    """A part of a sweep stays a sweep, and its values are spelled as the sweep spells them: plans hold both."""
    cases = name == CASE and isinstance(before, dict)
    if not isinstance(before, list) and not cases:
        return copy.deepcopy(value)
    wanted = [axis_key(item) for item in (value if isinstance(value, list) else [value])]
    if cases:
        return {name: settings for name, settings in before.items() if axis_key(name) in wanted}
    return [item for item in before if axis_key(item) in wanted]


def check_quick(document: Document) -> None:
    """``quick`` leaves out values of axes and repetitions, and changes nothing else. Raises ProfileError."""
    fields = document.data.get("quick")
    if not isinstance(fields, dict):
        return
    for name, value in fields.items():
        where = document.place(("quick", name))
        before = field_value(document.data, name)
        if name == REPETITIONS:
            _check_repetitions(1 if before is None else before, value, where)
            continue
        if name == CROSS_CHECK and value is None:
            continue
        several = isinstance(before, list) or (name == CASE and isinstance(before, dict))
        full = [axis_key(item) for item in (before if several else [before])]
        for item in value if isinstance(value, list) else [value]:
            if before is None or axis_key(item) not in full:
                what = f"quick sets {name} to {item}, which the full experiment does not have"
                hint = (
                    "it may leave out values of a sweep, and repetitions: its runs are then among those of the "
                    "full experiment"
                )
                raise ProfileError(what, where=where, hint=hint)


def _check_repetitions(full: Any, value: Any, where: str) -> None:
    if not isinstance(full, int) or not isinstance(value, int):
        return  # reading the field says what is wrong with it
    if value > full:
        raise ProfileError(f"quick asks for {value} repetitions, the full experiment for {full}", where=where)
