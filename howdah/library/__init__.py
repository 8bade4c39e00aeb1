# SPDX-License-Identifier: Apache-2.0
"""Runs as tables for a program or a notebook, and made by one: ``howdah.load``, ``howdah.run`` (docs/library.md)."""

from howdah.library.data import Data
from howdah.library.opening import load, run
from howdah.library.recording import Recording
from howdah.library.rows import Rows

__all__ = ["Data", "Recording", "Rows", "load", "run"]
