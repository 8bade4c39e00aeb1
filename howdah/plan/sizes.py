# SPDX-License-Identifier: Apache-2.0
"""Sizes of a group's connections, drawn from what the profile says of them."""

from __future__ import annotations

from random import Random

from howdah.profile.sizes import SizesSection

_SMALLEST_SHARE = 1e-12  # the normal distribution has no value at 0 and 1


def drawn_size_bytes(sizes: SizesSection, draw: Random) -> int:
    """One size: from the list by its weights, or by inverting the distribution between its bounds."""
    law = sizes.lognormal or sizes.pareto
    if law is None:
        weights = [each.weight for each in sizes.listed]
        return int(draw.choices(sizes.listed, weights)[0].size)
    low, high = law.below(sizes.least), law.below(sizes.most)
    share = low + (high - low) * draw.random()
    value = law.at(min(max(share, _SMALLEST_SHARE), 1 - _SMALLEST_SHARE))
    return min(max(round(value), sizes.least), sizes.most)
