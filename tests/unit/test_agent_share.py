# SPDX-License-Identifier: Apache-2.0
"""The agent's files import each other alone: a guest has nothing else of howdah, and no package but the library's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from howdah.engine import share
from howdah.engine.share import agent_sources, copy_agent
from howdah.record.directory import RunDirectory

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


def test_the_agent_is_standard_library_code_of_this_project() -> None:
    names = {str(name) for name in share.agent_sources()}
    assert "howdah/__init__.py" in names
    assert "howdah/agent/__main__.py" in names
    files = (f"howdah/{name}.py" for name in ("codec", "frame", "traffic", "trait"))
    own = ("howdah/__init__", "howdah/agent/", "howdah/linux/", "howdah/plan/", "howdah/record/", "collectors/", *files)
    assert all(name.startswith(own) for name in names)
    assert "topologies/dumbbell.py" in {str(name) for name in share.agent_sources("mininet")}


def test_staging(tmp_path: Path) -> None:
    agent, cached = tmp_path / "agent", tmp_path / "built.ko"
    share.copy_agent(agent)
    cached.write_bytes(b"module")
    directory = RunDirectory(tmp_path / "a run")
    directory.path.mkdir()
    directory.plan.write_text("{}")
    share.stage(directory, agent, [("tcp_mine", cached)])
    assert (directory.share / "plan.json").read_text() == "{}"
    assert (directory.share / "modules/tcp_mine.ko").read_bytes() == b"module"
    assert (directory.share / "howdah/agent/__main__.py").is_file()
    assert directory.raw.is_dir()
    cached.rename(tmp_path / "tcp_bpf.bpf.o").touch()
    share.stage(directory, agent, [("tcp_bpf", tmp_path / "tcp_bpf.bpf.o")])
    assert (directory.share / "modules/tcp_bpf.bpf.o").read_bytes() == b"module"
    cached.write_bytes(b"module")
    share.stage(directory, agent, [("tcp_mine", cached)])  # a second time changes nothing and fails on nothing


def test_the_key_follows_the_wiring() -> None:
    assert share.agent_key() == share.agent_key()
    assert share.agent_key() != share.agent_key("mininet")
