# SPDX-License-Identifier: Apache-2.0
"""Distributions of the sizes of a group's connections: a weighted list, a file, lognormal, Pareto, or published
(``PUBLISHED_SIZES``).

A file is a CSV of ``size`` and ``weight``, or of ``size`` and ``cdf``; every error names the file and line. The papers
show published distributions as curves; the points here come from artifacts in which simulators have digitised them.
Between two points, sizes are uniform (:class:`SizeDistribution`).
"""

from __future__ import annotations

import csv
import io
import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import NormalDist
from typing import Literal, Protocol, TypeVar

from pydantic import Field, model_validator

from howdah.errors import ProfileError, nearest
from howdah.profile.field import Bytes, FieldError, Section, Text, fixed, preset
from howdah.profile.varying import foreign_format
from howdah.quantity import QuantityError, parse_ratio, parse_size


@dataclass(frozen=True)
class WeightedSizes:
    """A list of sizes with the relative frequency of each; at least one weight is positive."""

    sizes_bytes: tuple[int, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True)
class SizeDistribution:
    """A piecewise linear CDF: the fraction ``shares[i]`` of connections has at most ``sizes_bytes[i]`` bytes.

    Both are non-decreasing, and the last share is 1. The first share, and a step between two equal sizes, is the
    fraction of connections of exactly that size.
    """

    sizes_bytes: tuple[int, ...]
    shares: tuple[float, ...]

    def between(self, least_bytes: int, most_bytes: int) -> tuple[float, float]:
        """The fraction of sizes below ``least_bytes``, and the fraction of sizes up to ``most_bytes``."""
        sizes = self.sizes_bytes
        return self._share(least_bytes, bisect_left(sizes, least_bytes)), self._share(
            most_bytes, bisect_right(sizes, most_bytes)
        )

    def at(self, share: float) -> float:
        """The size at this quantile."""
        place = bisect_left(self.shares, share)
        if place == 0:
            return self.sizes_bytes[0]
        begin, end = self.shares[place - 1], self.shares[place]
        smaller, larger = self.sizes_bytes[place - 1], self.sizes_bytes[place]
        return smaller + (larger - smaller) * (share - begin) / (end - begin)

    def _share(self, size_bytes: int, place: int) -> float:
        """The fraction up to a size that comes after the first ``place`` points."""
        if place == 0:
            return 0.0
        if place == len(self.sizes_bytes):
            return 1.0
        smaller, larger = self.sizes_bytes[place - 1], self.sizes_bytes[place]
        begin, end = self.shares[place - 1], self.shares[place]
        return begin + (end - begin) * (size_bytes - smaller) / (larger - smaller)


@dataclass(frozen=True)
class PublishedSizes:
    """A published distribution. ``source`` is the publication, and the origin of the points."""

    words: str
    source: str
    sizes: SizeDistribution


def _cdf(*points: tuple[int, float]) -> SizeDistribution:
    sizes, percent = zip(*points, strict=True)
    return SizeDistribution(sizes, tuple(each / 100 for each in percent))


