# SPDX-License-Identifier: Apache-2.0
"""The public Python interface: ``howdah.load`` gives runs as tables, ``howdah.run`` makes runs (docs/library.md)."""

from howdah.library.data import Data
from howdah.library.opening import load, run
from howdah.library.recording import Recording
from howdah.library.rows import Rows

__all__ = ["Data", "Recording", "Rows", "load", "run"]
