# SPDX-License-Identifier: Apache-2.0
"""Runs a plan on several kernels in one virtual time: one guest per part, with their records merged.

The guests are started together, and ended together if one of them fails. A guest that waits for another one's clock
sleeps, so a hang is certain only when no guest can go on.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from howdah.build.modules import Module
from howdah.engine.ending import EXIT_FILE, Ending, check_agent, runtime_base
from howdah.engine.engine import RunProgress
from howdah.engine.preparing import as_run_failure
from howdah.engine.processor import own_processor
from howdah.engine.uml import memory
from howdah.engine.uml.build import Built
from howdah.engine.uml.guest import POLL_S, Guest, Progress, RunningGuest, sweep
from howdah.engine.uml.merge import merge
from howdah.engine.uml.parameter import modules_of
from howdah.engine.uml.part import cut
from howdah.engine.uml.staged import kernel_origin, stage_guest
from howdah.engine.uml.wire import shared_memory
from howdah.errors import RunFailedError
from howdah.plan.plan import Plan
from howdah.record.agent import AgentRecord
from howdah.record.directory import RunDirectory, read_json
from howdah.record.run import EngineOrigin, EngineReport, ModuleOrigin, TreeOrigin


@dataclass(frozen=True)
class PartDirectory(RunDirectory):
    """A run directory whose share/ and raw/ are those of one kernel."""

    part: str = ""

    @property
    def share(self) -> Path:
        return self.path / "share" / self.part

    @property
    def raw(self) -> Path:
        return self.path / "raw" / self.part

    @property
    def plan(self) -> Path:
        """The plan that its agent reads."""
        return self.raw / "part.json"


@dataclass(frozen=True)
class KernelPart:
    """One part of the plan with its kernel and modules."""

    name: str
    built: Built
    modules: list[Module]


def choose_parts(plan: Plan, built: Mapping[str, Built]) -> list[KernelPart]:
    """Choose kernel and modules of each part; ``built`` is keyed by the kernel's name.

    Raises HowdahError for a required module that did not build, and ParameterError.
    """
    found = []
    cuts = cut(plan)
    for part in plan.parts:
        made = built[part.kernel]
        modules = modules_of(plan, cuts[part.name].required_modules, made)
        found.append(KernelPart(part.name, made, modules))
    return found


def run_parts(
    directory: RunDirectory, plan: Plan, progress: RunProgress, built: Mapping[str, Built], wiring: str
) -> EngineReport:
    """Run all parts and merge their records. Raises RunFailedError."""
    with as_run_failure():
        parts = choose_parts(plan, built)
    started = time.monotonic()
    directories = {part.name: PartDirectory(directory.path, part.name) for part in parts}
    for name, value in cut(plan).items():
        directories[name].raw.mkdir(parents=True, exist_ok=True)
        directories[name].share.parent.mkdir(exist_ok=True)
        directories[name].plan.write_text(value.to_json() + "\n", encoding="utf-8")
    with directory.log.open("a", encoding="utf-8") as log, shared_memory(plan) as wire:
        guests = {
            part.name: stage_guest(directories[part.name], plan, part.built, part.modules, wiring, wire)
            for part in parts
        }
        for name, guest in guests.items():
            log.write(f"guest {name}: {guest}\n")
        try:
            endings = boot_together(guests, progress)
        finally:
            log.write(f"guests ended after {time.monotonic() - started:.3f} s\n")
    records = {name: _checked(directories[name], name, ending) for name, ending in endings.items()}
    if missing := [part.name for part in parts if part.name not in records]:
        raise RunFailedError(f"no record of {', '.join(missing)}", where=str(directory.raw))
    progress("merge", 0, 0)
    merge(directory.raw, plan)
    return _report(parts, endings, records)


def _checked(directory: PartDirectory, name: str, ending: Ending) -> AgentRecord:
    try:
        return check_agent(directory, ending)
    except RunFailedError as error:
        raise RunFailedError(f"{name}: {error.what}", where=error.where, hint=error.hint) from error


def _report(parts: list[KernelPart], endings: Mapping[str, Ending], records: Mapping[str, AgentRecord]) -> EngineReport:
    first = parts[0]
    bounds = endings[first.name].bounds
    modules: dict[str, ModuleOrigin] = {}
    for part in reversed(parts):  # the first part's modules keep their plain names
        loaded = records[part.name].modules or {}
        modules |= {module.name: module.described(loaded.get(module.name)) for module in part.modules}
    return EngineReport(
        engine=EngineOrigin(
            name="uml",
            guest_wall_s=round(max(ending.wall_s for ending in endings.values()), 3),
            guest_memory_peak_bytes=sum(ending.memory_peak_bytes for ending in endings.values()),
            tools=first.built.tools.key,
            parts={
                part.name: {
                    "kernel": kernel_origin(part.built).plain(),
                    "modules": {module.name: module.srcversion for module in part.modules},
                    "guest_wall_s": round(endings[part.name].wall_s, 3),
                }
                for part in parts
            },
        ),
        kernel=kernel_origin(first.built),
        guest_tree=TreeOrigin(sha256=first.built.tree.sha256, packages=first.built.tree.packages),
        modules=modules,
        confinement=bounds.described() if bounds else None,
    )


def boot_together(guests: Mapping[str, Guest], progress: Progress) -> dict[str, Ending]:
    """Run all guests to their ends and return those by name; ``progress`` reports the first guest.

    If the program of one fails, all are ended, and only that one's end is returned. Raises RunFailedError with the name
    of the guest whose kernel failed first.
    """
    base = runtime_base()
    sweep(base, *memory.directories())
    running: dict[str, RunningGuest] = {}
    try:
        with ExitStack() as processors:
            for name, guest in guests.items():
                running[name] = RunningGuest(guest, base, processors.enter_context(own_processor(base)))
            try:
                failed = _watch(running, progress)
            finally:
                _stop(running)
        progress(*next(iter(running.values())).life.position())
        return {name: _named(name, item) for name, item in running.items() if failed in (None, name)}
    finally:
        _stop(running)


def _stop(running: Mapping[str, RunningGuest]) -> None:
    for item in running.values():
        item.stop()


def _watch(running: Mapping[str, RunningGuest], progress: Progress) -> str | None:
    """Wait until all guests have ended well, or one has not; return that one's name."""
    descriptors = {item.descriptor(): name for name, item in running.items()}
    first = next(iter(running.values()))
    try:
        waiting = dict(descriptors)
        while waiting:
            ended, _, _ = select.select(list(waiting), [], [], POLL_S)
            for descriptor in ended:
                name = waiting.pop(descriptor)
                if not _ended_well(running[name]):
                    return name
            progress(*first.life.position())
            troubles = {name: running[name].life.trouble() for name in waiting.values()}
            if troubles and all(troubles.values()):
                # A guest that sleeps waits for one that computes.
                name = max(troubles, key=lambda name: running[name].life.computes)
                raise _with_name(name, running[name].failure(str(troubles[name])))
        return None
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _ended_well(item: RunningGuest) -> bool:
    try:
        value = read_json(item.guest.raw / EXIT_FILE)
        return bool(value["exit"] == 0)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _named(name: str, item: RunningGuest) -> Ending:
    try:
        return item.ending()
    except RunFailedError as error:
        raise _with_name(name, error) from error


def _with_name(name: str, error: RunFailedError) -> RunFailedError:
    return RunFailedError(f"{name}: {error.what}", where=error.where, hint=error.hint)
