# SPDX-License-Identifier: Apache-2.0
"""Profiles: experiments written as YAML. ``load`` reads and checks one; ``Profile.cells`` lists its runs."""

from howdah.profile.load import load
from howdah.profile.profile import Cell, Profile

__all__ = ["Cell", "Profile", "load"]
