# SPDX-License-Identifier: Apache-2.0
"""The planted faults fit the plug-ins as they are, and each is a profile with a search."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("optuna", reason="optuna is not installed")

from howdah.counterexample.space import read_space
from howdah.profile import load
from howdah.work.compiled import compile_plans
from tests.guest.planted_faults import FAULTS, PLUG_INS, Fault, plant


def test_each_has_its_own_name() -> None:
    assert len({fault.name for fault in FAULTS}) == len(FAULTS) > 0


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_each_fault_can_be_planted_and_sought(tmp_path: Path, fault: Fault) -> None:
    # The kernel's file is no part of this repository: the benchmark reads it from the kernel's package.
    text = (PLUG_INS / fault.file).read_text() if fault.is_plug_in else f'.name = "cubic",\n{fault.old}\n'
    profile = plant(fault, text, tmp_path)
    (module,) = tmp_path.glob("*.c")
    changed = module.read_text()
    assert changed != text
    assert fault.new in changed
    assert ('.name = "faulty"' in changed) == fault.is_plug_in
    loaded = load(profile)
    assert loaded.search is not None
    assert read_space(profile, [], loaded.search).size > 1000
    names = [plan.flows[0].kernel_algorithm for plan in compile_plans(loaded)]
    assert len(names) == 2
    assert fault.is_plug_in == (names[1] == "faulty_reno")


def test_a_text_that_is_not_there_once_is_told(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="2 times"):
        plant(FAULTS[0], FAULTS[0].old * 2, tmp_path)
