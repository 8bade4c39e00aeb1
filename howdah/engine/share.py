# SPDX-License-Identifier: Apache-2.0
"""Fills share/: copies of everything the agent may read, so that later changes of the code cannot affect a run."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from howdah.agent.bpf import SUFFIX as OBJECT_SUFFIX
from howdah.agent.start import BUNDLE
from howdah.build import bundle
from howdah.build.cache import Cache, content_key
from howdah.build.guest_tree import GuestTree, compile_command, python_command, python_environment
from howdah.build.supervise import run_logged
from howdah.build.supply import entry_from_bundle
from howdah.build.tools import Tools
from howdah.errors import RecordError, RunFailedError, explain
from howdah.foreign import read_foreign
from howdah.place import PLAN_FILES, file_of, name_of
from howdah.plan.named import MOST_PROGRAM_BYTES, programs_of
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from howdah.registered import FOLDER, collector_named

GUEST_SHARE, GUEST_RAW = "/howdah/in", "/howdah/out"  # what the guest calls share/ and raw/
_PYTHON = "/usr/bin/python3"
AGENT = "agent"  # kind of the agent's cache entries
_BUNDLER = Path(bundle.__file__)
# All that runs inside the guest: the package's own file, the agent, and the collectors.
_PACKAGES = ("howdah/agent", "howdah/linux", "collectors")
_FILES = ("howdah/__init__.py", *PLAN_FILES)
# Mininet's wiring also takes the topology, and turns the plan's operations into commands with the help of these files.
_MININET = ("topologies",)
_MININET_FILES = ("howdah/errors.py", "howdah/quantity.py", "howdah/search.py")


def agent_command(*options: str, wiring: str = "netlink") -> tuple[str, ...]:
    """Return the command that starts the agent in a guest."""
    # -S skips the search for site-packages. Only Mininet needs them; its modules are not in the agent's bundle.
    start = ("-m", "howdah.agent") if wiring == "mininet" else ("-S", f"{GUEST_SHARE}/howdah/agent/start")
    return (_PYTHON, *start, "--in", GUEST_SHARE, "--out", GUEST_RAW, *options)


def agent_sources(wiring: str = "netlink") -> list[Path]:
    """Return the names, as in the repository, of the agent's Python files."""
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
    """Fill share/ from an agent tree (see copy_agent; it may contain byte code), modules and BPF objects given as name
    and file, and stacks given as name and directory."""
    directory.share.mkdir(exist_ok=True)
    directory.raw.mkdir(exist_ok=True)
    _link_tree(str(agent), str(directory.share))
    shutil.copyfile(directory.plan, directory.share / "plan.json")
    place = directory.share / "modules"
    place.mkdir(exist_ok=True)
    for name, file in modules:
        suffix = OBJECT_SUFFIX if file.name.endswith(OBJECT_SUFFIX) else ".ko"
        _link_or_copy(str(file), str(place / f"{name}{suffix}"))
    for name, entry in stacks:
        _link_tree(str(entry), str(directory.share / "stacks" / name))


def stage_collectors(directory: RunDirectory, plan: Plan) -> None:
    """Copy the guest files of collectors from installed packages beside howdah's own.

    Raises HowdahError for a collector that no installed package provides.
    """
    for each in map(collector_named, plan.collect.intervals_us):
        if each.extension is not None:
            shutil.copyfile(each.guest_file, directory.share / name_of(FOLDER) / f"{each.name}.py")


def stage_programs(directory: RunDirectory, plan: Plan) -> None:
    """Copy the files of the profile's programs into share/program/FLOW-END/.

    A file that is already there with the plan's digest stays (``bring_programs``). Raises RunFailedError for a file
    whose digest has changed since the plan was made, before any of it is written.
    """
    titles = {flow.id: flow.title for flow in plan.flows}
    for folder, file in programs_of(plan):
        number, _, end = folder.removeprefix("program/").partition("-")
        title = f"{titles[int(number)]}: the {end}'s file"
        target = directory.share / folder / file.name
        if target.is_file() and _content_of(target, file.sha256) is not None:
            continue
        source = Path(file.path)
        try:
            content = _content_of(source, file.sha256)
            if content is None:
                what = f"{title} has changed since the run was planned"
                raise RunFailedError(what, where=str(source), hint="Run the profile again.")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
        except (OSError, RecordError) as error:
            said = explain(error) if isinstance(error, OSError) else error.what
            raise RunFailedError(f"{title} cannot be copied: {said}", where=str(source)) from error


def bring_programs(original: RunDirectory, again: RunDirectory, plan: Plan) -> list[str]:
    """Copy the original run's programs to its rerun; return the names of those that are missing or changed."""
    missing = []
    for folder, file in programs_of(plan):
        try:
            content = _content_of(original.share / folder / file.name, file.sha256)
        except (OSError, RecordError):
            content = None
        if content is None:
            missing.append(file.name)
            continue
        target = again.share / folder / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    return missing


def _content_of(file: Path, sha256: str) -> bytes | None:
    """Return the file's content; None if its digest differs."""
    content = read_foreign(file, MOST_PROGRAM_BYTES)
    return content if hashlib.sha256(content).hexdigest() == sha256 else None


def _link_or_copy(source: str, target: str) -> str:
    """Link the file, or copy it: cached files never change, so a link is as good as a copy and takes no space."""
    with suppress(FileNotFoundError):
        os.unlink(target)  # noqa: PTH108 - hundreds of files a run
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)
    return target


def agent_recipe(wiring: str, tree: GuestTree, tools: Tools) -> str:
    """Return the key of a compiled agent: its sources, the Python that compiles them, and the compilation itself."""
    return content_key(agent_key(wiring), tree.sha256, tools.key, _BUNDLER.read_bytes())


def _link_tree(source: str, target: str) -> None:
    """Link every file of a directory, like shutil.copytree, which takes three times as long to make links."""
    os.makedirs(target, exist_ok=True)  # noqa: PTH103
    with os.scandir(source) as entries:
        for each in entries:
            place = f"{target}/{each.name}"
            if each.is_dir():
                _link_tree(each.path, place)
            else:
                _link_or_copy(each.path, place)


def build_agent(wiring: str, tree: GuestTree, tools: Tools, cache: Cache) -> Path:
    """Return a directory with the agent's sources, its byte code, and files that speed up its start.

    It comes from a bundle, or is compiled with the tree's own Python (a second).
    """
    recipe = agent_recipe(wiring, tree, tools)
    given = entry_from_bundle(AGENT, recipe, cache)
    if given is not None:
        return given

    def compile_all(directory: Path, log: Path) -> None:
        copy_agent(directory, wiring)
        python = python_environment(tree.root)
        if wiring == "netlink":
            arguments = [directory, GUEST_SHARE, tree.root, directory / BUNDLE]
            command = [*python_command(tree.root), str(_BUNDLER), *map(str, arguments)]
            run_logged(command, log, launcher=tools.launch, environment={**python, "PYTHONHASHSEED": "0"})
        else:
            command = compile_command(tree.root, [directory], directory, GUEST_SHARE)
            run_logged(command, log, launcher=tools.launch, environment=python)
        shutil.copy2(tools.populate, directory / tools.populate.name)

    return cache.build(AGENT, recipe, compile_all)
