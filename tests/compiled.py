# SPDX-License-Identifier: Apache-2.0
"""Test files are compiled once for all workers of xdist, not once by each of them.

In a fresh clone most of a collection is that pytest compiles the files, with what it tells about a failed assertion.
All workers collect in the same order, so each compiled every file before another one had written it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import pytest

from tests.durations import ROOT


def import_tests(
    directories: Sequence[Path], worker: int, workers: int, importing: Callable[[str], object] = import_module
) -> None:
    """Import all test files below directories of the repository; each worker begins with a share of its own.

    A file that cannot be imported is left to the collection, which says why.
    """
    files = sorted(file.relative_to(ROOT) for directory in directories for file in directory.rglob("test_*.py"))
    begin = len(files) * worker // workers
    for file in [*files[begin:], *files[:begin]]:
        try:
            importing(".".join(file.with_suffix("").parts))
        except (Exception, pytest.skip.Exception):  # noqa: BLE001 -- any error of any file
            continue
