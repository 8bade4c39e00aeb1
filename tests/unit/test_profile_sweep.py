# SPDX-License-Identifier: Apache-2.0
"""Sweeps: lists in fields of one value, all combinations, names fit for directories."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from howdah.errors import ProfileError
from howdah.profile import load
from howdah.profile.control import axis_key
from howdah.profile.source import Document, parse_yaml, read_document
from howdah.profile.sweep import Point, Points, count_cells, find_axes

BASE = """\
howdah: 1
name: swept
path: {rate: 10 Mbit/s, rtt: 20 ms}
duration: 2 s
"""


def _write(tmp_path: Path, extra: str = "") -> Path:
    file = tmp_path / "swept.yaml"
    file.write_text(BASE + extra)
    return file


def test_two_lists_make_all_combinations_in_document_order(tmp_path: Path) -> None:
    file = _write(tmp_path, "algorithm: [cubic, reno]\nrepetitions: 2\n")
    cells = load(file, ["path.rate=[10 Mbit/s, 0.5 Gbit/s]"]).cells()
    assert [cell.run for cell in cells] == [
        "10mbit-cubic-r0",
        "10mbit-cubic-r1",
        "10mbit-reno-r0",
        "10mbit-reno-r1",
        "0.5gbit-cubic-r0",
        "0.5gbit-cubic-r1",
        "0.5gbit-reno-r0",
        "0.5gbit-reno-r1",
    ]
    assert cells[-1].axes == {"path.rate": "0.5 Gbit/s", "algorithm": "reno"}
    assert cells[-1].scenario.path.rate == 500_000_000
    assert [cell.repetition for cell in cells] == [0, 1] * 4


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("1 MB", "1mb", True),
        ("1 MB", "1MB", True),
        ("400 Mbit/s", "400mbit", True),
        ("0.5 Gbit/s", "0.5gbit", True),
        ("0.5 %", "0.5percent", True),
        ("100 ms", "100ms", True),
        ("1 bdp", "1bdp", True),
        (10, "10", True),
        ("1 MB", "11mb", False),
        ("0.5 MB", "5mb", False),
        ("1 MB", "1 MiB", False),
        ("1 ms", "1 s", False),
        ("a_b", "a-b", False),
        ("./linux", "linux", False),
        ("Cubic", "cubic", False),
    ],
)
def test_a_value_may_be_spelled_as_in_the_name_of_its_run(one: object, other: str, same: bool) -> None:
    assert (axis_key(one) == axis_key(other)) is same


def test_a_claim_speaks_of_a_point_in_the_words_of_its_run(tmp_path: Path) -> None:
    file = _write(tmp_path, "flows: [{size: [300 kB, 1 MB]}]\n")
    claim = (
        "claims=[{id: a, says: it, value: {metric: completion_time_s, at: {flows.1.size: %s}}, expect: {below: 1 s}}]"
    )
    load(file, [claim % "1mb"])
    with pytest.raises(ProfileError, match=r"flows\.1\.size is never 3mb in this profile"):
        load(file, [claim % "3mb"])


def test_without_a_sweep_the_algorithm_names_the_run(tmp_path: Path) -> None:
    (cell,) = load(_write(tmp_path)).cells()
    assert (cell.run, cell.axes) == ("cubic-r0", {})


def test_fields_inside_lists_can_be_swept(tmp_path: Path) -> None:
    file = _write(tmp_path, "flows:\n  - start: 0 s\n  - start: [500 ms, 1 s]\n")
    cells = load(file).cells()
    assert [cell.scenario.flows[1].start for cell in cells] == [500_000, 1_000_000]
    assert cells[0].axes == {"flows.2.start": "500 ms"}


def test_list_fields_are_not_sweeps(tmp_path: Path) -> None:
    file = _write(tmp_path, "sources: [a, b]\ncollect: {pcap: [s1:s1-eth0, r1:r1-eth0]}\n")
    (cell,) = load(file).cells()
    assert cell.scenario.sources == ["a", "b"]


@pytest.mark.parametrize(
    ("extra", "what"),
    [
        ("repetitions: [1, 2]\n", "repetitions cannot be swept"),
        ("algorithm: []\n", "algorithm is an empty list"),
        ("algorithm: [cubic, [reno]]\n", "algorithm sweeps over single values; this is a list"),
        ("algorithm: [cubic, {a: b}]\n", "algorithm sweeps over single values; this is a mapping"),
        ("algorithm: [cubic, reno, cubic]\n", "algorithm lists cubic twice"),
    ],
)
def test_lists_that_are_no_sweep(tmp_path: Path, extra: str, what: str) -> None:
    with pytest.raises(ProfileError, match=re.escape(what)) as caught:
        load(_write(tmp_path, extra))
    assert caught.value.where == f"{tmp_path / 'swept.yaml'}:5"


def test_an_error_in_one_value_of_a_sweep_points_at_it(tmp_path: Path) -> None:
    file = _write(tmp_path, "algorithm:\n  - cubic\n  - renoo\n")
    with pytest.raises(ProfileError, match="no algorithm 'renoo'") as caught:
        load(file)
    assert caught.value.where == f"{file}:7"
    file = _write(tmp_path, "seed:\n  - 1\n  - -1\n")
    with pytest.raises(ProfileError) as caught:
        load(file)
    assert caught.value.where == f"{file}:7"


def test_a_large_sweep_is_refused_with_its_size_unless_confirmed(tmp_path: Path) -> None:
    file = _write(tmp_path, f"seed: [{', '.join(map(str, range(251)))}]\nalgorithm: [cubic, reno]\nrepetitions: 2\n")
    with pytest.raises(ProfileError, match=r"1004 runs \(251 of seed x 2 of algorithm x 2 repetitions\)"):
        load(file)
    assert len(load(file, confirmed_runs=1004).cells()) == 1004
    with pytest.raises(ProfileError, match="more than 1000") as caught:
        load(file, confirmed_runs=1003)
    assert "--confirm-runs 1003 is not their number" in str(caught.value)
    assert "--confirm-runs 1004" in str(caught.value)


def test_a_sweep_of_a_million_points_is_refused_before_it_is_expanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def expanded(*_: object) -> Iterator[Point]:
        raise AssertionError("the sweep was expanded")

    monkeypatch.setattr(sys.modules["howdah.profile.load"], "Points", expanded)
    many = ", ".join(map(str, range(1000)))
    file = _write(tmp_path, f"seed: [{many}]\nflows:\n  - initial_window: [{', '.join(map(str, range(1, 1001)))}]\n")
    with pytest.raises(ProfileError, match="1000000 runs"):
        load(file)


def test_a_long_list_is_read_in_little_work(tmp_path: Path) -> None:
    """Looking for a value that is listed twice must not compare each with all before it."""
    file = _write(tmp_path, f"seed: [{', '.join(map(str, range(15_000)))}]\n")
    document = read_document(file)
    texts = 0

    class Counted(int):
        def __str__(self) -> str:
            nonlocal texts
            texts += 1
            return int.__repr__(self)

    document.data["seed"] = [Counted(value) for value in document.data["seed"]]
    assert len(find_axes(document)[0].values) == 15_000
    assert texts <= 2 * 15_000


_WORD = st.text(alphabet="abcXYZ019 ./%-_µ", min_size=1, max_size=12).filter(lambda text: text.strip() == text)
_VALUES = st.lists(st.one_of(_WORD, st.integers(0, 99)), min_size=1, max_size=4, unique_by=str)


@settings(deadline=None)
@given(algorithms=_VALUES, kernels=_VALUES, seeds=st.lists(st.integers(0, 9), min_size=1, max_size=3, unique=True))
def test_points_are_the_cartesian_product_with_unique_names(
    algorithms: list[object], kernels: list[object], seeds: list[int]
) -> None:
    data = {"algorithm": algorithms, "path": {"rate": kernels}, "seed": seeds}
    document = Document(data, {(): "x:1"})
    axes = find_axes(document)
    assert [axis.name for axis in axes] == ["algorithm", "path.rate", "seed"]
    made = list(Points(document, axes))
    assert len(made) == count_cells(axes, 1) == len(algorithms) * len(kernels) * len(seeds)
    expected = [(a, k, s) for a, k, s in itertools.product(algorithms, kernels, seeds)]
    assert [(p["algorithm"], p["path"]["rate"], p["seed"]) for p in (each.document.data for each in made)] == expected
    slugs = [point.slug for point in made]
    assert len(set(slugs)) == len(slugs)
    for slug in slugs:
        assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*", slug)
        assert len(slug) <= 110
    assert document.data["algorithm"] == algorithms, "the document itself is unchanged"


def test_a_value_written_with_a_point_keeps_its_digits() -> None:
    data, places = parse_yaml("kernel: [6.1, 6.10]\n", "x")
    axes = find_axes(Document(data, places))
    assert [str(value) for value in axes[0].values] == ["6.1", "6.10"]


CASES = """\
case:
  near: {path.rtt: 10 ms, duration: 1 s}
  far: {path.rtt: 200 ms, path.schedule: [{at: 1 s, rate: 5 Mbit/s}]}
