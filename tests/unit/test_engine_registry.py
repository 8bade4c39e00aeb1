# SPDX-License-Identifier: Apache-2.0
"""An engine is the protocol and its traits: one that this test adds runs a plan through every stage."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from howdah.engine import registry
from howdah.engine.engine import BuildProgress, Lack, RunProgress
from howdah.errors import EngineUnavailableError, ProfileError
from howdah.place import COLLECTORS, PACKAGE
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.profile import load
from howdah.record.digest import remove_data
from howdah.record.directory import RunDirectory, read_json, write_json
from howdah.record.provenance import first_record
from howdah.record.run import EngineOrigin, EngineReport, KernelOrigin, TreeOrigin, write_record
from howdah.trait import _TRAITS, Traits, engines, traits
from howdah.work import stage
from tests.unit.plan_factory import on_engine
from tests.unit.recorded_run import make_recorded_run, recorded_plan

NAME = "replay"
TRAITS = Traits(virtual_clock=True)


class Replay:
    """Gives every plan the recording of tests/golden/raw/plain."""

    name = NAME
    parallel = True

    def lacks(self) -> list[Lack]:
        return []

    def prepare(self, plans: Sequence[Plan], progress: BuildProgress) -> dict[str, Any]:
        progress("replay", len(plans), len(plans))
        return {"engine": self.name}

    def run(self, directory: RunDirectory, plan: Plan, progress: RunProgress) -> EngineReport:
        progress("replay", 0, plan.duration_us)
        recording = make_recorded_run(directory.path / "recording", plan)
        directory.raw.rmdir()
        recording.raw.rename(directory.raw)
        return EngineReport(
            engine=EngineOrigin(name=self.name),
            kernel=KernelOrigin(release="6.12.0"),
            guest_tree=TreeOrigin(),
            modules={},
        )


@pytest.fixture
def replay(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(registry, "_FACTORIES", dict(registry._FACTORIES))
    monkeypatch.setattr("howdah.trait._TRAITS", dict(_TRAITS))
    registry.register(NAME, TRAITS, Replay)
    yield


@pytest.mark.usefixtures("replay")
def test_a_further_engine_is_known_to_profiles_plans_and_stages(tmp_path: Path) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(
        "howdah: 1\nname: small\npath: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}\n"
        f"algorithm: cubic\nduration: 2 s\nengine: {NAME}\n"
    )
    (cell,) = load(file).cells()
    plan = compile_plan(cell)
    assert (plan.engine, plan.traits) == (NAME, TRAITS)
    assert Plan.from_json(plan.to_json()) == plan, "the traits are part of the plan"

    directory = _recorded(tmp_path / "run")
    stage.execute(directory, lambda _phase, _done, _total: None)
    record = read_json(directory.provenance)
    assert (record["status"], record["engine"]["name"]) == ("finished", NAME)
    rows = {row["metric"]: row for row in read_json(directory.metrics)["rows"] if row["flow"] == 1}
    assert rows["exit_cause"]["value"] == "ack-train"
    assert rows["exit_cause"]["engine"] == NAME


def _recorded(path: Path) -> RunDirectory:
    directory = RunDirectory(path)
    directory.raw.mkdir(parents=True)
    recorded = on_engine(recorded_plan(), NAME)
    directory.plan.write_text(recorded.to_json())
    write_record(directory, first_record(recorded.to_json(), "key"))
    return directory


@pytest.mark.usefixtures("replay")
@pytest.mark.parametrize(("keep_data", "verdict"), [(True, "pass"), (False, "pass"), (False, "invalid")])
def test_data_are_compressed_where_they_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep_data: bool, verdict: str
) -> None:
    """Those of an invalid run do, whatever the profile keeps."""
    compressed: list[Path] = []
    monkeypatch.setattr(stage, "compress_raw", compressed.append)

    def judged(directory: RunDirectory, *_arguments: object) -> None:
        write_json(directory.verdict, {"format": 1, "verdict": verdict, "checks": []})
        write_json(directory.metrics, {"format": 1, "rows": []})

    monkeypatch.setattr("howdah.work.analysis.analyse", judged)
    directory = _recorded(tmp_path / "run")
    assert stage.execute(directory, lambda _phase, _done, _total: None, keep_data=keep_data) == verdict
    stays = keep_data or verdict == "invalid"
    assert compressed == ([directory.raw] if stays else [])
    assert any(name.startswith("raw/") for name in read_json(directory.provenance)["digests"]) == stays
    assert remove_data(directory) == (verdict == "pass")


@pytest.mark.usefixtures("replay")
def test_a_name_stands_for_one_engine() -> None:
    with pytest.raises(ValueError, match="other traits"):
        registry.register("uml", TRAITS, Replay)
    assert engines()[-1] == NAME


def test_an_unknown_engine_is_refused_with_the_names_there_are(tmp_path: Path) -> None:
    with pytest.raises(EngineUnavailableError, match="no engine called 'ulm'"):
        registry.engine("ulm")
    file = tmp_path / "small.yaml"
    file.write_text(
        "howdah: 1\nname: small\npath: {rate: 10 Mbit/s, rtt: 40 ms, buffer: 1 bdp}\n"
        "algorithm: cubic\nduration: 2 s\nengine: ulm\n"
    )
    with pytest.raises(ProfileError, match="expected one of uml, vm, machines, host, ns2") as refused:
        load(file)
    assert str(refused.value.where).endswith("small.yaml:6")


def test_every_engine_has_traits_and_a_factory() -> None:
    assert set(engines()) == set(registry._FACTORIES)


def _compares_an_engine(node: ast.Compare) -> bool:
    """Whether one side speaks of an engine and another is an engine's name, or a list with one."""
    sides = [node.left, *node.comparators]
    names = {item.value for side in sides for item in ast.walk(side) if isinstance(item, ast.Constant)}
    return bool(names & set(engines())) and any("engine" in ast.unparse(side) for side in sides)


def test_nothing_asks_for_an_engines_name_outside_its_package() -> None:
    found = [
        f"{path.name}:{node.lineno}"
        for root in (PACKAGE, COLLECTORS)
        for path in root.rglob("*.py")
        if PACKAGE / "engine" not in path.parents
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare) and _compares_an_engine(node)
    ]
    assert found == [], "ask the engine's traits (howdah/trait.py)"
    probe = ast.parse('plan.engine == "uml"').body[0]
    assert isinstance(probe, ast.Expr)
    assert isinstance(probe.value, ast.Compare)
    assert _compares_an_engine(probe.value), "the search finds what it is for"


def test_a_machine_in_real_time_has_no_virtual_clock() -> None:
    assert traits("vm").finite_processor
    assert not traits("vm", real_time=True).finite_processor
