# SPDX-License-Identifier: Apache-2.0
"""Runs as tables for a program or a notebook: ``howdah.load``. docs/library.md shows how."""

from howdah.library.data import Data, load
from howdah.library.rows import Rows

__all__ = ["Data", "Rows", "load"]
