# SPDX-License-Identifier: Apache-2.0
"""The atlas' extension of howdah (entry_points.txt): the command ``atlas``, and its entries as sets of profiles.

The help of howdah loads this module, so it imports the atlas in its functions.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from howdah.hooks import CommandEntry

if TYPE_CHECKING:
    from howdah.command.shape import CommandAnswer


def _add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    from howdah.atlas.command import add_parser

    add_parser(commands)


def _answers() -> Iterable[type[CommandAnswer]]:
    from howdah.atlas.command import ANSWERS

    return ANSWERS


def profiles_of_entries() -> Mapping[str, list[str]]:
    """Return the profiles that measure an entry, by its id and by ``atlas/ID``."""
    from howdah.atlas.catalogue import read_catalogue

    entries = {entry.id: entry.section.profiles for entry in read_catalogue().entries}
    return {**entries, **{f"atlas/{name}": profiles for name, profiles in entries.items()}}


COMMAND = CommandEntry(
    "run the published experiments, judge their claims, write the site",
    _add_parser,
    heading="run many experiments",
    answers=_answers,
)
