# SPDX-License-Identifier: Apache-2.0
"""share/ holds the agent, the plan and the modules, and no later change of the code reaches it."""

from __future__ import annotations

from pathlib import Path

from howdah.engine import share
from howdah.record.directory import RunDirectory


def test_the_agent_is_standard_library_code_of_this_project() -> None:
    names = {str(name) for name in share.agent_sources()}
    assert "howdah/__init__.py" in names
    assert "howdah/agent/__main__.py" in names
    files = (f"howdah/{name}.py" for name in ("codec", "frame", "traffic", "trait"))
    own = ("howdah/__init__", "howdah/agent/", "howdah/linux/", "howdah/plan/", "collectors/", *files)
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
