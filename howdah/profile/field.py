# SPDX-License-Identifier: Apache-2.0
"""Types of profile fields: quantities parsed from text, with their JSON Schema."""

from __future__ import annotations

from collections.abc import Callable, Collection
from fractions import Fraction
from typing import Annotated, Any, ClassVar, cast, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, InstanceOf, WithJsonSchema, model_validator

from howdah.errors import did_you_mean
from howdah.quantity import (
    BUFFER_EXPECTED,
    DURATION_EXPECTED,
    RATE_EXPECTED,
    RATIO_EXPECTED,
    SIZE_EXPECTED,
    SPAN_EXPECTED,
    BufferSize,
    QuantityError,
    Span,
    parse_duration,
    parse_nanoseconds,
    parse_rate,
    parse_ratio,
    parse_size,
)
from howdah.registered import declare_engines
from howdah.trait import engines, known_engines

QUANTITIES = {
    "rate": RATE_EXPECTED,
    "duration": DURATION_EXPECTED,
    "size": SIZE_EXPECTED,
    "buffer": BUFFER_EXPECTED,
    "share": RATIO_EXPECTED,
    "span": SPAN_EXPECTED,
}

_NUMBER = r"\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)"


def _quantity(units: str) -> dict[str, Any]:
    return {"type": "string", "pattern": rf"^\s*{_NUMBER}\s*({units})\s*$"}


def _schema(name: str, kind: str, units: str, *, bare_zero: bool = False) -> WithJsonSchema:
    """The schema of a quantity: ``kind`` is its name in the reference page (``QUANTITIES``), ``name`` in the schema."""
    text = _quantity(units)
    return _shared(name, kind, {"anyOf": [text, _ZERO]} if bare_zero else text)


def _shared(name: str, kind: str, schema: dict[str, Any]) -> WithJsonSchema:
    """A schema that howdah/profile/schema.py defines once, under ``name``."""
    return WithJsonSchema({**schema, "x-value": kind, "x-shared": name})


_ZERO: dict[str, Any] = {"enum": [0, "0"]}
_RATE = "([kKmMgGtT]?[bB][iI][tT](/[sS])?|[kKmMgGtT]?[b][pP][sS])"
_TIME = "ns|us|µs|μs|ms|s|min"
_BYTES = "B|bytes?|kB|KB|MB|GB|KiB|MiB|GiB"


def _parse_buffer(text: object) -> BufferSize:
    return text if isinstance(text, BufferSize) else BufferSize.parse(text)


def _parse_span(text: object) -> Span:
    return text if isinstance(text, Span) else Span.parse(text)


def _positive_rate(text: object) -> int:
    value = parse_rate(text)
    if not 1000 <= value <= 10**12:
        raise QuantityError(f"expected a rate between 1 kbit/s and 1 Tbit/s, not {text!r}")
    return value


def _rate_or_unlimited(text: object) -> int | None:
    return None if text == "unlimited" else _positive_rate(text)


def _bounded_duration(text: object) -> int:
    value = parse_duration(text)
    if value > 86_400_000_000:
        raise QuantityError(f"expected a duration of at most one day, not {text!r}")
    return value


def _short_duration(text: object) -> int:
    value = parse_nanoseconds(text)
    if value > 1_000_000_000:
        raise QuantityError(f"expected a duration of at most one second, not {text!r}")
    return value


def _positive_duration(text: object) -> int:
    value = _bounded_duration(text)
    if value == 0:
        raise QuantityError(f"expected a duration longer than 0, not {text!r}")
    return value


def _interval_or_off(text: object) -> int | None:
    if text is None or text is False or text == "off":
        return None
    value = _positive_duration(text)
    if value < 1000:
        raise QuantityError(f"expected an interval of at least 1 ms, not {text!r}")
    return value


def _positive_size(text: object) -> int:
    value = parse_size(text)
    if not 1 <= value <= 10**13:
        raise QuantityError(f"expected a size between 1 B and 10000 GB, not {text!r}")
    return value


def _packets_or_kernel(value: object) -> int | None:
    if value == "kernel":
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 65535:
        raise QuantityError(f"expected between 1 and 65535 segments, or kernel, not {value!r}")
    return value


def _engine(value: object) -> str:
    declare_engines()
    if value not in engines():
        raise QuantityError(f"expected one of {known_engines(value)}, not {value!r}")
    return str(value)


