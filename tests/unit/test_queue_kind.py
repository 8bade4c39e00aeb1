# SPDX-License-Identifier: Apache-2.0
"""A kind of queue is one file: what else knows kinds finds it by the name of that file."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from howdah.linux.netlink import discipline
from howdah.linux.netlink.discipline import queues
from howdah.place import PROJECT

KINDS = sorted(kind.kind for kind in queues().values() if not kind.fills)
_PACKAGE = Path(discipline.__file__).parent

# A queue that there is not, with all that a kind has: parameters, options, encoding, words, and what a kernel tells.
QUEUE = """\
from __future__ import annotations

from typing import ClassVar

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import HopQueue, Parameters, parameter
from howdah.linux.netlink.message import u32


@planned
class DrainParameters(Parameters):
    \"\"\"Drain: forgets what has waited for ``after``.\"\"\"

    after: int = parameter("30 ms", "wait", "duration")


@planned
class Drain(HopQueue):
    kind: ClassVar[str] = "drain"
    name: ClassVar[str] = "drain"
    parameters_class: ClassVar[type[Parameters]] = DrainParameters
    reported = {"limit": "limit_packets"}

    limit_packets: int
    after_us: int

    @classmethod
    def from_parameters(cls, values, hop):
        return cls(hop.packets, values.after)

    def encode(self):
        return u32(1, self.limit_packets) + u32(2, self.after_us)

    def words(self):
        return ["limit", self.limit_packets, "after", self.after_us]
"""
SCRIPT = """\
import sys
from pathlib import Path

from howdah.linux.netlink import discipline

discipline.__path__.append(sys.argv[1])

from howdah.linux.netlink import qdisc
from howdah.plan.reference import table
from howdah.profile.reference import page
from howdah.profile.schema import json_schema
from tests.unit.profile_factory import make_one, operations

plan = make_one(Path(sys.argv[2]), "", ["path.queue={kind: drain, after: 7 ms}", "path.buffer=100 packets"])
(leaf,) = operations(plan, "qdisc", interface="left-eth0", handle="10:")
print(leaf.lines()[0])
print(discipline.make_discipline(leaf.arguments()["kind"], leaf.arguments()["options"]).encode().hex())
print(table())
print("- `drain`:" in page(), "DrainQueueSection" in json_schema()["$defs"])
"""


def _strings(tree: ast.AST) -> set[str]:
    """Words of a module's texts, without those that nothing reads: docstrings."""
    dead = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in dead
    ]
    return {word for text in texts for word in re.findall(r"\w+", text)}


def _imports(tree: ast.AST) -> set[str]:
    prefix = f"{discipline.__name__}."
    modules = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {module.removeprefix(prefix) for module in modules if module.startswith(prefix)}


@cache
def _named() -> dict[Path, set[str]]:
    """Of each module of the product: the words by which it could know a kind."""
    found = {}
    for directory in ("howdah", "collectors"):
        for path in (PROJECT / directory).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            # A kind that is made of another stands beside it, and is no place that the other's author has to look at.
            found[path] = _strings(tree) | (set() if path.parent == _PACKAGE else _imports(tree))
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_named_in_its_own_file_alone(kind: str) -> None:
    # "red" is a colour, too.
    colours = {PROJECT / "howdah" / "command" / "doctor.py", PROJECT / "howdah" / "export" / "xplot.py"}
    files = {path for path, words in _named().items() if kind in words} - (colours if kind == "red" else set())
    assert files == {_PACKAGE / f"{kind}.py"}


def test_a_file_is_all_that_a_kind_needs(tmp_path: Path) -> None:
    """Profile, plan, the kernel's bytes, tc's words and the references have a kind whose file is added."""
    kinds = tmp_path / "kinds"
    kinds.mkdir()
    (kinds / "drain.py").write_text(QUEUE, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(kinds), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    line, options, *rows, documented = done.stdout.splitlines()
    assert line.endswith("drain limit 100 after 7000")
    assert options == "08000100" + "64000000" + "08000200" + "581b0000"
    assert "| `drain` | `limit_packets`, `after_us` |" in rows
    assert documented == "True True"