PUBLISHED_SIZES = {
    "web-search": PublishedSizes(
        "flows of a search engine's cluster",
        "M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010, Fig. 4, also pFabric, SIGCOMM 2013, Fig. 4a; "
        "points of github.com/HKUST-SING/TrafficGenerator, conf/DCTCP_CDF.txt",
        _cdf((0, 0), (10_000, 15), (20_000, 20), (30_000, 30), (50_000, 40), (80_000, 53), (200_000, 60),
            (1_000_000, 70), (2_000_000, 80), (5_000_000, 90), (10_000_000, 97), (30_000_000, 100)),
    ),
    "data-mining": PublishedSizes(
        "flows of a cluster for data mining",
        "A. Greenberg et al., VL2, SIGCOMM 2009, Fig. 2, also pFabric, SIGCOMM 2013, Fig. 4b; points of "
        "github.com/HKUST-SING/TrafficGenerator, conf/VL2_CDF.txt",
        _cdf((0, 0), (180, 10), (216, 20), (560, 30), (900, 40), (1100, 50), (1870, 60), (3160, 70), (10_000, 80),
            (400_000, 90), (3_160_000, 95), (100_000_000, 98), (1_000_000_000, 100)),
    ),
    "facebook-hadoop": PublishedSizes(
        "flows of Facebook's Hadoop cluster",
        "A. Roy et al., Inside the Social Network's (Datacenter) Network, SIGCOMM 2015; points of HPCC, SIGCOMM 2019: "
        "github.com/alibaba-edu/High-Precision-Congestion-Control, traffic_gen/FbHdp_distribution.txt",
        _cdf((0, 0), (100, 1), (200, 2), (300, 5), (350, 15), (400, 20), (500, 30), (600, 40), (700, 50), (1000, 60),
            (2000, 67), (7000, 70), (30_000, 72), (50_000, 82), (80_000, 87), (120_000, 90), (300_000, 95),
            (1_000_000, 97.5), (2_000_000, 99), (10_000_000, 100)),
    ),
}  # fmt: skip


FORMS = "it is a CSV whose first line is size,weight or size,cdf"
LARGEST_FILE_BYTES = 16 << 20
LARGEST_SIZE_BYTES = 10**13
_SIZE, _WEIGHT, _CDF = "size", "weight", "cdf"
_LARGEST_WEIGHT = 1e12
_Row = tuple[str, str, str]  # place, size and the other value
_Kind = TypeVar("_Kind")


def read_sizes(file: Path, where: str) -> WeightedSizes | SizeDistribution:
    """Read a file of sizes. ``where`` is the place in the profile that names it. Raises ProfileError."""
    try:
        state = file.stat()
        if not file.is_file() or state.st_size > LARGEST_FILE_BYTES:
            what = "is not a file" if not file.is_file() else f"is larger than {LARGEST_FILE_BYTES >> 20} MiB"
            raise ProfileError(f"{file} {what}", where=where, hint=FORMS)
        return _read(file, (state.st_mtime_ns, state.st_size), where)
    except OSError as error:
        raise ProfileError(f"the sizes in {file} cannot be read: {error.strerror}", where=where, hint=FORMS) from None


@lru_cache(maxsize=16)  # each run of a sweep reads it
def _read(file: Path, _stamp: tuple[int, int], where: str) -> WeightedSizes | SizeDistribution:
    content = file.read_bytes()
    if (other := foreign_format(content)) is not None:
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
    other_name = _value_column(*header)
    columns = header[1].index(_SIZE), header[1].index(other_name)
    values: list[_Row] = []
    for line, cells in body:
        if len(cells) != len(header[1]):
            what = f"{len(cells)} values under {len(header[1])} columns"
            raise ProfileError(what, where=line, hint="commas only separate values; decimals have a point")
        values.append((line, cells[columns[0]], cells[columns[1]]))
    return _weighted(values, str(file)) if other_name == _WEIGHT else _distribution(values)


def _value_column(line: str, names: list[str]) -> str:
    """The name of the column beside ``size``: ``weight`` or ``cdf``."""
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
            raise ProfileError(f"a share of {share:g} has size 0", where=line, hint="the least is 1 byte")
        sizes.append(size)
        shares.append(share)
    if shares[-1] != 1:
        what = f"the last cdf is {shares[-1]:g}: the sizes of the other connections are missing"
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


MOST_SIZES = 1000
_LEAST_PART = 1e-6  # smallest share of a distribution that must be between least and most
_KINDS = ("listed", "file", "lognormal", "pareto", "published")
_NOTHING = "next to nothing of the distribution is between least and most"


class SizeLaw(Protocol):
    """A distribution that can be truncated: the CDF at two bounds, and its inverse."""

    def between(self, least_bytes: int, most_bytes: int) -> tuple[float, float]: ...

    def at(self, share: float) -> float: ...


class WeightedSizeSection(Section):
    """One size of a list."""

    size: Bytes = Field(ge=1, description="bytes per connection")
    weight: float = Field(default=1, ge=0, le=1e12, description="relative frequency")


