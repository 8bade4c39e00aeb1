# SPDX-License-Identifier: Apache-2.0
"""The ``uml`` engine: a plan in a user-mode kernel, in virtual time."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from howdah.build.cache import Cache
from howdah.build.guest_tree import packages_of_plan
from howdah.build.module_sources import extras_of
from howdah.build.modules import Module
from howdah.build.stack import files_of, provide_stacks
from howdah.engine.ending import Ending, check_agent
from howdah.engine.engine import BuildProgress, Identity, Lack, RunProgress, require
from howdah.engine.engine_bundle import EngineBundle, sent_bundle
from howdah.engine.preparing import Preparation, as_run_failure, as_run_progress
from howdah.engine.uml import naming
from howdah.engine.uml.build import Built, build
from howdah.engine.uml.divided import choose_parts, run_parts
from howdah.engine.uml.guest import boot
from howdah.engine.uml.needs import lacks
from howdah.engine.uml.parameter import modules_of
from howdah.engine.uml.sent import add_failure, add_part, built_of, part_name
from howdah.engine.uml.staged import kernel_origin, stage_guest
from howdah.errors import HowdahError, RunFailedError
from howdah.plan.plan import Plan
from howdah.record.agent import ModuleRecord
from howdah.record.directory import RunDirectory
from howdah.record.run import EngineOrigin, EngineReport, TreeOrigin

_HERE = "Make it on a machine of your choice, without --scheduler and --cluster."


class UmlEngine:
    """The uml engine. Several guests may run at once: one core each. ``wiring``: netlink or mininet.

    What an instance has built for a plan it reuses for later plans and runs, without checking sources and cache again.
    """

    name = "uml"
    parallel = True

    def __init__(self, cache: Cache | None = None, wiring: str = "netlink") -> None:
        self.cache = cache or Cache()
        self.wiring = wiring
        self._made: dict[tuple[str, ...], Built] = {}
        self._checked: set[tuple[str, bool]] = set()  # kernels checked, each with whether modules are compiled

    def lacks(self) -> list[Lack]:
        return lacks()

    def prepare(self, plans: Sequence[Plan], progress: BuildProgress) -> Identity:
        compiles = any(not name.endswith(".ko") for plan in plans for name in plan.modules)
        for kernel in dict.fromkeys(kernel for plan in plans for kernel in plan.kernels):
            if (kernel, compiles) not in self._checked:
                require(lacks(kernel, compiles=compiles), self.name, "'howdah doctor' shows every check.")
                self._checked.add((kernel, compiles))
        progress = _without_repeats(progress)
        identity: Identity = {"engine": self.name}
        preparation = Preparation(plans, progress)
        refused: dict[tuple[str, ...], HowdahError] = {}
        for plan in plans:
            try:
                found = self._built(plan, progress, refused)
            except HowdahError as error:
                preparation.add_failure(error)
                continue
            for kernel, built in found.items():
                preparation.report_unused(built.module_set, plan)
                tree = " ".join(("tree", *packages_of_plan(plan)))
                identity[tree], identity["tools"] = built.tree.sha256, built.tools.key
                identity[f"kernel {kernel}"] = built.kernel.image_sha256
            try:
                for kernel, module in self._modules(plan, found):
                    identity[f"module {module.name} {kernel}"] = module.identity
                for stack in provide_stacks(plan, progress, self.cache).choose():
                    identity[f"stack {stack.name}"] = stack.identity
            except HowdahError as error:
                preparation.add_failure(error)
            if plan.collect.cpu:
                naming.prepare(found[plan.kernel].kernel, progress, self.cache)
        preparation.conclude()
        return identity

    def _built(
        self, plan: Plan, progress: BuildProgress, refused: dict[tuple[str, ...], HowdahError] | None = None
    ) -> dict[str, Built]:
        """Return the parts for each kernel of the plan; ``refused`` collects what did not build, and why.

        Raises the first HowdahError: a kernel is unknown or does not build, or a guest tree is unavailable.
        """
        sent = sent_bundle(self.name)
        if sent is not None:
            return {kernel: built_of(sent, self._part(plan, kernel)) for kernel in plan.kernels}
        known = {} if refused is None else refused
        found: dict[str, Built] = {}
        for kernel in plan.kernels:
            built = self._built_for(plan, kernel, progress, known)
            if isinstance(built, HowdahError):
                raise built
            found[kernel] = built
        return found

    def _built_for(
        self, plan: Plan, kernel: str, progress: BuildProgress, refused: dict[tuple[str, ...], HowdahError]
    ) -> Built | HowdahError:
        """Return the parts for one kernel of the plan, or why they do not build, which ``refused`` then holds, too."""
        packages = packages_of_plan(plan)
        parts = (kernel, *plan.modules, repr(plan.module_builds), *packages)
        if parts in refused:
            return refused[parts]
        if parts in self._made and not (_is_in_cache(self._made[parts]) and _are_in_cache(plan)):
            del self._made[parts]
        if parts not in self._made:
            try:
                self._made[parts] = build(
                    kernel, plan.modules, progress, self.cache, self.wiring, packages, extras_of(plan)
                )
            except HowdahError as error:
                refused[parts] = error
                return error
        return self._made[parts]

    def _part(self, plan: Plan, kernel: str) -> str:
        modules = (*plan.modules, *([repr(plan.module_builds)] if plan.module_builds else []))
        return part_name(kernel, modules, packages_of_plan(plan), self.wiring)

    def check_portable(self, plan: Plan) -> None:
        if plan.collect.cpu:
            raise HowdahError(
                f"{plan.run} measures processor time, which is that of one machine",
                hint=_HERE,
            )
        if any(flow.program.end(end).files for flow in plan.flows if flow.program for end in ("client", "server")):
            raise HowdahError(f"{plan.run} runs programs that are files of this machine", hint=_HERE)
        if stacks := ", ".join(files_of(plan)):
            raise HowdahError(
                f"{plan.run} has a TCP stack ({stacks}) that is built on the machine that makes the run", hint=_HERE
            )

    def bundle(self, plans: Sequence[Plan], progress: BuildProgress) -> EngineBundle:
        found = EngineBundle(self.name)
        refused: dict[tuple[str, ...], HowdahError] = {}
        for plan in plans:
            for kernel in plan.kernels:
                name = self._part(plan, kernel)
                if name in found.content:
                    continue
                built = self._built_for(plan, kernel, progress, refused)
                if isinstance(built, HowdahError):
                    add_failure(found, name, built)  # fails only the runs that need it, where they would be made
                else:
                    add_part(found, name, built, self.cache)
        return found

    @staticmethod
    def _modules(plan: Plan, built: dict[str, Built]) -> list[tuple[str, Module]]:
        """Return (kernel, module) pairs. Raises HowdahError for a module that did not build, and ParameterError."""
        if plan.parts:
            chosen = zip(plan.parts, choose_parts(plan, built), strict=True)
            return [(part.kernel, module) for part, found in chosen for module in found.modules]
        return [(plan.kernel, module) for module in modules_of(plan, plan.required_modules, built[plan.kernel])]

    def run(self, directory: RunDirectory, plan: Plan, progress: RunProgress) -> EngineReport:
        progress("prepare", 0, 0)
        with as_run_failure():
            found = self._built(plan, as_run_progress(progress))
        built = found[plan.kernel]
        try:
            if plan.parts:
                return run_parts(directory, plan, progress, found, self.wiring)
            return self._run(directory, plan, progress, built)
        except RunFailedError as error:
            error.known = EngineReport(kernel=kernel_origin(built))
            raise

    def _run(self, directory: RunDirectory, plan: Plan, progress: RunProgress, built: Built) -> EngineReport:
        with as_run_failure():
            modules = modules_of(plan, plan.required_modules, built)
            stacks = provide_stacks(plan, as_run_progress(progress), self.cache).choose()
        guest = stage_guest(directory, plan, built, modules, self.wiring, stacks=stacks)
        started = time.monotonic()
        with directory.log.open("a", encoding="utf-8") as log:
            log.write(f"guest: {guest}\n")
            try:
                ending = boot(guest, progress)
            finally:
                log.write(f"guest ended after {time.monotonic() - started:.3f} s\n")
        record = check_agent(directory, ending, plan.parameter_places)
        if plan.collect.cpu:
            naming.name_samples(directory.raw, built.kernel, as_run_progress(progress), self.cache)
        made = report(built, modules, ending, record.modules or {})
        if stacks:
            made.stacks = {stack.name: stack.described() for stack in stacks}
        return made


def _without_repeats(progress: BuildProgress) -> BuildProgress:
    """Return a progress function that suppresses repeated messages, such as failures before anything is compiled."""
    told: set[str] = set()

    def tell(what: str, done: int, total: int) -> None:
        if total or what not in told:
            progress(what, done, total)
        if not total:
            told.add(what)

    return tell


def report(built: Built, modules: list[Module], ending: Ending, loaded: Mapping[str, ModuleRecord]) -> EngineReport:
    """Return the engine's part of run.json; ``loaded`` is the kernel's account of the loaded modules."""
    return EngineReport(
        engine=EngineOrigin(
            name=UmlEngine.name,
            guest_wall_s=round(ending.wall_s, 3),
            guest_memory_peak_bytes=ending.memory_peak_bytes,
            tools=built.tools.key,
        ),
        kernel=kernel_origin(built),
        guest_tree=TreeOrigin(sha256=built.tree.sha256, packages=built.tree.packages),
        modules={module.name: module.described(loaded.get(module.name)) for module in modules},
        confinement=ending.bounds.described() if ending.bounds else None,
    )


def _is_in_cache(built: Built) -> bool:
    """Return whether all parts are still in the cache."""
    return all(place.exists() for place in (built.kernel.image, built.tree.root, built.tools.directory, built.agent))


def _are_in_cache(plan: Plan) -> bool:
    """Return whether all modules are in the cache: a ready-made one is the user's own file and may have changed."""
    return not any(file.endswith(".ko") for file in plan.modules)