"""


CLAIM = """\
case: {{one: {{path.rtt: 5 ms}}}}
claims:
  - {{id: a, says: it, expect: {{above: 1 %}},
      value: {{metric: utilisation, at: {{{}}}}}}}
"""


def test_a_case_sets_several_fields_and_is_one_axis(tmp_path: Path) -> None:
    found = load(_write(tmp_path, CASES + "algorithm: [cubic, reno]\nquick: {case: [far]}\n"))
    assert found.axes == {"case": ["near", "far"], "algorithm": ["cubic", "reno"]}
    seen = [(cell.run, cell.scenario.path.rtt, cell.scenario.duration) for cell in found.cells()]
    assert seen == [
        ("near-cubic-r0", 10_000, 1_000_000),
        ("near-reno-r0", 10_000, 1_000_000),
        ("far-cubic-r0", 200_000, 2_000_000),
        ("far-reno-r0", 200_000, 2_000_000),
    ]
    assert [len(cell.scenario.path.schedule) for cell in found.cells()] == [0, 0, 1, 1]
    assert found.cells()[2].axes == {"case": "far", "algorithm": "cubic"}
    quick = load(tmp_path / "swept.yaml", quick=True)
    assert [cell.run for cell in quick.cells()] == ["far-cubic-r0", "far-reno-r0"]


@pytest.mark.parametrize(
    ("cases", "line", "what"),
    [
        ("case: {one: {path.rtt: 10 mz}}\n", 5, "path.rtt: expected a duration"),
        ("case:\n  one: {path.rate: 1 Mbit/s}\n  two:\n    path.rte: 5 ms\n", 8, "there is no field 'rte' in path"),
        ("case:\n  one: {keep: first}\n", 6, "keep belongs to the whole profile, and a case cannot set it"),
        ("case:\n  one: {}\n", 6, "case.one changes nothing; expected field.field: value"),
        ("case:\n  One: {duration: 1 s}\n", 6, "case: 'One' is not a name"),
        ("case: {}\n", 5, "case has 0 cases; expected 1 to 1000"),
        ("case: [one]\n", 5, "case: expected a mapping of names to values, not a list"),
        ("case:\n  one: {algorithm: reno}\nalgorithm: [cubic, reno]\n", 6, "case.one sets algorithm, and algorithm is"),
        ("case:\n  one: {path: {rate: 1 Mbit/s, rtt: 1 ms}}\n  two: {path.rtt: [1 ms, 2 ms]}\n", 7, "path.rtt"),
        ("case:\n  one: {path.rtt: 5 ms}\nquick: {case: [two]}\n", 7, "quick sets case to two"),
        (
            "case:\n  one: {flows.b.start: 1 s}\nflows: [{}, {name: b, start: [2 s, 3 s]}]\n",
            6,
            "case.one sets flows.b.start, and flows.2.start is swept",
        ),
        (CLAIM.format("path.rtt: 5 ms"), 8, "case decides path.rtt"),
        (CLAIM.format("case: one, path: 5 ms"), 8, "case decides path"),
    ],
)
def test_a_case_that_cannot_be_names_its_line(tmp_path: Path, cases: str, line: int, what: str) -> None:
    file = _write(tmp_path, cases)
    with pytest.raises(ProfileError) as raised:
        load(file)
    assert raised.value.where == f"{file}:{line}"
    assert what in raised.value.what


@pytest.mark.parametrize("name", ["path.rtt", "path", "path.schedule.1.rate"])
def test_what_a_case_sets_is_set_in_no_other_way(tmp_path: Path, name: str) -> None:
    with pytest.raises(ProfileError, match=rf"{name} would change nothing: case\.(near|far) sets path\."):
        load(_write(tmp_path, CASES), [f"{name}=7 ms"])
    control = f"controls:\n  other: {{what: another, set: {{{name}: 7 ms}}}}\n"
    with pytest.raises(ProfileError, match="would change nothing"):
        load(_write(tmp_path, CASES + control))


def test_a_member_of_a_list_is_the_same_by_name_and_by_number(tmp_path: Path) -> None:
    file = _write(tmp_path, "case: {one: {flows.b.start: 1 s}}\nflows: [{}, {name: b}]\n")
    for name in ("flows.b.start", "flows.2.start"):
        with pytest.raises(ProfileError, match="would change nothing"):
            load(file, [f"{name}=2 s"])


def test_a_case_may_leave_to_others_what_it_does_not_set(tmp_path: Path) -> None:
    found = load(_write(tmp_path, CASES), ["path.rate=3 Mbit/s"])
    assert {cell.scenario.path.rate for cell in found.cells()} == {3_000_000}
