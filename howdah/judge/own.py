# SPDX-License-Identifier: Apache-2.0
"""Whether the flows used the modules that the profile brings, and not what the kernel has under the same name."""

from __future__ import annotations

from howdah.plan.plan import Plan
from howdah.record.agent import AgentRecord, ModuleRecord
from howdah.record.verdict import ENGINE, Check


def own_module_checks(plan: Plan, agent: AgentRecord | None) -> list[Check]:
    """One check for each algorithm that must come from a module of the profile; ``agent`` is agent.json."""
    modules = (agent.modules if agent else None) or {}
    return [_check(name, module, modules.get(module) or ModuleRecord()) for name, module in plan.own_algorithms.items()]


def _check(name: str, module: str, record: ModuleRecord) -> Check:
    """More held the module while the flows ran than before, by the kernel's count; of BPF: had its algorithm."""
    label = f"module of {name}"
    registered = record.algorithms
    before, most = record.uses_before, record.uses_most
    if registered is None or before is None or most is None:
        return Check(label, ENGINE, False, f"it was not checked whether the flows use the profile's module {module}")
    if name not in registered:
        found = ", ".join(registered) or "nothing"
        message = f"the algorithm {name} is not the profile's: its module {module} registered {found}"
        return Check(label, ENGINE, False, message, name, found)
    if most <= before:
        return Check(label, ENGINE, False, f"no connection used the profile's module {module}", before + 1, most)
    programs = record.programs
    what = f"{len(programs)} programs in BPF" if programs else f"srcversion {record.srcversion}"
    message = f"connections used the profile's module {module} for {name} ({what})"
    return Check(label, ENGINE, True, message, before + 1, most, None, "uses")
