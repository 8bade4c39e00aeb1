# SPDX-License-Identifier: Apache-2.0
"""What howdah's own processes avoid: pandas, even if it is installed, and frequent garbage collection."""

from __future__ import annotations

import gc
import sys

# Thresholds of the garbage collector's generations. What a command loads stays until it ends: scanning it as often as
# Python does by default takes a tenth of a short command's time.
_RARELY = (20_000, 20, 100)


class _WithoutPandas:
    """A module finder, first in the list, that reports pandas as not installed."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("howdah's own processes do without pandas", name=name)


def leave_pandas_out() -> None:
    """Prevent this process from loading pandas.

    If pandas is installed, pyarrow loads it for the first numpy array or the first call of ``pyarrow.compute``. That
    takes longer than the analysis of a short run, and no command uses it. A program that imports howdah as a library
    keeps it.
    """
    sys.meta_path.insert(0, _WithoutPandas())


def is_own_process() -> bool:
    """Return whether this is one of howdah's own processes, so that only howdah's code runs in it."""
    return any(isinstance(finder, _WithoutPandas) for finder in sys.meta_path)


def collect_rarely() -> None:
    gc.set_threshold(*_RARELY)
