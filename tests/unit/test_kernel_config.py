# SPDX-License-Identifier: Apache-2.0
"""The kernel's wanted options, and what a tree is told when it does not take them."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.build.kernel_make import read_wanted, taken


def test_the_shipped_list_is_readable_and_each_option_stands_once() -> None:
    wanted = read_wanted()
    everything = wanted.required + wanted.optional
    assert len(everything) == len(set(everything))
    assert {"UML_TIME_TRAVEL_SUPPORT", "HOSTFS", "NET_SCH_NETEM", "MODULES"} <= set(wanted.required)
    assert "IPV6" not in everything


def test_sections_decide_what_is_required(tmp_path: Path) -> None:
    fragment = tmp_path / "kernel.config"
    fragment.write_text("CONFIG_A=y\n# [optional]\n# why\nCONFIG_B=y\n\n# [required]\nCONFIG_C=y\n")
    wanted = read_wanted(fragment=fragment)
    assert wanted.required == ("A", "C")
    assert wanted.optional == ("B",)


@pytest.mark.parametrize(
    ("release", "required"),
    [((5, 10), ("A", "OLD", "OLDER")), ((5, 15), ("A", "OLD")), ((6, 3), ("A",)), ((6, 12), ("A",)), ((), ("A",))],
)
def test_sections_for_older_releases(tmp_path: Path, release: tuple[int, ...], required: tuple[str, ...]) -> None:
    fragment = tmp_path / "kernel.config"
    fragment.write_text(
        "CONFIG_A=y\n# [required before 6.3]\nCONFIG_OLD=y\n# [required before 5.15]\nCONFIG_OLDER=y\n"
        "# [optional]\nCONFIG_B=y\n"
    )
    wanted = read_wanted(release, fragment)
    assert (wanted.required, wanted.optional) == (required, ("B",))
    assert wanted.fragment().splitlines() == [f"CONFIG_{name}=y" for name in (*required, "B")]


def test_a_part_for_newer_releases_leaves_the_others_as_they_are(tmp_path: Path) -> None:
    """So that their keys stay, and nobody builds them again."""
    fragment = tmp_path / "kernel.config"
    fragment.write_text("CONFIG_A=y\n# [optional]\nCONFIG_B=y\n")
    plain = {release: read_wanted(release, fragment).ingredients() for release in ((6, 12), (6, 17), (7, 3))}
    fragment.write_text("CONFIG_A=y\n# [optional]\nCONFIG_B=y\n# [optional from 6.17]\nCONFIG_NEW=y\n")
    assert read_wanted((6, 12), fragment).ingredients() == plain[6, 12]
    assert read_wanted((6, 17), fragment).optional == read_wanted((7, 3), fragment).optional == ("B", "NEW")
    assert read_wanted((), fragment).optional == ("B", "NEW")


@pytest.mark.parametrize(
    ("line", "expected"),
    [("CONFIG_A=n", "neither"), ("# [wished]", "no section"), ("# [required after 6.1]", "no section")],
)
def test_a_wrong_line_is_named_with_its_number(tmp_path: Path, line: str, expected: str) -> None:
    fragment = tmp_path / "kernel.config"
    fragment.write_text(f"CONFIG_B=y\n{line}\n")
    with pytest.raises(ValueError, match=rf":2: {expected}"):
        read_wanted(fragment=fragment)


def test_taken_counts_built_in_and_modules_only(tmp_path: Path) -> None:
    configuration = tmp_path / ".config"
    configuration.write_text('CONFIG_A=y\nCONFIG_B=m\n# CONFIG_C is not set\nCONFIG_D="y"\nCONFIG_HZ=100\n')
    assert taken(configuration) == {"A", "B"}
