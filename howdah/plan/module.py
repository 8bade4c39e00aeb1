# SPDX-License-Identifier: Apache-2.0
"""The modules that a run loads, and which of its algorithms come from the profile's modules."""

from __future__ import annotations

from pathlib import Path as FilePath

from howdah.algorithm import is_bpf, module_name
from howdah.errors import ProfileError
from howdah.plan.kernel import ModuleBuild
from howdah.plan.link import LINK_MODULE
from howdah.plan.middlebox import HOP_MODULE
from howdah.plan.plan import Flow, Processor
from howdah.plan.processor import PROCESSOR_MODULE
from howdah.plan.receiver import RECEIVER_MODULE, Receivers
from howdah.profile import Cell
from howdah.profile.module import all_provided_modules, claimed_modules
from howdah.trait import Traits

TRAFFIC_MODULE = "howdah_traffic"


def required_modules(cell: Cell, flows: list[Flow], receivers: Receivers, processors: list[Processor]) -> list[str]:
    """Return the modules that the run needs for algorithms, traffic, receivers, middleboxes, processors and links, and
    the profile's modules that no known algorithm comes from.

    Modules of algorithms that the run does not use are left out, so that a broken one does not break the run.
    """
    needed = {entry.module for entry in cell.algorithms.values() if entry.module and not entry.builtin}
    if any("kernel" in (flow.traffic, flow.sink) for flow in flows):
        needed.add(TRAFFIC_MODULE)
    if receivers.needs_module:
        needed.add(RECEIVER_MODULE)
    if cell.scenario.path.middlebox is not None:
        needed.add(HOP_MODULE)
    if processors:
        needed.add(PROCESSOR_MODULE)
    if cell.scenario.path.link is not None or cell.scenario.path.reverse_link is not None:
        needed.add(LINK_MODULE)
    return sorted(needed | (set(_own_modules(cell)) - claimed_modules(cell.scenario, cell.document, cell.directory)))


def _own_modules(cell: Cell) -> list[str]:
    return [module.name for module in all_provided_modules(cell.scenario, cell.document, cell.directory)]


def module_builds(cell: Cell) -> dict[str, ModuleBuild]:
    """Return the builds of the profile's modules that consist of more than one file."""
    found = {}
    for index, entry in enumerate(cell.scenario.modules):
        if entry.include or entry.define or entry.sources:
            path, *others = (
                str(cell.absolute(name, "modules", index)) for name in (entry.file, *entry.include, *entry.sources)
            )
            count = len(entry.include)
            found[path] = ModuleBuild(others[:count], dict(entry.define), others[count:])
    return found


def own_algorithms(cell: Cell) -> dict[str, str]:
    """Map the kernel's name of each algorithm that a module of the profile provides in this run to that module."""
    own = _own_modules(cell)
    return {entry.kernel: entry.module for entry in cell.algorithms.values() if entry.module in own}


def check_bpf(cell: Cell, engine: str, kind: Traits) -> None:
    """Raise ProfileError for a BPF congestion control that has parameters or that the engine's kernels cannot load."""
    for index, module in enumerate(cell.scenario.modules):
        source = FilePath(module.file)
        if not is_bpf(source):
            continue
        where = cell.place("modules", index)
        if not kind.boots_machine:  # a booted machine runs a distribution's kernel, which has the BPF JIT
            what = f"the {engine} engine loads no congestion control in BPF ({source.name})"
            why = "User-mode kernels cannot compile BPF to machine code, which it needs; run it with --engine vm."
            raise ProfileError(what, where=where, hint=why)
        for entry in cell.algorithms.values():
            if entry.module == module_name(source) and entry.parameters:
                what = f"{source.name} takes no parameters ({', '.join(entry.parameters)}): BPF has none"
                raise ProfileError(what, where=where, hint="Name one file for each value.")
