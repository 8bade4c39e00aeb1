# SPDX-License-Identifier: Apache-2.0
"""Quantities written with their units: ``400 Mbit/s``, ``120 ms``, ``36 MB``, ``1 bdp``, ``0.5 %``.

Parsing is exact (rational arithmetic, no floating point) and returns integers in base units: bits per second,
microseconds, bytes. Prefixes of rates are decimal, as in RFC 2544 and ``tc``: 1 Mbit/s is 10^6 bit/s; ``KiB`` and its
like are the binary sizes. A value that is not exact in the base unit is refused rather than rounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

_NUMBER_WITH_UNIT = re.compile(r"\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+))\s*(.*?)\s*", re.ASCII | re.DOTALL)
_LONGEST_TEXT = 64

RATE_UNITS = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9, "Tbit/s": 10**12}
_RATE_UNITS_CALLED = {name.lower(): name for name in RATE_UNITS}
DURATION_UNITS = {
    "ns": Fraction(1, 1000),
    "us": Fraction(1),
    "ms": Fraction(10**3),
    "s": Fraction(10**6),
    "min": Fraction(60 * 10**6),
}
SIZE_UNITS = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}

RATE_EXPECTED = "a rate such as 400 Mbit/s (bit/s, kbit/s, Mbit/s or Gbit/s)"
DURATION_EXPECTED = "a duration such as 120 ms (us, ms, s or min)"
SIZE_EXPECTED = "a size such as 12 MB (B, kB, MB, GB, KiB, MiB or GiB)"
BUFFER_EXPECTED = "a buffer such as 1 bdp, 12 MB or 100 packets"
RATIO_EXPECTED = "a share such as 0.5 % or 0.005"
SPAN_EXPECTED = "a duration such as 20 ms, or round trips such as 1 rtt"


class QuantityError(ValueError):
    """A text is not the expected quantity; the message says what was expected and what was read."""


def _split(text: object, expected: str) -> tuple[Fraction, str]:
    if isinstance(text, bool) or not isinstance(text, str | int | float):
        raise QuantityError(f"expected {expected}, not {_shown(text)}")
    read = _read(str(text))
    if read is None:
        raise QuantityError(f"expected {expected}, not {_shown(text)}")
    return read


@lru_cache(maxsize=4096)
def _read(written: str) -> tuple[Fraction, str] | None:
    """Split a text into number and unit; cached, because the points of a sweep share most quantities."""
    match = _NUMBER_WITH_UNIT.fullmatch(written) if len(written) <= _LONGEST_TEXT else None
    return (Fraction(match[1]), match[2]) if match else None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 3]}..."


def _whole(value: Fraction, unit: str, text: object) -> int:
    if value < 0:
        raise QuantityError(f"{_shown(text)} is negative")
    if value.denominator != 1:
        raise QuantityError(f"{_shown(text)} is not a whole number of {unit}")
    return int(value)


def canonical_unit(written: str) -> str:
    """Return the canonical spelling of a unit: Mbps is Mbit/s, and µs is us. Unknown units are returned unchanged."""
    if written in ("µs", "μs"):
        return "us"
    name = written.lower()
    if name.endswith("bps"):
        name = f"{name[:-3]}bit/s"
    elif name.endswith("bit"):
        name += "/s"
    # The B of bytes and the b of bits differ only in case; 50 MBps must not become 50 Mbit/s.
    return written if "B" in written else _RATE_UNITS_CALLED.get(name, written)


def parse_rate(text: object) -> int:
    """Parse a rate to bits per second. ``400 Mbit/s`` and ``400 Mbps`` are the same; bytes per second are refused."""
    number, unit = _split(text, RATE_EXPECTED)
    scale = RATE_UNITS.get(canonical_unit(unit))
    if scale is None:
        raise QuantityError(f"expected {RATE_EXPECTED}, not {_shown(text)}{_missing_unit(unit)}")
    return _whole(number * scale, "bit/s", text)


def parse_duration(text: object) -> int:
    """Parse a duration to microseconds. A bare 0 needs no unit."""
    return _whole(_microseconds(text), "microseconds", text)


def _microseconds(text: object) -> Fraction:
    number, unit = _split(text, DURATION_EXPECTED)
    if number == 0 and not unit:
        return number
    scale = DURATION_UNITS.get(canonical_unit(unit))
    if scale is None:
        raise QuantityError(f"expected {DURATION_EXPECTED}, not {_shown(text)}{_missing_unit(unit)}")
    return number * scale


def parse_nanoseconds(text: object) -> int:
    """Parse a duration to nanoseconds. A bare 0 needs no unit."""
    return _whole(_microseconds(text) * 1000, "nanoseconds", text)


def parse_size(text: object) -> int:
    """Parse a size to bytes. A bare 0 needs no unit."""
    number, unit = _split(text, SIZE_EXPECTED)
    scale = _size_scale(number, unit)
    if scale is None:
        raise QuantityError(f"expected {SIZE_EXPECTED}, not {_shown(text)}{_missing_unit(unit)}")
    return _whole(number * scale, "bytes", text)


def parse_ratio(text: object) -> Fraction:
    """Parse a share between 0 and 1: ``0.5 %`` is 1/200, as is ``0.005``."""
    number, unit = _split(text, RATIO_EXPECTED)
    if unit not in ("", "%"):
        raise QuantityError(f"expected {RATIO_EXPECTED}, not {_shown(text)}")
    value = number / 100 if unit == "%" else number
    if not 0 <= value <= 1:
        raise QuantityError(f"expected {RATIO_EXPECTED} between 0 and 100 %, not {_shown(text)}")
    return value


def _size_scale(number: Fraction, unit: str) -> int | None:
    if number == 0 and not unit:
        return 1
    if unit in ("byte", "bytes"):
        return 1
    return SIZE_UNITS.get("kB" if unit == "KB" else unit)


def _missing_unit(unit: str) -> str:
    return " (the unit is missing)" if not unit else ""


def bdp_bytes(rate_bits_per_second: float, rtt_us: float) -> float:
    """Return the bandwidth-delay product in bytes as a float, for display and comparison; see ``exact_bdp``."""
    return rate_bits_per_second * rtt_us / 8_000_000


def exact_bdp(rate_bits_per_second: int, rtt_us: int) -> Fraction:
    """Return the exact bandwidth-delay product in bytes, for plans; ``int`` of it rounds down."""
    return Fraction(rate_bits_per_second * rtt_us, 8_000_000)


@dataclass(frozen=True)
class BufferSize:
    """A size that may be relative to the path: in bytes, bandwidth-delay products, or full frames."""

    amount: Fraction
    unit: Literal["bytes", "bdp", "packets"]

    @classmethod
    def parse(cls, text: object) -> BufferSize:
        number, unit = _split(text, BUFFER_EXPECTED)
        if number < 0:
            raise QuantityError(f"{_shown(text)} is negative")
        if unit.lower() == "bdp":
            return cls(number, "bdp")
        if unit in ("packet", "packets", "pkt", "pkts"):
            return cls(Fraction(_whole(number, "packets", text)), "packets")
        scale = _size_scale(number, unit)
        if scale is None:
            raise QuantityError(f"expected {BUFFER_EXPECTED}, not {_shown(text)}{_missing_unit(unit)}")
        return cls(Fraction(_whole(number * scale, "bytes", text)), "bytes")

    def to_bytes(self, bdp_bytes: Fraction, frame_bytes: int) -> int:
        """Return the bytes on the wire, rounded down; ``frame_bytes`` is the size of one full frame."""
        factor = {"bytes": Fraction(1), "bdp": Fraction(bdp_bytes), "packets": Fraction(frame_bytes)}[self.unit]
        return int(self.amount * factor)

    def __str__(self) -> str:
        return format_size(int(self.amount)) if self.unit == "bytes" else f"{_decimal(self.amount)} {self.unit}"


@dataclass(frozen=True)
class Span:
    """A duration that may be relative to the path: in microseconds or round-trip times."""

    amount: Fraction
    unit: Literal["us", "rtt"]

    @classmethod
    def parse(cls, text: object) -> Span:
        number, unit = _split(text, SPAN_EXPECTED)
        if number < 0:
            raise QuantityError(f"{_shown(text)} is negative")
        if unit.lower() == "rtt":
            return cls(number, "rtt")
        try:
            return cls(Fraction(parse_duration(text)), "us")
        except QuantityError:
            raise QuantityError(f"expected {SPAN_EXPECTED}, not {_shown(text)}{_missing_unit(unit)}") from None

    def to_us(self, rtt_us: int) -> int:
        return int(self.amount * rtt_us) if self.unit == "rtt" else int(self.amount)

    def __str__(self) -> str:
        return f"{_decimal(self.amount)} rtt" if self.unit == "rtt" else format_duration(int(self.amount))


def _decimal(value: Fraction) -> str:
    """Format as an exact decimal if there is one (every parsed quantity has one), otherwise as a fraction."""
    digits, denominator = 0, value.denominator
    while denominator % 10 == 0:
        denominator //= 10
        digits += 1
    while denominator % 2 == 0:
        denominator //= 2
        digits += 1
    while denominator % 5 == 0:
        denominator //= 5
        digits += 1
    if denominator != 1:
        return str(value)
    scaled = abs(value.numerator) * 10**digits // value.denominator
    whole, fraction = divmod(scaled, 10**digits)
    sign = "-" if value < 0 else ""
    return f"{sign}{whole}.{str(fraction).zfill(digits)}".rstrip("0").rstrip(".") if digits else f"{sign}{whole}"


def _format(value: int, units: list[tuple[str, int]], zero: str) -> str:
    if value == 0:
        return f"0 {zero}"
    name, scale = next(((name, scale) for name, scale in units if abs(value) >= scale), units[-1])
    return f"{_decimal(Fraction(value, scale))} {name}"


def format_rate(bits_per_second: int) -> str:
    """Format ``400000000`` as ``400 Mbit/s``; exact, so that parsing it returns the same number."""
    return _format(bits_per_second, [("Gbit/s", 10**9), ("Mbit/s", 10**6), ("kbit/s", 10**3), ("bit/s", 1)], "bit/s")


def format_duration(us: int) -> str:
    """Format ``240000`` as ``240 ms``; exact."""
    return _format(us, [("s", 10**6), ("ms", 10**3), ("us", 1)], "s")


def format_nanoseconds(ns: int) -> str:
    """Format ``1500`` as ``1.5 us``; exact."""
    return _format(ns, [("s", 10**9), ("ms", 10**6), ("us", 1000), ("ns", 1)], "s")


def format_size(size_bytes: int) -> str:
    """Format ``12000000`` as ``12 MB``; exact."""
    return _format(size_bytes, [("GB", 10**9), ("MB", 10**6), ("kB", 10**3), ("B", 1)], "B")
