# SPDX-License-Identifier: Apache-2.0
"""Sizes of a group's connections, drawn from the distribution in the profile."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from random import Random

from howdah.errors import ProfileError
from howdah.profile import Cell
from howdah.profile.sizes import SizeLaw, SizesSection, WeightedSizes, read_sizes

Sampler = Callable[[Random], int]

_SMALLEST_SHARE = 1e-12  # the inverse of the normal distribution does not exist at 0 and 1


def sampler_of(cell: Cell, group: int) -> Sampler | None:
    """Return the function that draws a group's sizes; None if they are not drawn. Raise ProfileError."""
    sizes = cell.scenario.groups[group].sizes
    if sizes is None:
        return None
    if sizes.file is None:
        return sampler(sizes)
    place = ("groups", group, "sizes", "file")
    table = read_sizes(cell.absolute(sizes.file, *place), cell.place(*place))
    if isinstance(table, WeightedSizes):
        bound = next((name for name in ("least", "most") if name in sizes.model_fields_set), None)
        if bound is not None:
            what = f"{sizes.file} is a list, which has its sizes as they are; leave {bound} out"
            raise ProfileError(what, where=cell.place("groups", group, "sizes", bound))
        return _of_list(table)
    if not sizes.is_drawn_from(table):
        what = f"next to nothing of the distribution in {sizes.file} is between least and most"
        raise ProfileError(what, where=cell.place(*place))
    return _of_law(table, sizes)


def sampler(sizes: SizesSection) -> Sampler:
    """Return the function for sizes that are not in a file: a weighted list, or a law inverted between its bounds."""
    law = sizes.law
    if law is not None:
        return _of_law(law, sizes)
    return _of_list(
        WeightedSizes(tuple(each.size for each in sizes.listed), tuple(each.weight for each in sizes.listed))
    )


def _of_list(table: WeightedSizes) -> Sampler:
    cumulative = list(accumulate(table.weights))
    return lambda draw: draw.choices(table.sizes_bytes, cum_weights=cumulative)[0]


def _of_law(law: SizeLaw, sizes: SizesSection) -> Sampler:
    low, high = law.between(sizes.least, sizes.most)

    def drawn(draw: Random) -> int:
        share = low + (high - low) * draw.random()
        value = law.at(min(max(share, _SMALLEST_SHARE), 1 - _SMALLEST_SHARE))
        return min(max(round(value), sizes.least), sizes.most)

    return drawn
