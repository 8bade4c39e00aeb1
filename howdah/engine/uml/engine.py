# SPDX-License-Identifier: Apache-2.0
"""The ``uml`` engine: a plan in a user-mode kernel, in virtual time."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

from howdah.engine.cache import Cache
from howdah.engine.engine import BuildProgress, EngineReport, Lack, RunProgress, require
from howdah.engine.share import stage
from howdah.engine.uml import naming
from howdah.engine.uml.build import Built, build
from howdah.engine.uml.guest import Ending, Guest, boot, console_tail
from howdah.engine.uml.modules import Module
from howdah.engine.uml.needs import lacks
from howdah.engine.uml.parameter import check_parameters
from howdah.errors import HowdahError, ParameterError, RunFailedError
from howdah.plan.plan import Plan
from howdah.run.directory import RunDirectory

_PYTHON = "/usr/bin/python3"
_ARGUMENTS = ("-m", "howdah.agent", "--in", "/howdah/in", "--out", "/howdah/out")
_FLENT_PACKAGES = ("flent", "iperf")
_CLOCK_SLACK_S = 120  # beyond the plan's end: an agent that has not ended by then waits for what will not come


class UmlEngine:
    """Several guests may run at once: one core each. ``wiring`` is who builds the network, netlink or mininet."""

    name = "uml"
    parallel = True

    def __init__(self, cache: Cache | None = None, wiring: str = "netlink") -> None:
        self.cache = cache or Cache()
        self.wiring = wiring

    def _command(self) -> tuple[str, ...]:
        # -S: no site-packages to look for, which only Mininet needs.
        options = ("-S",) if self.wiring == "netlink" else ()
        return (_PYTHON, *options, *_ARGUMENTS, "--wiring", self.wiring)

    def lacks(self) -> list[Lack]:
        return lacks()

    def prepare(self, plans: Sequence[Plan], progress: BuildProgress) -> dict[str, Any]:
        for kernel in dict.fromkeys(plan.kernel for plan in plans):
            require(lacks(kernel), self.name, "'howdah doctor' shows every check.")
        identity: dict[str, Any] = {"engine": self.name}
        failures: list[HowdahError] = []
        made: dict[tuple[str, ...], Built] = {}
        for plan in plans:
            parts = (plan.kernel, *plan.modules, *further_packages(plan))
            if parts not in made:
                made[parts] = build(
                    plan.kernel, plan.modules, progress, self.cache, self.wiring, further_packages(plan)
                )
            built = made[parts]
            tree = " ".join(("tree", *further_packages(plan)))
            identity[tree], identity["tools"] = built.tree.sha256, built.tools.key
            identity[f"kernel {plan.kernel}"] = built.kernel.image_sha256
            try:
                chosen = built.module_set.choose(plan.required_modules)
                check_parameters(plan, chosen, built.kernel)
                for module in chosen:
                    identity[f"module {module.name} {plan.kernel}"] = module.srcversion
            except HowdahError as error:
                if str(error) not in map(str, failures):
                    said = "cannot run" if isinstance(error, ParameterError) else "not built"
                    progress(f"{said}: {error.where}: {error.what}", 0, 0)
                failures.append(error)
            if plan.collect.cpu:
                naming.prepare(built.kernel, progress, self.cache)
        # A module that does not build, or lacks a parameter, fails the runs that need it, one by one; without any other
        # run, all at once.
        if failures and len(failures) == len(plans):
            raise failures[0]
        return identity

    def run(self, directory: RunDirectory, plan: Plan, progress: RunProgress) -> EngineReport:
        progress("prepare", 0, 0)
        built = build(
            plan.kernel,
            plan.modules,
            lambda what, _done, _total: progress(what, 0, 0),
            self.cache,
            self.wiring,
            further_packages(plan),
        )
        try:
            modules = built.module_set.choose(plan.required_modules)
            check_parameters(plan, modules, built.kernel)
        except HowdahError as error:
            raise RunFailedError(error.what, where=error.where, hint=error.hint) from error
        stage(directory, built.agent, [(module.name, module.file) for module in modules])
        guest = Guest(
            kernel=built.kernel.image,
            tree=built.tree.root,
            tools=built.tools,
            share=directory.share,
            raw=directory.raw,
            console=directory.console,
            command=self._command(),
            memory_bytes=plan.guest_memory_bytes,
            wall_clock_limit_s=plan.wall_clock_limit_s,
            clock_limit_s=(plan.epoch_us + plan.duration_us) // 10**6 + _CLOCK_SLACK_S,
            seed=plan.seed,
            kernel_arguments=tuple(f"{name}={value}" for name, value in plan.kernel_parameters.items()),
            profiled=plan.collect.cpu,
        )
        started = time.monotonic()
        with directory.log.open("a", encoding="utf-8") as log:
            log.write(f"guest: {guest}\n")
            try:
                ending = boot(guest, progress)
            finally:
                log.write(f"guest ended after {time.monotonic() - started:.3f} s\n")
        record = check_agent(directory, ending)
        if plan.collect.cpu:
            naming.name_samples(
                directory.raw, built.kernel, lambda what, _done, _total: progress(what, 0, 0), self.cache
            )
        return report(built, modules, ending, record.get("modules") or {})


def further_packages(plan: Plan) -> tuple[str, ...]:
    """Packages of the guest tree that only this plan's traffic needs."""
    return _FLENT_PACKAGES if any(flow.traffic == "flent" for flow in plan.flows) else ()


