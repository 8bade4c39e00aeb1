# SPDX-License-Identifier: Apache-2.0
"""How sizes of a group's connections are distributed: a list with weights, a file, lognormal, Pareto, or what others
have published."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal, Protocol

from pydantic import Field, model_validator

from howdah.profile.field import Bytes, FieldError, Section, Text, fixed
from howdah.profile.size_table import PUBLISHED_SIZES

MOST_SIZES = 1000
_LEAST_PART = 1e-6  # of a distribution, within least and most
_KINDS = ("listed", "file", "lognormal", "pareto", "published")
_NOTHING = "next to nothing of the distribution is between least and most"


class SizeLaw(Protocol):
    """A distribution that can be cut: the shares between which a size is within two bounds, and the size at a share."""

    def between(self, least_bytes: int, most_bytes: int) -> tuple[float, float]: ...

    def at(self, share: float) -> float: ...


class WeightedSizeSection(Section):
    """One size of a list."""

    size: Bytes = Field(ge=1, description="bytes of a connection")
    weight: float = Field(default=1, ge=0, le=1e12, description="how often, in proportion to the other weights")


class LognormalSection(Section):
    """F(x) = Φ(ln(x / median) / sigma)."""

    median: Bytes = Field(ge=1, description="half of all connections are smaller")
    sigma: float = Field(gt=0, le=10, description="standard deviation of the natural logarithm")

    def between(self, least_bytes: int, most_bytes: int) -> tuple[float, float]:
        return self._below(least_bytes), self._below(most_bytes)

    def _below(self, size_bytes: int) -> float:
        return NormalDist().cdf(math.log(size_bytes / self.median) / self.sigma)

    def at(self, share: float) -> float:
        """The size below which this share is."""
        return self.median * math.exp(self.sigma * NormalDist().inv_cdf(share))


class ParetoSection(Section):
    """F(x) = 1 - (scale / x)^shape from scale on."""

    scale: Bytes = Field(ge=1, description="the smallest connection")
    shape: float = Field(gt=0, le=100, description="the smaller, the longer the tail; at most 1: the mean is infinite")

    def between(self, least_bytes: int, most_bytes: int) -> tuple[float, float]:
        return self._below(least_bytes), self._below(most_bytes)

    def _below(self, size_bytes: int) -> float:
        return float(1 - (self.scale / max(size_bytes, self.scale)) ** self.shape)

    def at(self, share: float) -> float:
        """The size below which this share is."""
        return float(self.scale * (1 - share) ** (-1 / self.shape))


class SizesSection(Section):
    """Sizes drawn for each connection from the seed and the repetition, the same for each algorithm: one of ``listed``,
    ``file``, ``lognormal``, ``pareto`` and ``published``. Of a distribution only what is between ``least`` and ``most``
    is drawn."""

    listed: list[WeightedSizeSection] = Field(default_factory=list, max_length=MOST_SIZES, description="these sizes")
    file: Text | None = Field(
        default=None,
        description="a CSV, relative to the profile, of size (bytes, or with a unit) and weight, which is a list; or "
        "of size and cdf, the share of connections of at most that size, which is a distribution: from row to row it "
        "grows evenly",
    )
    lognormal: LognormalSection | None = Field(default=None, description="F(x) = Φ(ln(x / median) / sigma)")
    pareto: ParetoSection | None = Field(default=None, description="F(x) = 1 - (scale / x)^shape from scale on")
    published: Literal["web-search", "data-mining", "facebook-hadoop"] | None = Field(
        default=None, description="a distribution that others have published (docs/traffic.md has the sources)"
    )
    least: Bytes = Field(
        default=1, ge=1, description="smallest size of a distribution", json_schema_extra={"x-default": "1 B"}
    )
    most: Bytes = Field(
        default=1_000_000_000,
        description="largest size of a distribution",
        json_schema_extra={"x-default": "1 GB"},
    )
    source: Text | None = fixed(None, description="where the numbers come from: a publication, a measurement, a choice")

    @model_validator(mode="after")
    def _one(self) -> SizesSection:
        if sum(bool(getattr(self, kind)) for kind in _KINDS) != 1:
            raise FieldError(f"expected one of {', '.join(_KINDS[:-1])} and {_KINDS[-1]}")
        if self.listed and not any(each.weight for each in self.listed):
            raise FieldError("all weights are 0: no size can be drawn", "listed")
        if self.listed and (bound := next((name for name in ("least", "most") if name in self.model_fields_set), None)):
            raise FieldError(f"a list has its sizes as they are; leave {bound} out", bound)
        if self.law is not None or self.file is not None:
            if self.least > self.most:
                raise FieldError("the largest size is smaller than the smallest", "most")
            if self.law is not None and not self.is_drawn_from(self.law):
                raise FieldError(_NOTHING, "most")
        return self

    @property
    def law(self) -> SizeLaw | None:
        """The distribution that the profile itself says; None of a list, and of a file."""
        return PUBLISHED_SIZES[self.published].sizes if self.published else self.lognormal or self.pareto

    def is_drawn_from(self, law: SizeLaw) -> bool:
        """Whether enough of it is between the bounds."""
        low, high = law.between(self.least, self.most)
        return self.least == self.most or high - low >= _LEAST_PART
