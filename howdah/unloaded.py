# SPDX-License-Identifier: Apache-2.0
"""What a process of howdah's own does without, although it may be installed."""

from __future__ import annotations

import sys


class _WithoutPandas:
    """A finder of modules, asked before all others, in whose eyes pandas is not installed."""

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("howdah's own processes do without pandas", name=name)


def leave_pandas_out() -> None:
    """From now on this process cannot load pandas.

    pyarrow loads it, where it is installed, for the first array of numpy's or the first call of ``pyarrow.compute``.
    That takes longer than the analysis of a short run, and no command uses it.
    A program that imports howdah as a library keeps it.
    """
    sys.meta_path.insert(0, _WithoutPandas())
