# SPDX-License-Identifier: Apache-2.0
"""A short run of the fuzzer for every plug-in; the same number of lives each time, from the same seed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.decision.build import compiler_for_fuzzing, plug_ins, program
from tests.decision.fuzz import NO_CLANG, fuzz
from tests.decision.runner import source_of

RUNS = ("-runs=3000", "-seed=1")
Target = Callable[[Path], Path]


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    clang = compiler_for_fuzzing()
    if clang is None:
        pytest.skip(NO_CLANG)
    directory = tmp_path_factory.mktemp("fuzz")
    return lambda source: program(source, directory, fuzzer=clang)


@pytest.mark.parametrize("plug_in", plug_ins())
def test_no_life_breaks_a_rule(target: Target, tmp_path: Path, plug_in: str) -> None:
    outcome = fuzz(target(source_of(plug_in)), tmp_path / "found", *RUNS)
    assert outcome.ok, outcome.explain()
