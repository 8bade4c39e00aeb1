# SPDX-License-Identifier: Apache-2.0
"""Sizes of connections as tables: a list with weights, or a cumulative distribution by its points."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass


@dataclass(frozen=True)
class WeightedSizes:
    """These sizes alone, each as often as its weight says; one weight at least is above 0."""

    sizes_bytes: tuple[int, ...]
    weights: tuple[float, ...]


@dataclass(frozen=True)
class SizeDistribution:
    """``shares[i]`` of all connections have at most ``sizes_bytes[i]``; between two points sizes are spread evenly.

    Both never fall, and the last share is 1. The first share, and where a size is there twice the step between its
    shares, are connections of just that size.
    """

    sizes_bytes: tuple[int, ...]
    shares: tuple[float, ...]

    def between(self, least_bytes: int, most_bytes: int) -> tuple[float, float]:
        """The shares that are smaller than the one, and not larger than the other."""
        sizes = self.sizes_bytes
        return self._share(least_bytes, bisect_left(sizes, least_bytes)), self._share(
            most_bytes, bisect_right(sizes, most_bytes)
        )

    def at(self, share: float) -> float:
        """The size that this share does not exceed."""
        place = bisect_left(self.shares, share)
        if place == 0:
            return self.sizes_bytes[0]
        begin, end = self.shares[place - 1], self.shares[place]
        smaller, larger = self.sizes_bytes[place - 1], self.sizes_bytes[place]
        return smaller + (larger - smaller) * (share - begin) / (end - begin)

    def _share(self, size_bytes: int, place: int) -> float:
        """Up to a size, which is behind this number of points."""
        if place == 0:
            return 0.0
        if place == len(self.sizes_bytes):
            return 1.0
        smaller, larger = self.sizes_bytes[place - 1], self.sizes_bytes[place]
        begin, end = self.shares[place - 1], self.shares[place]
        return begin + (end - begin) * (size_bytes - smaller) / (larger - smaller)
