# SPDX-License-Identifier: Apache-2.0
"""What tests of the agent share: plans of the quick profile, and guests that run them or a script of the tests."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from howdah.build.cache import Cache
from howdah.codec import encoded
from howdah.engine.ending import Ending
from howdah.engine.share import build_agent
from howdah.engine.uml.build import Built
from howdah.engine.uml.guest import Guest, boot
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.profile import load
from howdah.record.agent import AgentRecord
from tests.guest.guest_kit import make_guest
from tests.unit.told_by_agent import read_as

ROOT = Path(__file__).parents[2]


def quick_plan(algorithm: str = "cubic", overrides: list[str] | None = None) -> Plan:
    """The quick profile's plan for one algorithm."""
    settings = [f"algorithm={algorithm}", *(overrides or [])]
    (cell,) = load(ROOT / "profiles" / "quick.yaml", settings).cells()
    return compile_plan(cell)


def stage(built: Built, share: Path, plan: dict[str, Any]) -> None:
    """share/ as an engine stages it, with what either wiring needs: byte code, the planning code and the topologies."""
    shutil.copytree(build_agent("mininet", built.tree, built.tools, Cache()), share, dirs_exist_ok=True)
    shutil.copyfile(Path(__file__).with_name("network_dump.py"), share / "network_dump.py")
    (share / "modules").mkdir()
    for module in built.modules:
        shutil.copyfile(module.file, share / "modules" / f"{module.name}.ko")
    (share / "plan.json").write_text(json.dumps(plan))


def run_agent(built: Built, directory: Path, plan: Plan | dict[str, Any], *command: str) -> Ending:
    """Boot a guest that runs the agent (or ``command``) on the plan; results are in ``directory``/raw."""
    return boot(agent_guest(built, directory, plan, *command), lambda _phase, _done, _of: None)


def agent_guest(built: Built, directory: Path, plan: Plan | dict[str, Any], *command: str) -> Guest:
    """A guest that runs the agent (or ``command``) on the plan; its results will be in ``directory``/raw."""
    value = encoded(plan) if isinstance(plan, Plan) else plan
    share = directory / "share"
    share.mkdir(parents=True)
    stage(built, share, value)
    return make_guest(
        built,
        directory,
        "",
        command=command or ("/usr/bin/python3", "-S", "-m", "howdah.agent"),
        memory_bytes=max(value["guest_memory_bytes"], 512 << 20),
        wall_clock_limit_s=300.0,
        seed=1,
    )


def report(directory: Path) -> dict[str, Any]:
    """agent.json, of which every field is in its model."""
    value: dict[str, Any] = json.loads((directory / "raw" / "agent.json").read_text())
    assert [*undescribed(read_as(AgentRecord, value), value)] == []
    return value


def undescribed(model: Any, value: Any) -> Iterator[str]:
    """Fields of a JSON value that its model does not have."""
    if dataclasses.is_dataclass(model):
        known = {field.name for field in dataclasses.fields(model)}
        for name, content in value.items():
            if name not in known:
                yield f"{type(model).__name__} lacks {name}"
            else:
                yield from undescribed(getattr(model, name), content)
    elif isinstance(model, dict):
        for name, content in value.items():
            yield from undescribed(model[name], content)
    elif isinstance(model, list):
        for part, content in zip(model, value, strict=True):
            yield from undescribed(part, content)
