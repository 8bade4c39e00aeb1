# SPDX-License-Identifier: Apache-2.0
"""Workers begin to import test files at different places, and end with all of them."""

from __future__ import annotations

import pytest

from tests.compiled import import_tests
from tests.durations import ROOT

PLACES = [ROOT / "tests" / "unit", ROOT / "tests" / "golden"]


def imported(worker: int, workers: int) -> list[str]:
    names: list[str] = []
    import_tests(PLACES, worker, workers, names.append)
    return names


def test_each_worker_begins_with_its_own_share_of_the_same_files() -> None:
    first, *others = [imported(worker, 3) for worker in range(3)]
    assert "tests.unit.test_compiled" in first
    assert len(first) == len(set(first)) > 200
    for number, names in enumerate(others, start=1):
        begin = len(first) * number // 3
        assert names == first[begin:] + first[:begin]


@pytest.mark.parametrize("error", [ImportError("no such module"), SyntaxError("invalid"), pytest.skip.Exception("no")])
def test_a_file_that_cannot_be_imported_is_left_to_the_collection(error: BaseException) -> None:
    names: list[str] = []

    def importing(name: str) -> None:
        names.append(name)
        raise error

    import_tests(PLACES, 0, 1, importing)
    assert names == imported(0, 1)
