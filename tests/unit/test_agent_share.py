# SPDX-License-Identifier: Apache-2.0
"""The agent's files import each other alone: a guest has nothing else of howdah, and no package but the library's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from howdah.engine.share import agent_sources, copy_agent

_IMPORT_ALL = """\
import importlib, sys
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] in ("howdah", "collectors", "topologies"):
            sys.exit(f"{name} imports {error.name}")
"""
# What stock Mininet's wiring takes of the plan; the rest of it makes plans, and comes along unused.
_ALWAYS = agent_sources()
_OF_MININET = {"howdah/plan/command.py"}


@pytest.mark.parametrize("wiring", ["netlink", "mininet"])
def test_what_a_guest_gets_is_whole(tmp_path: Path, wiring: str) -> None:
    copy_agent(tmp_path, wiring)
    sources = [
        name
        for name in agent_sources(wiring)
        if name in _ALWAYS or "plan" not in name.parts or str(name) in _OF_MININET
    ]
    modules = [".".join(name.with_suffix("").parts).removesuffix(".__init__") for name in sources]
    modules = [name for name in modules if not name.endswith("__main__")]
    assert len(modules) > 50
    command = [sys.executable, "-I", "-S", "-c", _IMPORT_ALL, str(tmp_path), *modules]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
