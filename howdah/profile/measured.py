# SPDX-License-Identifier: Apache-2.0
"""Read measurements from files: rates from a CSV or an iperf3 result, and delays for a path to draw from.

Every error names the file and line.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from howdah.errors import ProfileError, did_you_mean
from howdah.quantity import QuantityError, parse_duration, parse_rate

COLUMNS = (
    "a column of time (time, time_s, time_ms, timestamp) and one of a rate with its unit (throughput_mbps, Mbit/s)"
)
_TIME_NAMES = ("t", "time", "seconds", "second", "sec", "timestamp", "elapsed", "datetime", "date")
_TIME_UNITS = {"s": 1.0, "sec": 1.0, "seconds": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_RATE_NAME = re.compile(r"(?:^|[^a-z])([kmg]?)(?:bps|bits?(?:[ /_-]|_?per_?)?s(?:ec(?:ond)?)?)(?:$|[^a-z])")
_BYTES_NAME = re.compile(r"(?:^|[^A-Za-z])[KkMG]i?B(?:ps|[ /_-]?s)(?:$|[^A-Za-z])")
_FACTORS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9}
_WITH_UNIT = re.compile(r"[0-9.]\s*[A-Za-zµμ]")
_LONGEST_S = 86_400.0
_MOST_BITS_PER_SECOND = 1e12


@dataclass(frozen=True)
class MeasuredRates:
    """Rates in bits per second at increasing times, which start at 0 s. The last rate holds until ``end_s``."""

    times_s: list[float]
    rates: list[float]
    end_s: float


@dataclass(frozen=True)
class _Point:
    line: str
    time_s: float
    rate: float


def rates_of_csv(text: str, name: str, column: str | None) -> MeasuredRates:
    """Read rates from a CSV. Without a header, its columns are seconds and Mbit/s. Raises ProfileError."""
    rows = csv.reader(io.StringIO(text))
    header: _CsvHeader | None = None
    points: list[_Point] = []
    try:
        for row in rows:
            cells, line = [cell.strip() for cell in row], f"{name}:{rows.line_num}"
            if not any(cells) or cells[0].startswith("#"):
                continue
            if header is None:
                header = _header(cells, line, column)
                if header.names:
                    continue
            if len(cells) != header.width:
                what = f"{len(cells)} values under {header.width} columns"
                raise ProfileError(what, where=line, hint="give each row one value for each column")
            time_s = _time(cells[header.time], header.time_factor, line)
            points.append(_Point(line, time_s, _rate(cells[header.rate], header.rate_factor, line)))
    except csv.Error as error:
        raise ProfileError(f"this is not a CSV: {error}", where=f"{name}:{rows.line_num}", hint=COLUMNS) from None
    return _checked_rates(points, name)


def rates_of_iperf3(content: bytes, name: str) -> MeasuredRates:
    """Read the sum of all streams in each interval from iperf3's JSON. Raises ProfileError."""
    try:
        read = json.loads(content)
        points = [
            _Point(f"{name}: intervals[{number}]", float(each["sum"]["start"]), float(each["sum"]["bits_per_second"]))
            for number, each in enumerate(read["intervals"])
        ]
        ends = [float(each["sum"]["end"]) for each in read["intervals"]]
    except (KeyError, TypeError, ValueError, RecursionError):
        what = "this JSON has no intervals with start, end and bits_per_second"
        raise ProfileError(what, where=name, hint="give the result of iperf3 --json, whole") from None
    for point in points:
        _check(point.time_s, point.rate, point.line)
    return _checked_rates(points, name, ends[-1] if ends else None)


@dataclass(frozen=True)
class _CsvHeader:
    names: list[str]  # empty without a header
    width: int
    time: int
    time_factor: float
    rate: int
    rate_factor: float | None  # None: each value has its own unit


def _header(cells: list[str], line: str, column: str | None) -> _CsvHeader:
    if all(_number(cell) is not None for cell in cells):
        if len(cells) != 2 or column is not None:
            what = f"{len(cells)} columns without a header"
            raise ProfileError(what, where=line, hint=f"two are seconds and Mbit/s; or give them names: {COLUMNS}")
        return _CsvHeader([], 2, 0, 1.0, 1, 1e6)
    for cell in cells:
        if _BYTES_NAME.search(cell):
            what = f"the column {cell!r} has bytes a second"
            raise ProfileError(what, where=line, hint="give a rate in bits, such as a column throughput_mbps")
    names = [cell.lower() for cell in cells]
    times = [(number, factor) for number, name in enumerate(names) if (factor := _time_factor(name)) is not None]
    if not times:
        raise ProfileError("there is no column of time", where=line, hint=f"a trace has {COLUMNS}")
    if column is not None:
        if column.lower() not in names:
            hint = did_you_mean(column.lower(), names, f"the columns are {', '.join(cells)}")
            raise ProfileError(f"there is no column {column!r}", where=line, hint=hint)
        number = names.index(column.lower())
        return _CsvHeader(names, len(names), *times[0], number, _rate_factor(names[number]))
    rates = [number for number, name in enumerate(names) if _rate_factor(name) is not None]
    if not rates:
        rates = [number for number, name in enumerate(names) if name in ("rate", "throughput", "bandwidth")]
    if len(rates) != 1:
        what = f"{len(rates) or 'no'} column{'s' if len(rates) != 1 else ''} could be the rate"
        hint = f"name one with column: ({', '.join(cells)})" if rates else f"a trace has {COLUMNS}"
        raise ProfileError(what, where=line, hint=hint)
    return _CsvHeader(names, len(names), *times[0], rates[0], _rate_factor(names[rates[0]]))


