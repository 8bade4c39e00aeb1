# SPDX-License-Identifier: Apache-2.0
"""The agent's modules in one file: what is in it comes from it, and the rest is found as always."""

from __future__ import annotations

import marshal
import os
import subprocess
import sys
from pathlib import Path

import pytest

from howdah.agent.start import BUNDLE, LATER
from howdah.build import bundle
from howdah.engine.share import copy_agent

_BUNDLER = Path(bundle.__file__)
_START = "howdah/agent/start.py"


def _run(agent: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(agent), "PYTHONHASHSEED": "0"}
    return subprocess.run(
        [sys.executable, "-S", "-B", *command], env=environment, cwd=agent, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its directory, bundled by this Python as for a guest that calls it the same."""
    found = tmp_path_factory.mktemp("an agent").resolve()
    copy_agent(found)
    done = _run(found, str(_BUNDLER), str(found), str(found), sys.base_prefix, str(found / BUNDLE))
    assert done.returncode == 0, done.stderr
    return found


def test_the_agent_starts_without_its_sources(agent: Path, tmp_path: Path) -> None:
    for file in (agent / "howdah").rglob("*.py"):
        if file.name != "start.py":
            kept = tmp_path / file.relative_to(agent)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_bytes(file.read_bytes())
            file.write_text("raise SystemExit('this source was read')\n")
    try:
        done = _run(agent, str(agent / _START), "--help")
    finally:
        for file in tmp_path.rglob("*.py"):
            (agent / file.relative_to(tmp_path)).write_bytes(file.read_bytes())
    assert done.returncode == 1
    assert done.stderr.startswith("'--help' is not understood; usage: ")


def test_the_byte_code_of_its_start_is_beside_it(agent: Path) -> None:
    done = _run(agent, str(agent / _START.removesuffix(".py")), "--help")
    assert done.stderr.startswith("'--help' is not understood; usage: ")


def test_what_hardly_a_run_uses_is_in_it_and_not_what_every_run_needs(agent: Path) -> None:
    place = int.from_bytes((agent / BUNDLE).read_bytes()[:8], "little")
    always, index = marshal.loads((agent / BUNDLE).read_bytes()[place:])
    assert {*LATER, "ast"} <= index.keys()
    assert {"dataclasses", "howdah.agent.run"} <= {*always}
    assert {*always} & {*LATER, "ast"} == set()


_USES = """\
import sys
from howdah.agent.start import BUNDLE, Bundle
for name in [name for name in sys.modules if name.startswith("howdah")]:
    del sys.modules[name]
sys.meta_path.insert(0, Bundle(BUNDLE))
import another, howdah.linux.netlink, howdah.agent.loop, json
print(another.__spec__.loader.__class__.__name__)
for module in (howdah.agent, howdah.agent.loop, json):
    print(module.__spec__.loader.__class__.__name__, module.__file__)
print(howdah.linux.netlink.__path__)
howdah.agent.loop.Loop(virtual_time=True).every(None, None, None)
"""


def test_what_is_not_in_it_is_found_and_what_is_names_its_source(agent: Path) -> None:
    (agent / "another.py").write_text("")
    done = _run(agent, "-c", _USES)
    said = done.stdout.splitlines()
    assert said[0] == "SourceFileLoader", done.stderr
    assert said[1] == f"_Loader {agent}/howdah/agent/__init__.py"
    assert said[2] == f"_Loader {agent}/howdah/agent/loop.py"
    assert said[3].startswith("_Loader ")
    assert said[3].endswith("/json/__init__.py")
    assert said[4] == f"['{agent}/howdah/linux/netlink']"
    # A traceback names the line, and quotes it.
    assert f'File "{agent}/howdah/agent/loop.py", line ' in done.stderr
    assert "TypeError" in done.stderr


def test_an_agent_that_cannot_be_imported_is_no_bundle(tmp_path: Path) -> None:
    copy_agent(tmp_path)
    (tmp_path / "howdah/agent/loop.py").write_text("import howdah.nowhere\n")
    done = _run(tmp_path, str(_BUNDLER), str(tmp_path), "/howdah/in", sys.base_prefix, str(tmp_path / BUNDLE))
    assert done.returncode != 0
    assert "howdah.nowhere" in done.stderr
    assert not (tmp_path / BUNDLE).exists()


def test_a_module_from_nowhere_known_is_told_and_not_left_out(tmp_path: Path) -> None:
    copy_agent(tmp_path)
    done = _run(tmp_path, str(_BUNDLER), str(tmp_path), "/howdah/in", "/another/tree", str(tmp_path / BUNDLE))
    assert done.returncode != 0
    assert "which is neither of the agent nor of /another/tree" in done.stderr
    assert not (tmp_path / BUNDLE).exists()
