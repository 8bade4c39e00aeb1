# SPDX-License-Identifier: Apache-2.0
"""What a search may try: ranges in their units, constraints, and the profile of a candidate."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from howdah.counterexample.space import Space, read_space, slug
from howdah.counterexample.values import read_constraint, read_number, values_of
from howdah.errors import ProfileError
from howdah.profile import load
from howdah.profile.search import VariableSection

HEAD = """\
howdah: 1
name: sought
path: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}
algorithm: cubic
duration: 5 s
"""
STEPS = """\
search:
  space: {path.buffer: {from: 100 packets, to: 300 packets, step: 100 packets}}
  steps:
    count: COUNT
    lasts: {from: 500 ms, to: 2 s, step: 50 ms}
    rate: {from: 500 kbit/s, to: 10 Mbit/s, step: 500 kbit/s}
    rtt: {from: 2 ms, to: 60 ms, step: 2 ms}
  minimise: {metric: link_utilisation}
"""


def _range(**given: str) -> VariableSection:
    return VariableSection.model_validate({"from": given.pop("low"), "to": given.pop("high"), **given})


def _place(name: str) -> str:
    return f"p.yaml:{name}"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"low": "1 Mbit/s", "high": "2 Mbit/s", "step": "500 kbit/s"}, ["1 Mbit/s", "1.5 Mbit/s", "2 Mbit/s"]),
        ({"low": "500 kbit/s", "high": "2 Mbit/s", "step": "0.5 Mbit/s"},
         ["500 kbit/s", "1 Mbit/s", "1.5 Mbit/s", "2 Mbit/s"]),
        ({"low": "0.5 bdp", "high": "2 bdp", "step": "0.5 bdp"}, ["0.5 bdp", "1 bdp", "1.5 bdp", "2 bdp"]),
        ({"low": "1", "high": "4"}, [1, 2, 3, 4]),
        ({"low": "0 ms", "high": "1 ms", "step": "500 us"}, ["0 ms", "500 us", "1 ms"]),
        ({"low": "10 ms", "high": "14 ms", "scale": "log"}, ["10 ms", "11 ms", "12 ms", "13 ms", "14 ms"]),
    ],
)  # fmt: skip
def test_values_of_a_range(given: dict[str, str], expected: list[Any]) -> None:
    assert values_of(_range(**given), _place) == expected


def test_a_range_without_a_step_has_a_hundred_parts() -> None:
    assert len(values_of(_range(low="0 ms", high="1 s"), _place)) == 101
    assert len(values_of(_range(low="1", high="1000"), _place)) == 100


@pytest.mark.parametrize(
    ("given", "where", "what"),
    [
        ({"low": "2 Mbit/s", "high": "1 Mbit/s"}, "p.yaml:to", "empty"),
        ({"low": "2 Mbit/s", "high": "10 ms"}, "p.yaml:to", "different units"),
        ({"low": "2 Mbit/s", "high": "3 Mbit/s", "step": "1 ms"}, "p.yaml:step", "different units"),
        ({"low": "2 Mbit/s", "high": "3 Mbit/s", "step": "0 bit/s"}, "p.yaml:step", "larger than 0"),
        ({"low": "0 ms", "high": "3 ms", "scale": "log"}, "p.yaml:from", "above 0"),
        ({"low": "1 bit/s", "high": "1 Gbit/s", "step": "1 bit/s"}, "p.yaml:step", "1000000000 values"),
    ],
)
def test_a_range_that_is_none(given: dict[str, str], where: str, what: str) -> None:
    with pytest.raises(ProfileError, match=what) as raised:
        values_of(_range(**given), _place)
    assert raised.value.where == where


@pytest.mark.parametrize(
    ("text", "values", "holds"),
    [
        ("path.rate <= 0.5 * path.reverse_rate", {"path.rate": "1 Mbit/s", "path.reverse_rate": "2 Mbit/s"}, True),
        ("path.rate <= 0.4 * path.reverse_rate", {"path.rate": "1 Mbit/s", "path.reverse_rate": "2 Mbit/s"}, False),
        ("path.rtt > 20 ms", {"path.rtt": "20000 us"}, False),
        ("path.rtt >= 20 ms", {"path.rtt": "20000 us"}, True),
        ("path.rtt >= 1 Mbit/s", {"path.rtt": "2 s"}, False),
        ("path.rtt >= 1 ms", {}, False),
    ],
)
def test_constraints(text: str, values: dict[str, str], holds: bool) -> None:
    numbers = {name: number for name, value in values.items() if (number := read_number(value)) is not None}
    assert read_constraint(text, "p.yaml:3").holds(numbers) is holds


@pytest.mark.parametrize("text", ["path.rate", "path.rate = 3", "path.rate <= ", "a <= b <= c", "path.rate <= *"])
def test_what_is_no_constraint_is_told_with_its_line(text: str) -> None:
    with pytest.raises(ProfileError) as raised:
        read_constraint(text, "p.yaml:3")
    assert raised.value.where == "p.yaml:3"


def space_of(directory: Path, search: str, head: str = HEAD) -> Space:
    file = directory / "sought.yaml"
    file.write_text(head + search, encoding="utf-8")
    section = load(file).search
    assert section is not None
    return read_space(file, [], section)


def test_steps_make_a_schedule_that_lasts_as_long_as_they_do(tmp_path: Path) -> None:
    space = space_of(tmp_path, STEPS.replace("COUNT", "2"))
    assert space.size == 3 * (31 * 20 * 30) ** 2
    candidate = {
        "path.buffer": "200 packets",
        "step 1 lasts": "1.5 s",
        "step 1 rate": "1 Mbit/s",
        "step 1 rtt": "10 ms",
        "step 2 lasts": "500 ms",
        "step 2 rate": "1 Mbit/s",
        "step 2 rtt": "60 ms",
    }
    data = space.document(candidate).data
    assert data["path"]["rate"] == "1 Mbit/s"
    assert data["path"]["rtt"] == "10 ms"
    assert data["path"]["buffer"] == "200 packets"
    assert data["path"]["schedule"] == [{"at": "1.5 s", "rtt": "60 ms"}]  # the rate stays
    assert data["duration"] == "2 s"
    assert "search" not in data


def test_the_number_of_steps_may_be_open(tmp_path: Path) -> None:
    space = space_of(tmp_path, STEPS.replace("COUNT", "{from: 1, to: 3}"))
    one = 31 * 20 * 30
    assert space.size == 3 * (one + one**2 + one**3)
    drawn = [space.draw(random.Random(seed)) for seed in range(30)]
    assert {each["steps"] for each in drawn} == {1, 2, 3}
    for each in drawn:
        assert len(each) == 2 + 3 * each["steps"]
        assert len(space.document(each).data["path"].get("schedule", [])) <= each["steps"] - 1


def test_a_candidate_that_leaves_a_field_out_has_that_of_the_profile(tmp_path: Path) -> None:
    space = space_of(tmp_path, STEPS.replace("COUNT", "2"))
    assert space.document({}).data["path"] == {"rate": "10 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp"}
    assert slug({"a": 1, "b": "2 s"}) == slug({"b": "2 s", "a": 1}) != slug({"a": 1, "b": "3 s"})


_GOAL = "minimise: {metric: link_utilisation}"


def test_a_unit_may_be_written_as_profiles_may_write_it(tmp_path: Path) -> None:
    search = "search: {space: {path.rate: {from: 1 Mbps, to: 2 mbit}}, constraints: [path.rate > 1500 kbps], GOAL}"
    space = space_of(tmp_path, search.replace("GOAL", _GOAL))
    assert space.variables["path.rate"].values[0] == "1 Mbit/s"
    assert space.variables["path.rate"].values[-1] == "2 Mbit/s"
    assert [space.allows({"path.rate": rate}) for rate in ("1.5 Mbps", "1.6 Mbit/s")] == [False, True]


@pytest.mark.parametrize(
    ("search", "line", "what"),
    [
        ("search: {space: {path.jitter: [1 ms, 2 ms]}, GOAL}", 6, "no field 'jitter'"),
        ("search: {space: {path.rate: {from: 1 ms, to: 2 ms}}, GOAL}", 6, "cannot be 1 ms"),
        ("search: {space: {path.rate: {from: 1 Mbit/s, to: 2 kbit/s}}, GOAL}", 6, "empty"),
        ("search: {GOAL}", 6, "the space is empty"),
        ("search: {space: {path.rtt: [1 ms]}}", 6, "give one of falsify, maximise and minimise"),
        ("search: {space: {path.rtt: [1 ms]}, GOAL, budget: {counterexamples: 2}}", 6, "needs falsify"),
        ("search: {space: {path.rtt: [1 ms]}, GOAL, falsify: x}", 6, "give one of"),
        ("search:\n  space: {path.rtt: [1 ms]}\n  constraints: [path.rtt > 2 ms]\n  GOAL", 8,
         "meets the constraint path.rtt > 2 ms"),
        ("search:\n  space: {path.rtt: [1 ms, 9 ms]}\n  constraints: [path.rtt > 2 ms, path.rtt < 5 ms]\n  GOAL", 8,
         "meets all constraints together"),
        ("search:\n  space: {path.rtt: [1 ms]}\n  constraints: [path.rtt > 2]\n  GOAL", 8,
         "path.rtt has ms and 2 has none"),
        ("search: {space: {path.rtt: []}, GOAL}", 6, "one value at least"),
        ("search: {space: {path.rtt: {from: 1 ms, to: 2 ms, step: 1 s}}, GOAL}", 6, "longer than the range"),
        ("search: {space: {name: [a, b]}, GOAL}", 6, "no path, host or flow differs by it"),
        ("search: {space: {repetitions: [1, 2]}, GOAL}", 6, "a search sets it itself"),
        ("flows: [{name: one}]\nsearch:\n  space:\n    flows.1.size: [1 MB]\n    flows.one.size: [2 MB]\n  GOAL", 10,
         "flows.one.size is the same field as flows.1.size"),
        ("search: {space: {path.rtt: [1 ms]}, GOAL, budget: {time: 0 s}}", 6, "longer than 0"),
        ("search: {space: {path.rtt: [1 ms]}, GOAL, budget: {candidates: 0}}", 6, "greater than or equal to 1"),
        ("search:\n  space: {path.rtt: [1 ms]}\n  minimise: {metric: utilisation, than: {}}", 8, "the same"),
        ("search:\n  space: {path.rtt: [1 ms]}\n  minimise: {metric: utilisation, by: ratio}", 8,
         "give than as well"),
        ("search:\n  space: {path.rtt: [1 ms]}\n  constraints: [path.loss > 2 ms]\n  GOAL", 8, "names path.loss"),
        ("search:\n  space: {path.rtt: [1 ms]}\n  constraints: [path.rtt > path.rate]\n  GOAL", 8, "different kinds"),
        ("search:\n  space: {path.rtt: [1 ms]}\n  minimise: {metric: link_utilization}", 8, "link_utilisation"),
        ("search:\n  space: {path.rtt: [1 ms]}\n  minimise: {metric: exit_cause}", 8, "text"),
        ("search:\n  space: {path.rtt: [1 ms]}\n  minimise: {metric: exit_cwnd_bdp, flow: 2}", 8, "no flow 2"),
        ("search:\n  space: {path.rtt: [1 ms]}\n  falsify: nothing", 8, "no claim 'nothing'"),
        ("search:\n  space: {path.rtt: [1 ms], duration: [5 s]}\n  steps: {count: 1, lasts: {from: 1 s, to: 2 s}, "
         "rate: [1 Mbit/s]}\n  GOAL", 7, "steps also sets it"),
    ],
)  # fmt: skip
def test_a_search_that_cannot_be_is_told_before_the_first_run(
    tmp_path: Path, search: str, line: int, what: str
) -> None:
    with pytest.raises(ProfileError) as raised:
        space_of(tmp_path, search.replace("GOAL", _GOAL))
    told = f"{raised.value.what} {raised.value.hint}"
    assert what in told
    assert str(raised.value.where).endswith(f"sought.yaml:{line}")
