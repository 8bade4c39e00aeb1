# SPDX-License-Identifier: Apache-2.0
"""Sizes of connections as tables: a list with weights, or a cumulative distribution by its points.

``PUBLISHED_SIZES`` are distributions of others, by the points that their artifacts have of them. The papers show
curves. The points are those that simulators read off them, and between two points all of them spread sizes evenly, as
:class:`SizeDistribution` does."""

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


@dataclass(frozen=True)
class PublishedSizes:
    """``source`` is the publication, and where its points are."""

    words: str
    source: str
    sizes: SizeDistribution


def _of(*points: tuple[int, float]) -> SizeDistribution:
    sizes, percent = zip(*points, strict=True)
    return SizeDistribution(sizes, tuple(each / 100 for each in percent))


PUBLISHED_SIZES = {
    "web-search": PublishedSizes(
        "flows of a search engine's cluster",
        "M. Alizadeh et al., Data Center TCP (DCTCP), SIGCOMM 2010, Fig. 4, also pFabric, SIGCOMM 2013, Fig. 4a; "
        "points of github.com/HKUST-SING/TrafficGenerator, conf/DCTCP_CDF.txt",
        _of((0, 0), (10_000, 15), (20_000, 20), (30_000, 30), (50_000, 40), (80_000, 53), (200_000, 60),
            (1_000_000, 70), (2_000_000, 80), (5_000_000, 90), (10_000_000, 97), (30_000_000, 100)),
    ),
    "data-mining": PublishedSizes(
        "flows of a cluster for data mining",
        "A. Greenberg et al., VL2, SIGCOMM 2009, Fig. 2, also pFabric, SIGCOMM 2013, Fig. 4b; points of "
        "github.com/HKUST-SING/TrafficGenerator, conf/VL2_CDF.txt",
        _of((0, 0), (180, 10), (216, 20), (560, 30), (900, 40), (1100, 50), (1870, 60), (3160, 70), (10_000, 80),
            (400_000, 90), (3_160_000, 95), (100_000_000, 98), (1_000_000_000, 100)),
    ),
    "facebook-hadoop": PublishedSizes(
        "flows of Facebook's Hadoop cluster",
        "A. Roy et al., Inside the Social Network's (Datacenter) Network, SIGCOMM 2015; points of HPCC, SIGCOMM 2019: "
        "github.com/alibaba-edu/High-Precision-Congestion-Control, traffic_gen/FbHdp_distribution.txt",
        _of((0, 0), (100, 1), (200, 2), (300, 5), (350, 15), (400, 20), (500, 30), (600, 40), (700, 50), (1000, 60),
            (2000, 67), (7000, 70), (30_000, 72), (50_000, 82), (80_000, 87), (120_000, 90), (300_000, 95),
            (1_000_000, 97.5), (2_000_000, 99), (10_000_000, 100)),
    ),
}  # fmt: skip
