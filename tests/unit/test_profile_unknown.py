# SPDX-License-Identifier: Apache-2.0
"""unknown: which points a grid has, their runs, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.errors import ProfileError
from howdah.plan.compile import compile_plan
from howdah.profile import Profile, load

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
