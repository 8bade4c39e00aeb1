# SPDX-License-Identifier: Apache-2.0
"""Numbers for readers: four significant digits, thin spaces between thousands, no exponents."""

from __future__ import annotations

import math

_GROUP = "\u202f"  # NARROW NO-BREAK SPACE; the SI brochure groups digits with thin spaces
_MINUS = "\u2212"


def significant(value: float, digits: int = 4) -> str:
    """Format ``value`` with at most ``digits`` significant digits; integers keep all their digits.

    >>> significant(9430.0), significant(3.21456), significant(0.00012345)
    ('9430', '3.215', '0.0001234')
    """
    if math.isnan(value):
        return "—"
    if math.isinf(value):
        return "∞" if value > 0 else f"{_MINUS}∞"
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if magnitude >= 15 or magnitude < -9:
        return f"{value:.{digits - 1}e}".replace("-", _MINUS)
    decimals = max(0, digits - 1 - magnitude)
    text = f"{abs(value):.{decimals}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    whole, _, fraction = text.partition(".")
    if len(whole) > 4:
        parts = []
        while whole:
            parts.append(whole[-3:])
            whole = whole[:-3]
        whole = _GROUP.join(reversed(parts))
    sign = _MINUS if value < 0 and text.strip("0.") else ""
    return sign + whole + (f".{fraction}" if fraction else "")


def rounded(value: float, digits: int) -> float | int:
    """Round to ``digits`` significant digits, to an int if the result is whole: keeps files small."""
    found = float(f"{value:.{digits}g}")
    return int(found) if found.is_integer() else found


def between(low: float, high: float, least_digits: int = 4) -> str:
    """Format a range with enough digits to tell its ends apart: ``905 … 912``."""
    for digits in range(least_digits, 10):
        texts = significant(low, digits), significant(high, digits)
        if texts[0] != texts[1]:
            return f"{texts[0]} … {texts[1]}"
    return significant(low)


def roundest(low: float, high: float) -> float:
    """Return the number between ``low`` and ``high``, both above 0, with the fewest digits; of several, the middle one.

    >>> roundest(4_599_890, 4_600_180), roundest(82_990.2, 83_010.9), roundest(0.31, 0.72)
    (4600000.0, 83000.0, 0.5)
    """
    for digits in range(1, 16):
        step = 10.0 ** (math.floor(math.log10(high)) + 1 - digits)
        value = round((low + high) / 2 / step) * step
        for each in (value, math.ceil(low / step) * step, math.floor(high / step) * step):
            if low <= each <= high:
                return float(f"{each:.15g}")
    return (low + high) / 2


def rate(bits_per_second: float) -> str:
    """Format a rate with its unit: ``400 Mbit/s``."""
    return _scaled(bits_per_second, (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1)))


def size(count_bytes: float) -> str:
    """Format a size with its unit, in powers of ten: ``12 MB``."""
    return _scaled(count_bytes, (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1)))


def duration(microseconds: float) -> str:
    """Format a duration with its unit: ``240 ms``, ``0.5 ms``, ``62 s``."""
    return _scaled(microseconds, (("s", 1e6), ("ms", 1e3), ("µs", 1)), least=0.5)


def delay(microseconds: float) -> str:
    """Format a delay in milliseconds, the operators' usual unit: ``240 ms``."""
    return f"{significant(microseconds / 1e3)} ms"


def _scaled(value: float, units: tuple[tuple[str, float], ...], least: float = 1.0) -> str:
    for unit, factor in units:
        if abs(value) >= factor * least:
            return f"{significant(value / factor)} {unit}"
    return f"{significant(value)} {units[-1][0]}"


def listed(parts: list[str], word: str = "and") -> str:
    """Join the parts of a sentence's list.

    >>> listed(["a", "b", "c"]), listed(["a"], "or")
    ('a, b and c', 'a')
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} {word} {parts[-1]}"


def counted(number: int, noun: str) -> str:
    """Format a count with its noun in the right number.

    >>> counted(1, "run"), counted(2, "run")
    ('1 run', '2 runs')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
