# SPDX-License-Identifier: Apache-2.0
"""A kind of traffic is a row and a driver: nothing else of the product has to know its name."""

from __future__ import annotations

import ast
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.agent.traffic.driver import FlowDriver
from howdah.place import PROJECT
from howdah.traffic import TRAFFIC
from tests.unit.trace_factory import make_flow

# A kind that there is not, between the last two rows; its program is one that every machine has.
ROW = """\
    TrafficKind(
        "drip",
        selectable=True,
        versions={"drip": ("echo", "drip 1.0")},
        packages=("drip", "libdrip"),
        sender_connects=True,
        needs_time="drip runs for a time",
    ),
"""
DRIVER = """\
from howdah.agent.traffic.driver import FlowDriver


class DripFlow(FlowDriver):
    def __init__(self, description, namespaces, loop, output):
        self.description = description

    prepare = start = stop = finished = record = close = None


DRIVER = DripFlow
"""
SCRIPT = """\
import importlib.util
import json
import sys
from pathlib import Path

here = Path(sys.argv[1])
found = importlib.util.spec_from_file_location("howdah.traffic", here / "traffic.py")
module = importlib.util.module_from_spec(found)
sys.modules["howdah.traffic"] = module
found.loader.exec_module(module)

import howdah.agent.traffic

howdah.agent.traffic.__path__.append(str(here / "drivers"))

from howdah.agent.provenance import tool_versions
from howdah.build.guest_tree import packages_of_plan, packages_of_traffic
from howdah.engine.vm.first import needs_whole_tree
from howdah.errors import ProfileError
from howdah.plan.plan import Plan
from howdah.profile.reference import page
from tests.unit.profile_factory import make_one

TRAFFIC = "traffic: {source: drip, sink: drip}\\n"


def refusal(extra):
    try:
        make_one(here, extra)
    except ProfileError as error:
        return str(error)


plan = Plan.from_json(make_one(here, TRAFFIC).to_json())
(flow,) = plan.flows
driver = howdah.agent.traffic.make_flow(flow, {flow.sender: None, flow.receiver: None}, None, None)
print(json.dumps({
    "ends": [flow.traffic, flow.sink],
    "driver": type(driver).__name__,
    "versions": tool_versions(plan.flows, tc=True)["drip"],
    "packages": packages_of_plan(plan),
    "tree": packages_of_traffic("drip"),
    "whole": needs_whole_tree(plan),
    "reference": "`flent`, `drip`" in page(),
    "opener": refusal(TRAFFIC + "flows: [{opener: receiver}]\\n"),
    "size": refusal(TRAFFIC + "flows: [{size: 1 MB}]\\n"),
    "one end": refusal("traffic: {source: drip, sink: kernel}\\n"),
}))
"""
# Where in-kernel traffic is something else than traffic of a process: its module, its cost, the instant of its window.
_IN_KERNEL = {
    "howdah/agent/traffic/generated.py",
    "howdah/measure/rounds.py",
    "howdah/plan/compile.py",
    "howdah/work/cost.py",
}
_HALVES = {"howdah/agent/traffic/half.py"}  # of iperf3, whose two programs may be on two machines


def test_a_row_and_a_driver_are_all_that_a_kind_needs(tmp_path: Path) -> None:
    """Profile, plan, driver, versions, packages, the reference, and what is refused follow from them."""
    text = (PROJECT / "howdah" / "traffic.py").read_text(encoding="utf-8")
    last = '    TrafficKind("stack")'
    assert last in text
    (tmp_path / "traffic.py").write_text(text.replace(last, ROW + last), encoding="utf-8")
    (tmp_path / "drivers").mkdir()
    (tmp_path / "drivers" / "drip.py").write_text(DRIVER, encoding="utf-8")
    done = subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert "with drip it is the sender that connects" in found.pop("opener")
    assert "drip runs for a time" in found.pop("size")
    assert "drip speaks a protocol of its own" in found.pop("one end")
    assert found == {
        "ends": ["drip", "drip"],
        "driver": "DripFlow",
        "versions": "drip 1.0",
        "packages": ["drip", "libdrip"],
        "tree": [["drip", "libdrip"]],
        "whole": True,
        "reference": True,
    }


def test_no_module_compares_with_the_name_of_a_kind() -> None:
    """A comparison with a name is a place that the author of a kind has to find; traits are asked instead."""
    found = {
        path.relative_to(PROJECT).as_posix()
        for directory in ("howdah", "collectors")
        for path in (PROJECT / directory).rglob("*.py")
        if any(map(_compares, ast.walk(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert found == _IN_KERNEL | _HALVES


def _compares(node: ast.AST) -> bool:
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    ends = any(isinstance(side, ast.Attribute) and side.attr in ("traffic", "sink", "source") for side in sides)
    texts = [each.value for side in sides for each in ast.walk(side) if isinstance(each, ast.Constant)]
    return ends and any(text in TRAFFIC for text in texts)


def test_a_kind_that_there_is_not_is_named() -> None:
    flow = make_flow(traffic="iperf4")
    with pytest.raises(ValueError, match=r"no traffic 'iperf4'; known: kernel, iperf3"):
        _ = flow.kind


def test_each_kind_with_a_protocol_of_its_own_has_a_driver() -> None:
    for kind in TRAFFIC.values():
        if not kind.single and kind.name not in ("model", "recorded", "stack"):
            assert issubclass(importlib.import_module(f"howdah.agent.traffic.{kind.name}").DRIVER, FlowDriver)
