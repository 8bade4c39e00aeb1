# SPDX-License-Identifier: Apache-2.0
"""How the sizes of a group's connections are distributed: a list with weights, lognormal, or Pareto."""

from __future__ import annotations

import math
from statistics import NormalDist

from pydantic import Field, model_validator

from howdah.profile.field import Bytes, FieldError, Section, Text, fixed

MOST_SIZES = 1000
_LEAST_PART = 1e-6  # of a distribution, within least and most


class WeightedSizeSection(Section):
    """One size of a list."""

    size: Bytes = Field(ge=1, description="bytes of a connection")
    weight: float = Field(default=1, ge=0, le=1e12, description="how often, in proportion to the other weights")


class LognormalSection(Section):
    """F(x) = Φ(ln(x / median) / sigma)."""

    median: Bytes = Field(ge=1, description="half of all connections are smaller")
    sigma: float = Field(gt=0, le=10, description="standard deviation of the natural logarithm")

    def below(self, size_bytes: int) -> float:
        return NormalDist().cdf(math.log(size_bytes / self.median) / self.sigma)

    def at(self, share: float) -> float:
        """The size below which this share is."""
        return self.median * math.exp(self.sigma * NormalDist().inv_cdf(share))


class ParetoSection(Section):
    """F(x) = 1 - (scale / x)^shape from scale on."""

    scale: Bytes = Field(ge=1, description="the smallest connection")
    shape: float = Field(gt=0, le=100, description="the smaller, the longer the tail; at most 1: the mean is infinite")

    def below(self, size_bytes: int) -> float:
        return float(1 - (self.scale / max(size_bytes, self.scale)) ** self.shape)

    def at(self, share: float) -> float:
        """The size below which this share is."""
        return float(self.scale * (1 - share) ** (-1 / self.shape))


class SizesSection(Section):
    """Sizes drawn for each connection from the seed and the repetition, the same for each algorithm: one of ``listed``,
    ``lognormal`` and ``pareto``. Of a distribution only what is between ``least`` and ``most`` is drawn."""

    listed: list[WeightedSizeSection] = Field(default_factory=list, max_length=MOST_SIZES, description="these sizes")
    lognormal: LognormalSection | None = Field(default=None, description="a lognormal distribution")
    pareto: ParetoSection | None = Field(default=None, description="a Pareto distribution")
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
        if bool(self.listed) + (self.lognormal is not None) + (self.pareto is not None) != 1:
            raise FieldError("expected one of listed, lognormal and pareto")
        if self.listed and not any(each.weight for each in self.listed):
            raise FieldError("all weights are 0: no size can be drawn", "listed")
        law = self.lognormal or self.pareto
        if law is not None:
            if self.least > self.most:
                raise FieldError("the largest size is smaller than the smallest", "most")
            if self.least < self.most and law.below(self.most) - law.below(self.least) < _LEAST_PART:
                raise FieldError("next to nothing of the distribution is between least and most", "most")
        return self