class LognormalSection(Section):
    """F(x) = Φ(ln(x / median) / sigma)."""

    median: Bytes = Field(ge=1, description="median size")
    sigma: float = Field(gt=0, le=10, description="standard deviation of the natural logarithm")

    def between(self, least_bytes: int, most_bytes: int) -> tuple[float, float]:
        return self._below(least_bytes), self._below(most_bytes)

    def _below(self, size_bytes: int) -> float:
        return NormalDist().cdf(math.log(size_bytes / self.median) / self.sigma)

    def at(self, share: float) -> float:
        """The size at this quantile."""
        return self.median * math.exp(self.sigma * NormalDist().inv_cdf(share))


class ParetoSection(Section):
    """F(x) = 1 - (scale / x)^shape from scale on."""

    scale: Bytes = Field(ge=1, description="the smallest connection")
    shape: float = Field(gt=0, le=100, description="smaller means a longer tail; up to 1, the mean is infinite")

    def between(self, least_bytes: int, most_bytes: int) -> tuple[float, float]:
        return self._below(least_bytes), self._below(most_bytes)

    def _below(self, size_bytes: int) -> float:
        return float(1 - (self.scale / max(size_bytes, self.scale)) ** self.shape)

    def at(self, share: float) -> float:
        """The size at this quantile."""
        return float(self.scale * (1 - share) ** (-1 / self.shape))


class SizesSection(Section):
    """Sizes of connections, drawn from the seed and the repetition, the same for each algorithm: one of ``listed``,
    ``file``, ``lognormal``, ``pareto`` and ``published``. Distributions are truncated to ``least`` … ``most``."""

    listed: list[WeightedSizeSection] = Field(
        default_factory=list, max_length=MOST_SIZES, description="a list of sizes"
    )
    file: Text | None = Field(
        default=None,
        description="a CSV, relative to the profile: columns size (bytes, or with a unit) and weight are a list; "
        "size and cdf, the share of connections of at most that size, are a distribution, linear between rows",
    )
    lognormal: LognormalSection | None = Field(default=None, description="F(x) = Φ(ln(x / median) / sigma)")
    pareto: ParetoSection | None = Field(default=None, description="F(x) = 1 - (scale / x)^shape from scale on")
    published: Literal["web-search", "data-mining", "facebook-hadoop"] | None = Field(
        default=None, description="a published distribution (docs/traffic.md has the sources)"
    )
    least: Bytes = preset(Bytes, "1 B", ge=1, description="smallest size drawn from a distribution")
    most: Bytes = preset(Bytes, "1 GB", description="largest size drawn from a distribution")
    source: Text | None = fixed(None, description="origin of the numbers: a publication, a measurement, a choice")

    @model_validator(mode="after")
    def _one(self) -> SizesSection:
        if sum(bool(getattr(self, kind)) for kind in _KINDS) != 1:
            raise FieldError(f"expected one of {', '.join(_KINDS[:-1])} and {_KINDS[-1]}")
        if self.listed and not any(each.weight for each in self.listed):
            raise FieldError("all weights are 0: no size can be drawn", "listed")
        if self.listed and (bound := next((name for name in ("least", "most") if name in self.model_fields_set), None)):
            raise FieldError(f"a list is not truncated; leave {bound} out", bound)
        if self.law is not None or self.file is not None:
            if self.least > self.most:
                raise FieldError("the largest size is smaller than the smallest", "most")
            if self.law is not None and not self.is_drawn_from(self.law):
                raise FieldError(_NOTHING, "most")
        return self

    @property
    def law(self) -> SizeLaw | None:
        """The distribution that the profile itself gives; None for a list or a file."""
        return PUBLISHED_SIZES[self.published].sizes if self.published else self.lognormal or self.pareto

    def is_drawn_from(self, law: SizeLaw) -> bool:
        """Whether enough of the distribution lies between the bounds."""
        low, high = law.between(self.least, self.most)
        return self.least == self.most or high - low >= _LEAST_PART
