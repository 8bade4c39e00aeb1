# SPDX-License-Identifier: Apache-2.0
"""The corners of a space that a search tries first: each variable that has an order has its least or largest value."""

from __future__ import annotations

import random
from typing import Any

from howdah.counterexample.space import Space


def corners(space: Space, chance: random.Random, most: int) -> list[dict[str, Any]]:
    """``most`` of them at the most, constraints apart; none where no variable has an order.

    All of them form an orthogonal array of strength two (Plackett and Burman 1946, doi 10.1093/biomet/33.4.305; here
    from Sylvester's matrix): for each pair of variables, equally many corners have each of its four pairs of ends.
    It has as many rows as the next power of two above the number of variables.
    Chance says which array it is, and chooses values that have no order.
    """
    ordered = [each for each in space.variables.values() if each.ordered and len(each.values) > 1]
    rows = 1 << len(ordered).bit_length()
    columns = chance.sample(range(1, rows), len(ordered))
    turned = [chance.randrange(2) for _ in ordered]  # whether both ends change places
    found = []
    for row in chance.sample(range(rows), min(rows, most)) if ordered else ():
        ends = [((row & column).bit_count() + turn) % 2 for column, turn in zip(columns, turned, strict=True)]
        chosen = {each.name: each.values[-end] for each, end in zip(ordered, ends, strict=True)}
        found.append(space.draw(chance, chosen))
    return found