def _time_factor(name: str) -> float | None:
    """Seconds per unit of a time column, by its name; None if the column is not a time."""
    words = [word for word in re.split(r"[^a-z0-9]+", name) if word]
    if not words or (words[0] not in _TIME_NAMES and words != ["ms"]):
        return None
    return next((_TIME_UNITS[word] for word in words if word in _TIME_UNITS), 1.0)


def _rate_factor(name: str) -> float | None:
    found = _RATE_NAME.search(name)
    return _FACTORS[found.group(1)] if found else None


def _number(cell: str) -> float | None:
    try:
        return float(cell) if cell.isascii() and len(cell) < 40 else None
    except ValueError:
        return None


def _time(cell: str, factor: float, line: str) -> float:
    if (number := _number(cell)) is not None:
        return number * factor
    try:
        if _WITH_UNIT.search(cell) and "T" not in cell and ":" not in cell:
            return parse_duration(cell) / 1e6
        return datetime.fromisoformat(cell).timestamp()
    except (QuantityError, ValueError, OverflowError, OSError):
        raise ProfileError(f"expected a time, not {cell[:40]!r}", where=line, hint=f"a trace has {COLUMNS}") from None


def _rate(cell: str, factor: float | None, line: str) -> float:
    number = _number(cell)
    if number is not None and factor is not None:
        return number * factor
    if number is not None and number != 0:
        what = f"the rate {cell[:40]!r} has no unit, and neither has its column"
        raise ProfileError(what, where=line, hint="name the column throughput_mbps, or write 5 Mbit/s")
    try:
        return 0.0 if number == 0 else float(parse_rate(cell))
    except QuantityError:
        raise ProfileError(f"expected a rate, not {cell[:40]!r}", where=line, hint="write 0 for a stall") from None


def _check(time_s: float, rate: float, line: str) -> None:
    if not math.isfinite(time_s):
        raise ProfileError("the time is not a finite number", where=line)
    if not 0 <= rate <= _MOST_BITS_PER_SECOND:
        raise ProfileError(f"a rate of {rate:g} bit/s", where=line, hint="a rate is between 0 and 1 Tbit/s")


def _checked_rates(points: list[_Point], name: str, end_s: float | None = None) -> MeasuredRates:
    """Shift times to start at 0. The last rate holds until ``end_s``, by default as long as the one before it."""
    for point in points:
        _check(point.time_s, point.rate, point.line)
    for earlier, later in itertools.pairwise(points):
        if later.time_s <= earlier.time_s:
            what = "the time does not grow from the row before"
            raise ProfileError(what, where=later.line, hint="sort the rows by time, and keep one of each time")
    if len(points) < 2:
        raise ProfileError("a trace of measured rates has at least two of them", where=name, hint=f"it has {COLUMNS}")
    first = points[0].time_s
    last = end_s if end_s is not None else 2 * points[-1].time_s - points[-2].time_s
    if not points[-1].time_s < last <= first + _LONGEST_S:
        what = f"the trace lasts {last - first:g} s"
        raise ProfileError(what, where=name, hint="it ends after its last rate, and lasts a day at most")
    if not any(point.rate for point in points):
        raise ProfileError("every rate is 0", where=name, hint="a link carries something")
    return MeasuredRates([point.time_s - first for point in points], [point.rate for point in points], last - first)


MOST_DELAYS = 1_000_000
_LARGEST_DELAYS_BYTES = 16 << 20
_DELAY_FORM = "write one delay with its unit on each line: 3 ms"


def read_delays(file: Path, where: str) -> list[int]:
    """Read delays from a file: microseconds, sorted. Raises ProfileError."""
    try:
        if file.stat().st_size > _LARGEST_DELAYS_BYTES:
            raise ProfileError(
                f"{file} is larger than {_LARGEST_DELAYS_BYTES >> 20} MiB, too large for delays", where=where
            )
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ProfileError(f"the delays {file} cannot be read: {reason}", where=where, hint=_DELAY_FORM) from None
    delays = []
    for number, line in enumerate(lines, start=1):
        entry = line.partition("#")[0].strip()
        if not entry:
            continue
        try:
            delays.append(parse_duration(entry))
        except QuantityError as error:
            raise ProfileError(str(error), where=f"{file}:{number}", hint=_DELAY_FORM) from None
    if not any(delays):
        what = f"{file} has no delay above 0" if delays else f"{file} has no delays"
        raise ProfileError(what, where=where, hint=_DELAY_FORM)
    if len(delays) > MOST_DELAYS:
        raise ProfileError(f"{file} has {len(delays)} delays, more than {MOST_DELAYS}", where=where)
    return sorted(delays)
