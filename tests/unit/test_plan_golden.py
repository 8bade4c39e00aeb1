# SPDX-License-Identifier: Apache-2.0
"""Plans as text, compared with recorded ones.

After a wanted change run HOWDAH_RECORD=1 pytest tests/unit/test_plan_golden.py, and read the difference.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from howdah.codec import encoded
from howdah.errors import HowdahError
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.plan.text import render
from howdah.profile import load
from howdah.profile.profile import to_yaml
from howdah.record.reading import check_steps, read_plan_file
from howdah.work.compiled import compile_plans
from tests.unit.plan_cases import PLANNED, REFUSED, TRACE, Asked
from tests.unit.profile_factory import write_profile
from tests.unit.recorded_lines import compare

ROOT = Path(__file__).resolve().parents[2]
PROFILES = sorted(file for file in (ROOT / "profiles").rglob("*.yaml") if file.parent.name != "suites")
GOLDEN = ROOT / "tests" / "golden" / "plans"
RECORDED = [
    ("quick", "cubic-r0"),
    ("quick", "reno-r0"),
    ("long-fat-400mbit-240ms", "cubic-no-hystart-r1"),
    ("long-fat-400mbit-240ms", "bbr-r0"),
]


@pytest.mark.parametrize(("name", "run"), RECORDED)
def test_plans_are_as_recorded(name: str, run: str) -> None:
    profile = load(ROOT / "profiles" / f"{name}.yaml")
    (cell,) = [cell for cell in profile.cells() if cell.run == run]
    text = render(compile_plan(cell))
    file = GOLDEN / f"{name}.{run}.txt"
    if os.environ.get("HOWDAH_RECORD"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def _plan_of(place: Path, asked: Asked) -> Plan:
    """Of its last cell."""
    (place / "trace.csv").write_text(TRACE, encoding="utf-8")
    extra = to_yaml(YAML(typ="safe").load(asked.extra) or {}) if asked.extra else ""  # a line for each field
    profile = load(write_profile(place, extra), asked.overrides)
    return [compile_plan(cell, asked.engine) for cell in profile.cells()][-1]


def _facts(value: Any, name: str = "") -> Iterator[str]:
    """``path.mtu_bytes: 1500``, one a line; of a list of sections each is a line."""
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from _facts(each, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield from (f"{name}: {json.dumps(each, ensure_ascii=False)}" for each in value)
    else:
        yield f"{name}: {json.dumps(value, ensure_ascii=False)}"


def _lines(plan: Plan, place: Path) -> list[str]:
    """What is written and what is shown, wherever the profile lies."""
    found = [*_facts(json.loads(plan.to_json())), *render(plan).splitlines()]
    return [line.replace(str(place), "PLACE").replace(str(ROOT), "ROOT") for line in found]


@pytest.mark.parametrize("name", PLANNED)
def test_everything_that_a_plan_can_hold(name: str, tmp_path: Path) -> None:
    """Every field and every line of its text; of all but the base what the base does not have, and what only it has."""
    plan = _plan_of(tmp_path, PLANNED[name])
    (tmp_path / "plan.json").write_text(plan.to_json(), encoding="utf-8")
    assert read_plan_file(tmp_path / "plan.json") == plan
    lines = _lines(plan, tmp_path)
    if name != "base":
        base = _lines(_plan_of(tmp_path, PLANNED["base"]), tmp_path)
        here, there = set(lines), set(base)
        lines = [*(f"- {line}" for line in base if line not in here), *(line for line in lines if line not in there)]
    compare(f"plans/fields/{name.replace(' ', '-')}.txt", lines)


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_plan_can_be_made_of_is_told_whole(name: str, tmp_path: Path) -> None:
    """The message with its place and what to do: these are the words that a reader has."""
    with pytest.raises(HowdahError) as caught:
        _plan_of(tmp_path, REFUSED[name])
    said = str(caught.value).replace(str(tmp_path), "PLACE").replace(str(ROOT), "ROOT")
    compare(f"plans/refused/{name.replace(' ', '-')}.txt", said.splitlines())


def _is_part(value: Any, whole: Any) -> bool:
    """Whether nothing differs but that fields are left out; their order counts, too."""
    if isinstance(value, dict):
        names = [name for name in whole if name in value]
        return [*value] == names and all(_is_part(value[name], whole[name]) for name in names)
    if isinstance(value, list):
        return len(value) == len(whole) and all(map(_is_part, value, whole))
    return type(value) is type(whole) and value == whole


@pytest.mark.parametrize("file", PROFILES, ids=lambda file: file.stem)
def test_every_shipped_profile_can_be_planned(file: Path, tmp_path: Path) -> None:
    profile = load(file)
    assert profile.name == file.stem, "a profile is found by its name"
    assert profile.description
    cells = profile.cells()
    runs = [cell.run for cell in cells]
    assert len(set(runs)) == len(runs)
    # Repetitions differ by their perturbation alone: the first of each point is planned, and the last of all.
    plans = [compile_plan(cell) for cell in cells if not cell.repetition or cell is cells[-1]]
    seen: set[tuple[str, object]] = set()
    for plan in plans:
        assert plan.duration_us <= 120_000_000 or file.parent.name == "atlas"  # papers wait as long as they wait
        # What is written and shown follows each value, whatever the others are.
        values = {("algorithm", plan.algorithm), *plan.axes.items()}
        if not values <= seen:
            assert Plan.from_json(plan.to_json()) == plan
            assert render(plan)
        seen |= values
    for plan in (plans[0], plans[-1]):
        bare = dataclasses.replace(plan, operations=[], timeline=[])  # which say themselves how they are written
        assert _is_part(encoded(bare), dataclasses.asdict(bare)), "runs are known by these bytes"
        check_steps(plan)
        (tmp_path / "plan.json").write_text(plan.to_json(), encoding="utf-8")
        assert read_plan_file(tmp_path / "plan.json") == plan


def test_the_default_experiment_is_what_it_says() -> None:
    plans = compile_plans(load(ROOT / "profiles" / "long-fat-400mbit-240ms.yaml"))
    algorithms = ["cubic-no-hystart", "cubic", "reno", "bbr"]
    runs = [f"{name}-r{number}" for name in algorithms for number in range(3)]
    assert [plan.run for plan in plans] == [*runs, "cubic-iperf3-r0"]
    for plan in plans:
        assert plan.path.rate_bits_per_second == 400_000_000
        assert plan.path.buffer_bytes == 12_000_000
        assert plan.path.rtt_us == pytest.approx(240_000, rel=0.005)
        first, second = plan.flows
        assert second.start_us - first.start_us > 25_000_000
        assert plan.duration_us == 60_000_000


def test_the_satellite_states_its_source() -> None:
    plans = compile_plans(load(ROOT / "profiles" / "geo-144mbit-600ms.yaml"))
    for plan in plans:
        assert plan.path.buffer_bytes == 36_000_000
        assert plan.path.delay_variation is not None
        assert "Modelling choice" in str(plan.path.delay_variation.asked["source"])
        drawn = plan.path.delay_variation.drawn["reverse"]
        assert drawn["standard_deviation_us"] == pytest.approx(10_000, rel=0.3)


def test_long_runs_of_changes_are_shortened_but_counted() -> None:
    cell = load(ROOT / "profiles" / "geo-144mbit-600ms.yaml").cells()[0]
    plan = compile_plan(cell)
    changes = sum(item.op == "qdisc" for item in plan.timeline)
    short, whole = render(plan), render(plan, every_change=True)
    assert whole.count("qdisc change") == changes
    shown = short.count("qdisc change")
    hidden = sum(int(line.split()[1]) for line in short.splitlines() if "more changes of delay" in line)
    assert shown + hidden == changes
    assert shown < 20
