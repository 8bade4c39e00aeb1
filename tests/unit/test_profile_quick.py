# SPDX-License-Identifier: Apache-2.0
"""The section quick: of a profile: its runs are runs of the full experiment."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.errors import ProfileError
from howdah.plan.compile import compile_plan
from howdah.profile import load
from tests.claim_factory import CONTROLS, GOOD, RTTS, write_profile

QUICK = "quick: {repetitions: 2, path.rtt: 40ms}\n"


def test_quick_runs_are_runs_of_the_full_experiment(tmp_path: Path) -> None:
    """The same plans to the last byte, so that the keys are the same: quick runs are never made twice."""
    file = write_profile(tmp_path, GOOD, rtt=RTTS, extra=QUICK + CONTROLS)
    full = {compile_plan(cell).to_json() for cell in load(file).cells()}
    quick = [compile_plan(cell).to_json() for cell in load(file, quick=True).cells()]
    assert len(full) == 12 + 6
    assert len(quick) == 4 + 4
    assert set(quick) <= full


def test_one_quick_repetition_is_the_first_of_the_full_experiment(tmp_path: Path) -> None:
    """A profile of one repetition perturbs nothing, so its run would be another one."""
    file = write_profile(tmp_path, GOOD, rtt=RTTS, extra=QUICK.replace("2", "1", 1) + CONTROLS)
    full = {compile_plan(cell).to_json() for cell in load(file).cells() if cell.repetition == 0}
    profile = load(file, quick=True)
    quick = [compile_plan(cell) for cell in profile.cells()]
    assert profile.repetitions == 1
    assert len(quick) == 2 + 2
    assert {plan.to_json() for plan in quick} <= full
    assert all(plan.perturbation.applied for plan in quick)
    assert len(load(file, ["repetitions=3"], quick=True).cells()) == 3 * 4
    alone = [compile_plan(cell) for cell in load(file, ["repetitions=1"]).cells()]
    assert not any(plan.perturbation.applied for plan in alone)


@pytest.mark.parametrize(
    ("quick", "what"),
    [
        ("{repetitions: 4}", "quick asks for 4 repetitions, the full experiment for 3"),
        ("{path.rtt: 30 ms}", "quick sets path.rtt to 30 ms, which the full experiment does not have"),
        ("{duration: 5 s}", "quick sets duration to 5 s, which the full experiment does not have"),
        ("{path.loss: 1 %}", "quick sets path.loss to 1 %, which the full experiment does not have"),
    ],
)
def test_quick_changes_nothing_but_the_sweep(tmp_path: Path, quick: str, what: str) -> None:
    file = write_profile(tmp_path, "", rtt=RTTS, extra=f"quick: {quick}\n")
    with pytest.raises(ProfileError) as raised:
        load(file)
    assert what in raised.value.what
    assert raised.value.where == f"{file}:7"


def test_a_wrong_number_of_quick_repetitions_is_refused(tmp_path: Path) -> None:
    file = write_profile(tmp_path, "", rtt=RTTS, extra="quick: {repetitions: true}\n")
    with pytest.raises(ProfileError) as raised:
        load(file, quick=True)
    assert raised.value.where == f"{file}:7"


def test_a_quick_form_may_leave_the_cross_check_out(tmp_path: Path) -> None:
    file = write_profile(tmp_path, "", rtt=RTTS, extra="cross_check: {traffic: iperf3}\nquick: {cross_check: }\n")
    assert len(load(file).cells()) > len(load(file, quick=True).cells())


def test_a_profile_without_quick_has_no_quick_form(tmp_path: Path) -> None:
    with pytest.raises(ProfileError, match="no quick section"):
        load(write_profile(tmp_path, ""), quick=True)


def test_set_on_top_of_quick(tmp_path: Path) -> None:
    file = write_profile(tmp_path, GOOD, rtt=RTTS, extra=QUICK)
    profile = load(file, ["repetitions=3"], quick=True)
    assert (profile.repetitions, len(profile.cells())) == (3, 6)
    assert profile.axes == {"path.rtt": ["20 ms", "40 ms"], "algorithm": ["cubic", "reno"]}
    assert profile.is_quick
