# SPDX-License-Identifier: Apache-2.0
"""A short run of the fuzzer for every plug-in; the same number of lives each time, from the same seed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.decision.build import compiler_for_fuzzing, plug_ins, program
from tests.decision.fuzz import NO_CLANG, fuzz
from tests.decision.lived import once
from tests.decision.runner import source_of

RUNS = ("-runs=3000", "-seed=1")


@pytest.fixture(scope="module")
def clang() -> str:
    found = compiler_for_fuzzing()
    if found is None:
        pytest.skip(NO_CLANG)
    return found


@pytest.mark.parametrize("plug_in", plug_ins())
def test_no_life_breaks_a_rule(clang: str, tmp_path: Path, plug_in: str) -> None:
    def live() -> None:
        outcome = fuzz(program(source_of(plug_in), tmp_path, fuzzer=clang), tmp_path / "found", *RUNS)
        assert outcome.ok, outcome.explain()

    once(source_of(plug_in), " ".join(["fuzz", *RUNS]), live, fuzzer=clang)
