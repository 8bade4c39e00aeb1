# SPDX-License-Identifier: Apache-2.0
"""Whether a suite could prove anything, before anything is built or run: its comparisons against its repetitions."""

from __future__ import annotations

from collections.abc import Container

from howdah.errors import ProfileError
from howdah.nightly.significance import PRIMARY_ALPHA, can_prove, comparisons_provable, least_p, pairs_to_prove
from howdah.nightly.suite import Suite, SuiteExperiment, Wanted, slugs_of


def primary_comparisons(series: SuiteExperiment, slugs: Container[str] | None = None) -> int:
    """Of the cells with these names (None: all), at most, as far as the profile tells."""
    known = {point.slug: point.scenario for point in series.profile.points}
    wanted = [slug for slug in dict.fromkeys(slugs_of(series)) if slugs is None or slug in slugs]
    return sum(series.measures.most_comparisons(known[slug]) for slug in wanted)


def check_provable(suite: Suite, wanted: Wanted, nights: int = 1) -> None:
    """Refuse a night, or so many that are corrected together, if it could not tell a change of a primary measure from
    chance, however large it were.

    Raises ProfileError with the line of the suite that has too few repetitions, and how many it takes.
    """
    asked = [one for one in suite.series if one.name in wanted and one.claims is None]  # claims are not tested here
    tests = nights * sum(primary_comparisons(one, wanted[one.name]) for one in asked)
    for one in asked:
        pairs = one.profile.repetitions
        if can_prove(tests, pairs, PRIMARY_ALPHA):
            continue
        least = least_p(pairs)
        room = comparisons_provable(pairs, PRIMARY_ALPHA)
        few = f"{room} comparison{'' if room == 1 else 's'} at most" if room else "not one comparison"
        raise ProfileError(
            f"{pairs} repetitions can prove no change: the smallest p-value that they can give is {least:.2g}, "
            f"corrected for {tests} primary comparisons {min(1.0, tests * least):.2g}, and it has to be below "
            f"{PRIMARY_ALPHA:g}",
            where=one.place,
            hint=f"Make it {pairs_to_prove(tests, PRIMARY_ALPHA)} repetitions. Or name fewer measures with primary: "
            f"(or fewer cells): {pairs} repetitions serve {few}.",
        )
