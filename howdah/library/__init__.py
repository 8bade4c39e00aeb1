# SPDX-License-Identifier: Apache-2.0
"""Runs as tables for a program or a notebook, and made by one: ``howdah.load``, ``howdah.run`` (docs/library.md)."""

from howdah.library.data import Data, load
from howdah.library.making import run
from howdah.library.rows import Rows

__all__ = ["Data", "Rows", "load", "run"]