def _written_text(value: object) -> str:
    """The text as written, also where YAML reads a number, such as a kernel version."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise QuantityError(f"expected a text, not {value!r}")
    return str(value)


Rate = Annotated[int, BeforeValidator(_positive_rate), _schema("Rate", "rate", _RATE)]
RateOrUnlimited = Annotated[
    int | None,
    BeforeValidator(_rate_or_unlimited),
    _shared("RateOrUnlimited", "rate or `unlimited`", {"anyOf": [_quantity(_RATE), {"const": "unlimited"}]}),
]
Duration = Annotated[int, BeforeValidator(_bounded_duration), _schema("Duration", "duration", _TIME, bare_zero=True)]
Nanoseconds = Annotated[int, BeforeValidator(_short_duration), _schema("Duration", "duration", _TIME, bare_zero=True)]
PositiveDuration = Annotated[int, BeforeValidator(_positive_duration), _schema("PositiveDuration", "duration", _TIME)]
IntervalOrOff = Annotated[
    int | None,
    BeforeValidator(_interval_or_off),
    _shared("IntervalOrOff", "duration or `off`", {"anyOf": [_quantity(_TIME), {"enum": ["off", False, None]}]}),
]
Bytes = Annotated[int, BeforeValidator(_positive_size), _schema("Size", "size", _BYTES)]
Buffer = Annotated[
    InstanceOf[BufferSize],
    BeforeValidator(_parse_buffer),
    _schema("Buffer", "buffer", rf"{_BYTES}|[bB][dD][pP]|packets?|pkts?"),
]
SpanField = Annotated[
    InstanceOf[Span], BeforeValidator(_parse_span), _schema("Span", "span", f"{_TIME}|[rR][tT][tT]", bare_zero=True)
]
Ratio = Annotated[
    InstanceOf[Fraction],
    BeforeValidator(lambda value: value if isinstance(value, Fraction) else parse_ratio(value)),
    _shared("Share", "share", {"anyOf": [_quantity("%?"), {"type": "number", "minimum": 0, "maximum": 1}]}),
]
GsoSegments = Annotated[
    int | None,
    BeforeValidator(_packets_or_kernel),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer", "minimum": 1, "maximum": 65535}, {"const": "kernel"}],
            "x-value": "1 … 65535 or `kernel`",
        }
    ),
]
EngineName = Annotated[str, BeforeValidator(_engine), WithJsonSchema({"type": "string", "enum": list(engines())})]
Text = Annotated[str, BeforeValidator(_written_text), WithJsonSchema({"type": ["string", "number"]})]
# Names that are listed elsewhere: howdah/profile/schema.py replaces ``x-names`` by the list.
AlgorithmName = Annotated[
    str, BeforeValidator(_written_text), WithJsonSchema({"type": ["string", "number"], "x-names": "AlgorithmName"})
]
KernelName = Annotated[
    str, BeforeValidator(_written_text), WithJsonSchema({"type": ["string", "number"], "x-names": "KernelName"})
]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"), BeforeValidator(_written_text)]


def one_of(what: str, names: Collection[str], value: object) -> str:
    """Return the name if it is known. Raises QuantityError with the nearest known name."""
    if isinstance(value, str) and value in names:
        return value
    hint = did_you_mean(str(value), names, f"known: {', '.join(names)}")
    raise QuantityError(f"there is no {what} {value!r}; {hint}")


class FieldError(ValueError):
    """A rule across several fields is violated; ``path`` is the field to report."""

    def __init__(self, what: str, *path: str | int) -> None:
        super().__init__(what)
        self.path = path


def fixed(default: Any = ..., **arguments: Any) -> Any:
    """A field that applies to the whole profile and cannot be swept."""
    return Field(default, json_schema_extra={"x-fixed": True}, **arguments)


def preset(kind: Any, default: str, **arguments: Any) -> Any:
    """A field with a quantity, whose default is written as in a profile."""
    (read,) = (cast("Callable[[str], Any]", each.func) for each in get_args(kind) if isinstance(each, BeforeValidator))
    return Field(default=read(default), json_schema_extra={"x-default": default}, **arguments)


class Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True, arbitrary_types_allowed=True)


class ShortSection(Section):
    """A section that can be abbreviated to the value of its field ``short``."""

    short: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _from_short(cls, data: Any) -> Any:
        return data if isinstance(data, dict | cls) else {cls.short: data}
