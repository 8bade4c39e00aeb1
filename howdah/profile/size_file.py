# SPDX-License-Identifier: Apache-2.0
"""Files of sizes: a CSV of ``size`` and ``weight``, or of ``size`` and ``cdf``. Every complaint names file and line."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from howdah.errors import ProfileError, nearest
from howdah.profile.size_table import SizeDistribution, WeightedSizes
from howdah.profile.trace import what_it_is
from howdah.quantity import QuantityError, parse_ratio, parse_size

FORMS = "it is a CSV whose first line is size,weight or size,cdf"
LARGEST_FILE_BYTES = 16 << 20
LARGEST_SIZE_BYTES = 10**13
_SIZE, _WEIGHT, _CDF = "size", "weight", "cdf"
_LARGEST_WEIGHT = 1e12
_Row = tuple[str, str, str]  # where it is, its size and the other value
_Kind = TypeVar("_Kind")


def read_sizes(file: Path, where: str) -> WeightedSizes | SizeDistribution:
    """``where`` is where the profile names the file. Raises ProfileError."""
    try:
        state = file.stat()
        if not file.is_file() or state.st_size > LARGEST_FILE_BYTES:
            what = "is not a file" if not file.is_file() else f"is larger than {LARGEST_FILE_BYTES >> 20} MiB"
            raise ProfileError(f"{file} {what}", where=where, hint=FORMS)
        return _read(file, (state.st_mtime_ns, state.st_size), where)
    except OSError as error:
        raise ProfileError(f"the sizes in {file} cannot be read: {error.strerror}", where=where, hint=FORMS) from None


@lru_cache(maxsize=16)  # each run of a sweep asks for it
def _read(file: Path, _stamp: tuple[int, int], where: str) -> WeightedSizes | SizeDistribution:
    content = file.read_bytes()
    if (other := what_it_is(content)) is not None:
        raise ProfileError(f"{file} is {other}, not a table of sizes", where=where, hint=FORMS)
    try:
        text = content.decode("utf-8-sig")
        rows = csv.reader(io.StringIO(text), strict=True)
        found = [
            (f"{file}:{rows.line_num}", [cell.strip() for cell in row])
            for row in rows
            if any(cell.strip() for cell in row) and not row[0].lstrip().startswith("#")
        ]
    except (UnicodeDecodeError, csv.Error):
        raise ProfileError(f"{file} is not a CSV", where=where, hint=FORMS) from None
    if len(found) < 2:
        raise ProfileError(f"{file} has no row of sizes", where=where, hint=FORMS)
    (first, names), *body = found
    header = first, [name.lower() for name in names]
    other_name = _second(*header)
    columns = header[1].index(_SIZE), header[1].index(other_name)
    values: list[_Row] = []
    for line, cells in body:
        if len(cells) != len(header[1]):
            what = f"{len(cells)} values under {len(header[1])} columns"
            raise ProfileError(what, where=line, hint="commas stand between values alone; decimals have a point")
        values.append((line, cells[columns[0]], cells[columns[1]]))
    return _weighted(values, str(file)) if other_name == _WEIGHT else _distribution(values)


def _second(line: str, names: list[str]) -> str:
    """The column beside ``size``."""
    for name in names:
        if names.count(name) > 1:
            raise ProfileError(f"the column {name} is given twice", where=line, hint=FORMS)
    there = [name for name in (_WEIGHT, _CDF) if name in names]
    if len(there) == 2:
        raise ProfileError("it has both weight and cdf; one of them says how often", where=line, hint=FORMS)
    if _SIZE in names and there:
        return there[0]
    if len(names) == 1 and (other := next((sign for sign in ";\t" if sign in names[0]), None)):
        what = f"its values are separated by {'semicolons' if other == ';' else 'tabs'}, a CSV's by commas"
        raise ProfileError(what, where=line, hint=FORMS)
    lacks = _SIZE if _SIZE not in names else f"{_WEIGHT} or {_CDF}"
    close = next(
        (near for name in names if (near := nearest(name, (_SIZE, _WEIGHT, _CDF))) and near not in names), None
    )
    hint = f"did you mean {close}? {FORMS}" if close else FORMS
    raise ProfileError(f"it has no column {lacks}", where=line, hint=hint)


def _weighted(rows: list[_Row], file: str) -> WeightedSizes:
    sizes = tuple(_size(text, line, least=1) for line, text, _ in rows)
    weights = tuple(_value(text, line, _weight) for line, _, text in rows)
    if not any(weights):
        raise ProfileError("all weights are 0: no size can be drawn", where=file, hint="give one a weight above 0")
    return WeightedSizes(sizes, weights)


def _distribution(rows: list[_Row]) -> SizeDistribution:
    sizes: list[int] = []
    shares: list[float] = []
    for line, size_text, share_text in rows:
        size, share = _size(size_text, line, least=0), _value(share_text, line, lambda text: float(parse_ratio(text)))
        hint = "each row has the share of all connections that are at most that large; the rows are in order of size"
        if sizes and size < sizes[-1]:
            raise ProfileError(f"the size falls from {sizes[-1]} to {size} bytes", where=line, hint=hint)
        if shares and share < shares[-1]:
            raise ProfileError(f"cdf falls from {shares[-1]:g} to {share:g}", where=line, hint=hint)
        if not size and share:
            raise ProfileError(f"a share of {share:g} has no bytes at all", where=line, hint="the least is 1 byte")
        sizes.append(size)
        shares.append(share)
    if shares[-1] != 1:
        what = f"the last cdf is {shares[-1]:g}: nothing says how large the other connections are"
        raise ProfileError(what, where=rows[-1][0], hint="let the last row have 1, or 100 %")
    return SizeDistribution(tuple(sizes), tuple(shares))


def _size(text: str, line: str, *, least: int) -> int:
    size = _value(f"{text} B" if text.isdecimal() else text, line, parse_size)
    if not least <= size <= LARGEST_SIZE_BYTES:
        raise ProfileError(f"a size of {size} bytes", where=line, hint="sizes are 1 B to 10000 GB")
    return size


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        raise QuantityError(f"expected a weight, a number without a unit, not {text[:40]!r}") from None
    if not (math.isfinite(weight) and 0 <= weight <= _LARGEST_WEIGHT):
        raise QuantityError(f"a weight of {text[:40]}; weights are from 0 to {_LARGEST_WEIGHT:g}")
    return weight


def _value(text: str, line: str, parse: Callable[[str], _Kind]) -> _Kind:
    try:
        return parse(text)
    except QuantityError as error:
        raise ProfileError(str(error), where=line, hint=FORMS) from None
