# SPDX-License-Identifier: Apache-2.0
"""``path.reverse_rate <= 0.1 * path.rate``: what the fields of a candidate must have in common."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from howdah.counterexample.values import Number, read_number
from howdah.errors import ProfileError

_PARTS = re.compile(r"(?P<left>[^<>=]+?)\s*(?P<sign><=|<|>=|>)\s*(?P<right>[^<>=]+)")
_TERM = re.compile(r"(?:(?P<factor>\d+(?:\.\d+)?)\s*\*\s*)?(?P<field>[A-Za-z_][\w.-]*)", re.ASCII)
_SIGNS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "<=": operator.le,
    "<": operator.lt,
    ">=": operator.ge,
    ">": operator.gt,
}


@dataclass(frozen=True)
class Term:
    """A quantity, or a field times a factor."""

    factor: Fraction
    field: str | None
    number: Number | None
    text: str

    def value(self, values: Mapping[str, Number]) -> Number | None:
        found = self.number if self.field is None else values.get(self.field)
        return None if found is None else Number(found.number * self.factor, found.unit)


@dataclass(frozen=True)
class Constraint:
    left: Term
    sign: str
    right: Term

    @property
    def fields(self) -> list[str]:
        return [side.field for side in (self.left, self.right) if side.field is not None]

    def holds(self, values: Mapping[str, Number]) -> bool:
        """False where a field has no value, or both sides have different units."""
        left, right = self.left.value(values), self.right.value(values)
        if left is None or right is None or left.kind != right.kind:
            return False
        return _SIGNS[self.sign](left.base, right.base)


def read_constraint(text: str, where: str) -> Constraint:
    """Raises ProfileError, which says at ``where`` what was expected."""
    match = _PARTS.fullmatch(text.strip())
    if match is None:
        hint = "for example path.reverse_rate <= 0.1 * path.rate, or path.rtt >= 20 ms"
        raise ProfileError(f"a constraint has the form FIELD <= FIELD, not {text!r}", where=where, hint=hint)
    return Constraint(_term(match["left"], where), match["sign"], _term(match["right"], where))


def _term(text: str, where: str) -> Term:
    text = text.strip()
    match = _TERM.fullmatch(text)
    if match is not None:
        return Term(Fraction(match["factor"] or 1), match["field"], None, match["field"])
    number = read_number(text)
    if number is None:
        raise ProfileError(f"{text!r} is neither a field nor a quantity", where=where)
    return Term(Fraction(1), None, number, text)
