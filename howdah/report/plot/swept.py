# SPDX-License-Identifier: Apache-2.0
"""Values of a swept field on an axis: positions, texts, and unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from howdah.number import significant
from howdah.quantity import BufferSize, QuantityError, Span, parse_duration, parse_rate, parse_ratio

_NAMES = {
    "path.rtt": "round-trip time",
    "path.delay": "one-way delay",
    "path.rate": "bottleneck rate",
    "path.buffer": "buffer",
    "path.loss": "loss",
    "algorithm": "slow start",
    "path.like": "path",
    "control": "control",
}
# Of one of several flows or groups; the number is theirs, from 0 in a profile.
_NUMBERED = {
    "groups.size": "size of the transfers",
    "groups.connections": "connections",
    "groups.rtt": "round-trip time of group",
    "groups.request": "size of the request",
    "flows.start": "start of flow",
    "flows.size": "size of flow",
    "flows.rtt": "round-trip time of flow",
    "flows.algorithm": "slow start of flow",
    "flows.initial_window": "initial window of flow",
    "groups.initial_window": "initial window",
}
_PATH = "path."
_SYSCTLS, _SYSCTLS_OF_TCP = ".sysctls.", "net.ipv4."
_DURATIONS = (("s", 1e6), ("ms", 1e3), ("µs", 1.0))
_RATES = (("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0))
_SIZES = (("GB", 1e9), ("MB", 1e6), ("kB", 1e3), ("B", 1.0))


def place_title(name: str, value: str) -> str:
    """The heading of a panel: what its runs have in common."""
    return value if name == "algorithm" else with_value(name, value)


def with_value(name: str, value: str) -> str:
    """A swept field and its value: ``round-trip time 20 ms``, a sysctl as ``tcp_sack=0``."""
    return f"{field_name(name)}{'=' if _SYSCTLS in name else ' '}{value}"


def place_words(axes: Mapping[str, object]) -> str:
    """A sweep point in words: ``round-trip time 20 ms, buffer 1 bdp``."""
    return ", ".join(with_value(name, str(value)) for name, value in axes.items())


@dataclass(frozen=True)
class Swept:
    """``position`` has a number for each value as written; ``numeric`` is False for categories, which stand side by
    side in the order of the profile."""

    name: str
    label: str
    texts: dict[str, str]
    position: dict[str, float]
    numeric: bool


def field_name(name: str) -> str:
    """A swept field in words: ``path.rtt`` is the round-trip time, ``path.reverse_rate`` the reverse rate. Other fields
    keep their names; sysctls have their usual ones: ``tcp_sack``, ``net.core.rmem_max``."""
    if name in _NAMES:
        return _NAMES[name]
    if name.startswith(_PATH):
        return name.removeprefix(_PATH).replace("_", " ").replace(".", " ")
    if _SYSCTLS in name:
        return name.partition(_SYSCTLS)[2].removeprefix(_SYSCTLS_OF_TCP)
    section, number, rest = ([*name.split(".", 2), "", ""])[:3]
    words = _NUMBERED.get(f"{section}.{rest}") if number.isdigit() else None
    if words is None:
        return name
    return f"{words} {number}" if words.endswith(("flow", "group")) else words


def swept(name: str, values: list[str]) -> Swept:
    """The values (distinct, as written) on an axis; numeric if all can be read in one unit."""
    for reader in (_plain, _durations, _rates, _shares, _buffers, _spans):
        try:
            numbers, unit = reader(values)
        except (QuantityError, ValueError):
            continue
        label = f"{field_name(name)} ({unit})" if unit else field_name(name)
        texts = {value: significant(number, 6) for value, number in zip(values, numbers, strict=True)}
        return Swept(name, label, texts, dict(zip(values, numbers, strict=True)), numeric=True)
    places = {value: float(index) for index, value in enumerate(values)}
    return Swept(name, field_name(name), {value: value for value in values}, places, numeric=False)


Numbers = tuple[list[float], str]


def _plain(values: list[str]) -> Numbers:
    return [float(Fraction(value)) for value in values], ""


def _scaled(numbers: list[float], units: tuple[tuple[str, float], ...]) -> Numbers:
    """Scale to the largest unit in which no number but 0 is below 1, or to a larger one if numbers would be long."""
    least = min((abs(number) for number in numbers if number), default=1.0)
    most = max((abs(number) for number in numbers), default=1.0)
    unit, factor = next(((unit, factor) for unit, factor in units if least >= factor), units[-1])
    larger = next(((name, each) for name, each in units if most >= each), units[-1])
    if most / factor >= 10_000 and least / larger[1] >= 0.01:
        unit, factor = larger
    return [number / factor for number in numbers], unit


def _durations(values: list[str]) -> Numbers:
    return _scaled([float(parse_duration(value)) for value in values], _DURATIONS)


def _rates(values: list[str]) -> Numbers:
    return _scaled([float(parse_rate(value)) for value in values], _RATES)


def _shares(values: list[str]) -> Numbers:
    if not any("%" in value for value in values):
        raise ValueError("no share")
    return [float(parse_ratio(value)) * 100 for value in values], "%"


def _of_one_unit(kinds: list[str]) -> None:
    if len(set(kinds)) > 1:
        raise ValueError("several units")


def _buffers(values: list[str]) -> Numbers:
    sizes = [BufferSize.parse(value) for value in values]
    _of_one_unit([size.unit for size in sizes if size.amount])
    unit = next((size.unit for size in sizes if size.amount), "bytes")
    amounts = [float(size.amount) for size in sizes]
    return _scaled(amounts, _SIZES) if unit == "bytes" else (amounts, "BDP" if unit == "bdp" else unit)


def _spans(values: list[str]) -> Numbers:
    spans: list[Span] = [Span.parse(value) for value in values]
    _of_one_unit([span.unit for span in spans if span.amount])
    return [float(span.amount) for span in spans], "RTT"
