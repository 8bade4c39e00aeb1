# SPDX-License-Identifier: Apache-2.0
"""Whether what was swept made a difference at all: equal numbers at each value say that it did nothing."""

from __future__ import annotations

from howdah.number import listed
from howdah.report.plot.swept import field_name
from howdah.report.repeated import DETECTED
from howdah.report.subject import Subject

_Same = tuple[object, ...]


def without_effect(said: list[Subject]) -> list[str]:
    """A sentence for each swept field, and one for the variants, whose values all gave the same numbers."""
    sentences = []
    for name in dict.fromkeys(name for each in said for name in each.axes):
        values = _if_equal([(_rest(each, name), each.axes.get(name, ""), each) for each in said])
        if values:
            what = field_name(name)
            what = what if "_" in what or "." in what else f"{what[0].upper()}{what[1:]}"  # a name stays as it is
            sentences.append(f"{what} made no difference: {listed(values)} give the same numbers.")
    variants = _if_equal([((each.name, *each.axes.items()), each.variant, each) for each in said])
    if variants:
        sentences.append(f"{listed(variants)} give the same numbers{' at every point' if said[0].axes else ''}.")
    return sentences


def _rest(each: Subject, name: str) -> _Same:
    return (each.variant, each.name, *(item for item in each.axes.items() if item[0] != name))


def _if_equal(subjects: list[tuple[_Same, str, Subject]]) -> list[str]:
    """The values, where there are several and each gives the same as the others in all that else is the same."""
    rows: dict[_Same, dict[str, object]] = {}
    for rest, value, each in subjects:
        whole = {name: numbers for name, numbers in each.whole.numbers.items() if name != DETECTED}  # no outcome
        rows.setdefault(rest, {})[value] = (each.of.numbers, each.of.texts, whole)
    values = list(dict.fromkeys(value for row in rows.values() for value in row))
    if len(values) < 2 or not any(each.of.numbers for _, _, each in subjects):
        return []
    equal = all(len(row) == len(values) and all(one == row[values[0]] for one in row.values()) for row in rows.values())
    return values if equal else []
