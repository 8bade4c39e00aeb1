# SPDX-License-Identifier: Apache-2.0
"""The ``ns2`` engine: a plan becomes data for dumbbell.tcl, ns runs it, and its traces are raw/."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from howdah.build.cache import file_sha256
from howdah.build.supervise import CommandFailedError, run_logged
from howdah.engine.check import lacks_of
from howdah.engine.engine import BuildProgress, Identity, Lack, RunProgress, require
from howdah.engine.ns2.needs import NS, checks
from howdah.engine.ns2.network import network_data
from howdah.engine.ns2.outcome import write_outcome
from howdah.errors import RunFailedError
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from howdah.record.run import EngineOrigin, EngineReport, KernelOrigin

PROGRAM = Path(__file__).with_name("dumbbell.tcl")
DATA = "network.txt"
# Ends with this process, however it ends, and at its limit.
_CONTAINED = ["setpriv", "--pdeathsig", "KILL"]
_KILLED_AFTER_S = 5
_TIMED_OUT = (124, 137)  # timeout(1): it ended the command, it killed the command


class Ns2Engine:
    """Several simulations may run at once: one core each."""

    name = "ns2"
    parallel = True

    def lacks(self) -> list[Lack]:
        return lacks_of(checks())

    def prepare(self, plans: Sequence[Plan], progress: BuildProgress) -> Identity:
        progress("look at this machine", len(plans), len(plans))
        require(self.lacks(), self.name, "It is for controls; the uml engine runs a real kernel.")
        return {"engine": self.name, "ns": _binary_sha256(), "program": file_sha256(PROGRAM)}

    def run(self, directory: RunDirectory, plan: Plan, progress: RunProgress) -> EngineReport:
        directory.share.mkdir(exist_ok=True)
        directory.raw.mkdir(exist_ok=True)
        shutil.copyfile(directory.plan, directory.share / "plan.json")
        shutil.copyfile(PROGRAM, directory.share / PROGRAM.name)
        (directory.share / DATA).write_text(network_data(plan), encoding="utf-8")
        started = time.monotonic()
        kernel = _described(plan)
        try:
            _simulate(directory, plan, progress)
            write_outcome(directory, plan)
        except RunFailedError as error:
            error.known = EngineReport(kernel=kernel)
            raise
        took_s = round(time.monotonic() - started, 3)
        return EngineReport(
            engine=EngineOrigin(name=self.name, wall_s=took_s, model=plan.traits.model),
            kernel=kernel,
            guest_tree=None,
            modules={},
        )


def _simulate(directory: RunDirectory, plan: Plan, progress: RunProgress) -> None:
    """Names on its command line are relative: Tcl reads those of the system in the locale's encoding."""

    def told(line: str) -> None:
        word, _, value = line.partition(" ")
        if word == "time":
            progress("flows", min(round(float(value) * 1e6), plan.duration_us), plan.duration_us)

    limit = [*_CONTAINED, "timeout", "-k", str(_KILLED_AFTER_S), f"{plan.wall_clock_limit_s:g}"]
    command = [*limit, *_CONTAINED, NS, PROGRAM.name, DATA, f"../{directory.raw.name}"]
    try:
        run_logged(command, directory.console, cwd=directory.share, on_line=told)
    except CommandFailedError as error:
        if error.status in _TIMED_OUT:
            what = f"ns-2 was ended at its wall-clock limit of {plan.wall_clock_limit_s:g} s"
        else:
            what = f"ns-2 ended with status {error.status}"
        said = "\n    ".join(error.tail)
        raise RunFailedError(what, where=str(directory.console), hint=f"Last lines:\n    {said}") from error


def _binary_sha256() -> str | None:
    found = shutil.which(NS)
    return file_sha256(Path(found)) if found else None


def _described(plan: Plan) -> KernelOrigin:
    """For run.json: what stands where a kernel would."""
    return KernelOrigin(
        release=plan.traits.label,
        image_sha256=_binary_sha256(),
        config_sha256=file_sha256(PROGRAM),
        source="a simulator: no kernel ran",
    )
