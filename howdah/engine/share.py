# SPDX-License-Identifier: Apache-2.0
"""share/: everything the agent may read, copied, so that a later change of the code cannot reach a run."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from howdah.agent.bpf import SUFFIX as OBJECT_SUFFIX
from howdah.agent.start import BUNDLE
from howdah.build import bundle
from howdah.build.cache import Cache, content_key
from howdah.build.guest_tree import GuestTree, compile_command, python_command
from howdah.build.supervise import run_logged
from howdah.build.tools import Tools
from howdah.errors import RunFailedError, explain
from howdah.place import file_of, name_of
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory

GUEST_SHARE = "/howdah/in"  # what the guest calls share/
# The package's own file, the agent, and the collectors: all that runs inside the guest.
_PACKAGES = ("howdah/agent", "howdah/linux", "collectors")
_FILES = ("howdah/__init__.py", "howdah/span.py")
# Stock Mininet's wiring takes the topology itself and the plan's operations as commands.
_MININET = ("howdah/plan", "topologies")
_MININET_FILES = ("howdah/errors.py", "howdah/quantity.py", "howdah/search.py", "howdah/trait.py")


def agent_sources(wiring: str = "netlink") -> list[Path]:
    """Names, as the repository has them, of the Python files the agent is made of."""
    mininet = wiring == "mininet"
    found = [Path(name) for name in _FILES + (_MININET_FILES if mininet else ())]
    for package in _PACKAGES + (_MININET if mininet else ()):
        found += [name_of(file) for file in sorted(file_of(package).rglob("*.py"))]
    return found


def agent_key(wiring: str = "netlink") -> str:
    parts: list[str | bytes] = []
    for name in agent_sources(wiring):
        parts += [str(name), file_of(str(name)).read_bytes()]
    return content_key(*parts)


def copy_agent(into: Path, wiring: str = "netlink") -> None:
    """Copy the agent's sources, keeping their package structure."""
    for name in agent_sources(wiring):
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file_of(str(name)), into / name)


def stage(
    directory: RunDirectory,
    agent: Path,
    modules: Iterable[tuple[str, Path]],
    stacks: Iterable[tuple[str, Path]] = (),
) -> None:
    """Fill share/ from an agent tree (see copy_agent; byte code may lie beside it), name-file pairs of modules and of
    object files of BPF, and names and directories of stacks."""
    directory.share.mkdir(exist_ok=True)
    directory.raw.mkdir(exist_ok=True)
    shutil.copytree(agent, directory.share, dirs_exist_ok=True, copy_function=_link_or_copy)
    shutil.copyfile(directory.plan, directory.share / "plan.json")
    place = directory.share / "modules"
    place.mkdir(exist_ok=True)
    for name, file in modules:
        suffix = OBJECT_SUFFIX if file.name.endswith(OBJECT_SUFFIX) else ".ko"
        _link_or_copy(str(file), str(place / f"{name}{suffix}"))
    for name, entry in stacks:
        shutil.copytree(entry, directory.share / "stacks" / name, dirs_exist_ok=True, copy_function=_link_or_copy)


def stage_programs(directory: RunDirectory, plan: Plan) -> None:
    """Copy the files of the profile's programs into share/program/FLOW-END/.

    Raises RunFailedError for one that is not what it was when the profile was read.
    """
    for flow in plan.flows:
        for end in ("client", "server") if flow.program is not None else ():
            place = directory.share / "program" / f"{flow.id}-{end}"
            for file in (flow.program or {})[end]["files"]:
                place.mkdir(parents=True, exist_ok=True)
                target = place / file["name"]
                try:
                    shutil.copyfile(file["path"], target)
                    same = hashlib.sha256(target.read_bytes()).hexdigest() == file["sha256"]
                except OSError as error:
                    what = f"{flow.title}: the {end}'s file cannot be copied: {explain(error)}"
                    raise RunFailedError(what, where=file["path"]) from error
                if not same:
                    what = f"{flow.title}: the {end}'s file has changed since the run was planned"
                    raise RunFailedError(what, where=file["path"], hint="Run the profile again.")


def _link_or_copy(source: str, target: str) -> str:
    """Cached files never change once they are there, so a second name is as good as a copy and costs no space."""
    Path(target).unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)
    return target


def build_agent(wiring: str, tree: GuestTree, tools: Tools, cache: Cache) -> Path:
    """A directory with the agent's sources, its byte code, and what makes its start quick in a user-mode kernel."""
    bundler = Path(bundle.__file__)

    def compile_all(directory: Path, log: Path) -> None:
        copy_agent(directory, wiring)
        run_logged(compile_command(tree.root, [directory], directory, GUEST_SHARE), log, launcher=tools.launch)
        shutil.copy2(tools.populate, directory / tools.populate.name)
        if wiring == "netlink":
            arguments = [directory, GUEST_SHARE, tree.root, directory / BUNDLE]
            command = [*python_command(tree.root), str(bundler), *map(str, arguments)]
            run_logged(command, log, launcher=tools.launch, environment={"PYTHONHASHSEED": "0"})

    key = content_key(agent_key(wiring), tree.key, tools.key, bundler.read_bytes())
    return cache.build("agent", key, compile_all)