def check_agent(directory: RunDirectory, ending: Ending) -> dict[str, Any]:
    """The agent's record. Raises RunFailedError unless it is that of a run that went well."""
    how = f"signal {ending.signal}" if ending.signal else f"status {ending.exit_status}"
    said = "\n    ".join(console_tail(directory.console))
    hint = f"Last lines of the console:\n    {said}" if said else None
    try:
        record: dict[str, Any] = json.loads((directory.raw / "agent.json").read_text())
        status, error = record["status"], record.get("error")
    except FileNotFoundError:
        raise RunFailedError(
            f"the agent ended ({how}) without a record of its run", where=str(directory.console), hint=hint
        ) from None
    except (ValueError, KeyError, TypeError) as reason:
        raise RunFailedError(
            f"the agent's record cannot be read ({reason}); is the disk full?", where=str(directory.raw / "agent.json")
        ) from None
    if status != "ok":
        error = error or {}
        operation = error.get("operation")
        during = f" during {json.dumps(operation)}" if operation else ""
        raise RunFailedError(
            f"the agent stopped{during}: {error.get('message', how)}", where=str(directory.console), hint=hint
        )
    if ending.exit_status != 0:
        raise RunFailedError(f"the agent ended with {how} after its run", where=str(directory.console), hint=hint)
    return record


def report(built: Built, modules: list[Module], ending: Ending, loaded: dict[str, Any]) -> EngineReport:
    """What run.json keeps about the engine; ``loaded`` is what the kernel said of the loaded modules."""
    kernel = built.kernel
    return {
        "engine": {
            "name": UmlEngine.name,
            "guest_wall_s": round(ending.wall_s, 3),
            "guest_memory_peak_bytes": ending.memory_peak_bytes,
            "tools": built.tools.key,
        },
        "kernel": {
            "release": kernel.release,
            "image_sha256": kernel.image_sha256,
            "config_sha256": kernel.config_sha256,
            "source": kernel.source,
            "compiler": kernel.compiler,
            "options_not_taken": list(kernel.options_not_taken),
        },
        "guest_tree": {"sha256": built.tree.sha256, "packages": built.tree.packages},
        "modules": {
            module.name: {
                "srcversion": module.srcversion,
                "source": module.source,
                "parameters": loaded.get(module.name, {}).get("parameters", {}),
            }
            for module in modules
        },
    }
