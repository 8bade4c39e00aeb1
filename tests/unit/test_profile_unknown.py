# SPDX-License-Identifier: Apache-2.0
"""``unknown:`` and ``quick:``: which points and runs an experiment has, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.errors import ProfileError
from howdah.plan.compile import compile_plan
from howdah.profile import Profile, load
from tests.claim_factory import CONTROLS, GOOD, RTTS, write_profile

HEAD = """\
howdah: 1
name: made
path: {rate: 100 Mbit/s, rtt: [20 ms, 40 ms], buffer: 100 packets}
algorithm: [cubic, reno]
duration: 10 s
repetitions: 3
"""
RATE = "path-rate: {what: slower than the interface, field: path.rate, values: [95 Mbit/s, 90 Mbit/s]}"
LOAD = "load: {what: other flows, settings: {one-flow: {background: [{algorithm: reno}]}}}"


def made(directory: Path, unknown: str, *, unknowns: bool = True) -> Profile:
    file = directory / "made.yaml"
    file.write_text(HEAD + f"unknown: {unknown}\n", encoding="utf-8")
    return load(file, unknowns=unknowns)


def test_the_grid_has_every_combination_but_the_default(tmp_path: Path) -> None:
    profile = made(tmp_path, f"{{fields: {{{RATE}, {LOAD}}}}}")
    assert [point.at for point in profile.grid] == [
        {"path-rate": "100 Mbit/s", "load": "one-flow"},
        {"path-rate": "95 Mbit/s", "load": "as in the profile"},
        {"path-rate": "95 Mbit/s", "load": "one-flow"},
        {"path-rate": "90 Mbit/s", "load": "as in the profile"},
        {"path-rate": "90 Mbit/s", "load": "one-flow"},
    ]
    assert len(profile.cells()) == 4 * 3 * (1 + 5)


def test_a_run_of_the_grid_has_its_settings_and_the_axis(tmp_path: Path) -> None:
    profile = made(tmp_path, f"{{fields: {{{RATE}, {LOAD}}}}}")
    plan = compile_plan(profile.cells()[-1])
    assert plan.axes["unknown"] == "path-rate 90 Mbit/s, load one-flow"
    assert plan.path.rate_bits_per_second == 90_000_000
    assert [flow.algorithm for flow in plan.flows if flow.role == "background"] == ["reno"]
    runs = [cell.run for cell in profile.cells()]
    assert len(set(runs)) == len(runs)


def test_its_runs_are_there_only_where_they_are_asked_for(tmp_path: Path) -> None:
    without = made(tmp_path, f"{{fields: {{{RATE}}}}}", unknowns=False)
    assert len(without.grid) == 2
    assert len(without.cells()) == 12
    assert not any("unknown" in cell.axes for cell in without.cells())


def test_a_grid_of_fewer_repetitions_at_some_points_of_the_sweep(tmp_path: Path) -> None:
    profile = made(tmp_path, f"{{repetitions: 2, at: {{path.rtt: 20 ms}}, fields: {{{RATE}}}}}")
    open_runs = [cell for cell in profile.cells() if "unknown" in cell.axes]
    assert len(open_runs) == 2 * 2 * 2
    assert {cell.repetition for cell in open_runs} == {0, 1}
    assert {cell.axes["path.rtt"] for cell in open_runs} == {"20 ms"}


def test_the_quick_part_may_have_fewer_repetitions_than_the_grid(tmp_path: Path) -> None:
    file = tmp_path / "made.yaml"
    more = f"quick: {{repetitions: 2}}\nunknown: {{repetitions: 3, fields: {{{RATE}}}}}\n"
    file.write_text(HEAD + more, encoding="utf-8")
    assert len(load(file, quick=True).cells()) == 4 * 2
    assert len(load(file, ["repetitions=2"]).cells()) == 4 * 2
    one = tmp_path / "one.yaml"
    one.write_text(HEAD + more.replace("quick: {repetitions: 2}", "quick: {repetitions: 1}"), encoding="utf-8")
    assert {cell.repetition for cell in load(one, quick=True, unknowns=True).cells()} == {0}
    with pytest.raises(ProfileError, match="the grid asks for 3 repetitions, the profile for 2"):
        load(file, ["repetitions=2"], unknowns=True)


def test_the_default_among_the_values_is_no_further_one(tmp_path: Path) -> None:
    everything = "a: {what: x, field: path.rate, values: [100Mbit/s, 95 Mbit/s]}"
    assert len(made(tmp_path, f"{{fields: {{{everything}}}}}").grid) == 1


@pytest.mark.parametrize(
    ("unknown", "words"),
    [
        ("{fields: {a: {what: x, field: path.rtt, values: [30 ms]}}}", "path.rtt is swept"),
        ("{fields: {a: {what: x, field: path.rate}}}", "values is missing"),
        ("{fields: {a: {what: x}}}", "give field with values, or settings"),
        ("{fields: {}}", "nothing is open"),
        ("{fields: {a: {what: x, field: path.rate, values: [95 parsecs]}}}", "95 parsecs"),
        ("{fields: {a: {what: x, field: path.raet, values: [1 Mbit/s]}}}", "raet"),
        ("{fields: {a: {what: x, field: path.rate, values: [[1 Mbit/s]]}}}", "single values"),
        ("{repetitions: 4, fields: {a: {what: x, field: path.rate, values: [1 Mbit/s]}}}", "4 repetitions"),
        ("{repetitions: 1, fields: {a: {what: x, field: path.rate, values: [1 Mbit/s]}}}", "no interval"),
        ("{at: {path.rtt: 30 ms}, fields: {a: {what: x, field: path.rate, values: [1 Mbit/s]}}}", "never 30 ms"),
        ("{fields: {a: {what: x, settings: {b: {path.rate: [1 Mbit/s, 2 Mbit/s]}}}}}", "sweeps path.rate"),
        (
            f"{{fields: {{a: {{what: x, field: path.rate, values: {[f'{n} Mbit/s' for n in range(1, 70)]}}}}}}}",
            "more than 64",
        ),
    ],
)
def test_what_is_refused_before_anything_runs(tmp_path: Path, unknown: str, words: str) -> None:
    with pytest.raises(ProfileError, match=words) as refused:
        made(tmp_path, unknown, unknowns=False)
    assert "made.yaml:7" in str(refused.value)


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
