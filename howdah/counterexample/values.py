# SPDX-License-Identifier: Apache-2.0
"""The values of a field that a search may try, in order, as written in a profile; and constraints between fields:
``path.reverse_rate <= 0.1 * path.rate``."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from howdah.errors import ProfileError
from howdah.profile.search import VariableSection
from howdah.profile.source import Scalar
from howdah.quantity import DURATION_UNITS, RATE_UNITS, SIZE_UNITS, canonical_unit

MOST_VALUES = 100_000
PARTS = 100  # number of steps of a linear range without a step
GROWTH = Fraction(11, 10)  # ratio of adjacent values of a logarithmic range
_NUMBER = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+))\s*(.*?)\s*", re.ASCII | re.DOTALL)
_FAMILIES: tuple[dict[str, Fraction], ...] = (
    {name: Fraction(factor) for name, factor in RATE_UNITS.items()},
    {name: Fraction(factor) for name, factor in DURATION_UNITS.items()},
    {name: Fraction(factor) for name, factor in SIZE_UNITS.items()},
)
# Preferred units, the largest first.
_BEST = ("Gbit/s", "Mbit/s", "kbit/s", "bit/s", "s", "ms", "us", "GB", "MB", "kB", "B")


@dataclass(frozen=True)
class Number:
    """A number with its unit. ``number`` is in that unit, ``base`` in the base unit of its kind (bit/s, µs, B)."""

    number: Fraction
    unit: str

    @property
    def base(self) -> Fraction:
        return self.number * _factor(self.unit)

    @property
    def kind(self) -> int | str:
        """The kind of unit; numbers can be compared if it is the same."""
        found = [index for index, family in enumerate(_FAMILIES) if self.unit in family]
        return found[0] if found else self.unit.rstrip("s")

    def text(self) -> str | int | float:
        """The number as a profile writes it, in the most readable unit: ``2.5 Mbit/s``; plain if it has no unit."""
        family = next((family for family in _FAMILIES if self.unit in family), {})
        number, unit = self.number, self.unit
        for name in _BEST if number else ():
            if name in family and (fit := self.base / family[name]) >= 1 and (fit * 1000).denominator == 1:
                number, unit = fit, name
                break
        written = decimal(number)
        return f"{written} {unit}" if unit else (int(written) if written.isdecimal() else float(written))


def read_number(written: object) -> Number | None:
    """The number in a profile's value, or None if it is another text."""
    match = None if isinstance(written, bool) else _NUMBER.fullmatch(str(written))
    return Number(Fraction(match[1]), canonical_unit(match[2])) if match else None


def decimal(value: Fraction) -> str:
    """The number as a decimal with at most six decimals."""
    text = f"{float(value):.6f}" if value.denominator != 1 else str(value.numerator)
    return text.rstrip("0").rstrip(".") if "." in text else text


def rounded(value: Fraction, digits: int) -> Fraction:
    """The value rounded to this number of significant digits."""
    if value == 0:
        return value
    power = math.floor(math.log10(abs(value))) - digits + 1
    scale = Fraction(10) ** power
    return round(value / scale) * scale


def values_of(variable: VariableSection, where: Callable[[str], str]) -> list[Scalar]:
    """The values of a variable, in order. ``where`` gives the place of a field of the range. Raises ProfileError."""
    if variable.values is not None:
        return list(dict.fromkeys(variable.values))
    assert variable.from_ is not None
    assert variable.to is not None
    low, high = _bound(variable.from_, where("from")), _bound(variable.to, where("to"))
    high = _in_unit_of(high, low, where("to"))
    if high.number < low.number:
        raise ProfileError(f"the range is empty: {variable.to} is less than {variable.from_}", where=where("to"))
    if variable.scale == "log":
        return _logarithmic(low, high, where("from"))
    step = (high.number - low.number) / PARTS
    if variable.step is not None:
        step = _in_unit_of(_bound(variable.step, where("step")), low, where("step")).number
    elif not low.unit and low.number.denominator == high.number.denominator == 1:
        step = Fraction(max(1, math.ceil(step)))  # a field that counts has whole numbers
    if step <= 0 < high.number - low.number:
        raise ProfileError("a step must be larger than 0", where=where("step"))
    if step > high.number - low.number > 0:
        what = f"a step of {variable.step} is longer than the range"
        raise ProfileError(what, where=where("step"))
    count = int((high.number - low.number) / step) + 1 if step else 1
    if count > MOST_VALUES:
        what = f"the range has {count} values, more than {MOST_VALUES}"
        raise ProfileError(what, where=where("step"), hint="give a larger step, or scale: log")
    return [Number(low.number + index * step, low.unit).text() for index in range(count)]


def _logarithmic(low: Number, high: Number, where: str) -> list[Scalar]:
    if low.number <= 0:
        raise ProfileError("a logarithmic range must begin above 0", where=where)
    found = [low.number]
    while (following := rounded(low.number * GROWTH ** len(found), 2)) < high.number:
        found.append(max(following, found[-1]))
    counted = not low.unit and low.number.denominator == 1
    texts = [Number(Fraction(round(value)) if counted else value, low.unit).text() for value in [*found, high.number]]
    return list(dict.fromkeys(texts))


def _bound(written: str, where: str) -> Number:
    found = read_number(written)
    if found is None:
        raise ProfileError(f"expected a number with its unit, not {written!r}", where=where)
    return found


def _in_unit_of(value: Number, other: Number, where: str) -> Number:
    if value.unit == other.unit:
        return value
    if value.kind != other.kind:
        what = f"{decimal(value.number)} {value.unit} and {decimal(other.number)} {other.unit} have different units"
        raise ProfileError(what, where=where)
    return Number(value.base / _factor(other.unit), other.unit)


def _factor(unit: str) -> Fraction:
    return next((family[unit] for family in _FAMILIES if unit in family), Fraction(1))


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
    """One side of a constraint: a quantity, or a field times a factor."""

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
        """Whether the constraint holds. False if a field has no value, or the sides have different units."""
        left, right = self.left.value(values), self.right.value(values)
        if left is None or right is None or left.kind != right.kind:
            return False
        return _SIGNS[self.sign](left.base, right.base)


def read_constraint(text: str, where: str) -> Constraint:
    """Parse a constraint. Raises ProfileError at ``where``."""
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
