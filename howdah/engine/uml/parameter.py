# SPDX-License-Identifier: Apache-2.0
"""Whether the modules of a run have the parameters it sets: the kernel ignores a name it does not know."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from howdah.agent.module import parameters_of
from howdah.build.modules import Module
from howdah.build.uml_kernel import Kernel
from howdah.errors import ParameterError
from howdah.plan.plan import Plan

_BUILTIN = "modules.builtin.modinfo"
_ENTRY = re.compile(rb"([A-Za-z0-9_]+)\.parm(?:type)?=([^:\0]+):")


def check_parameters(plan: Plan, modules: Iterable[Module], kernel: Kernel) -> None:
    """Raises ParameterError for the first parameter that a module, or the code built into the kernel, does not have."""
    for module in modules:
        for name in plan.module_parameters.get(module.name, {}):
            known = parameters_of(module.file)
            if name not in known:
                raise _error(plan, module.name, name, known)
    built_in = built_in_parameters(kernel.build_dir)
    for full in plan.kernel_parameters:
        owner, _, name = full.partition(".")
        if owner in built_in and name not in built_in[owner]:
            raise _error(plan, owner, name, built_in[owner])


def built_in_parameters(build: Path) -> dict[str, list[str]]:
    """Parameters of code built into a kernel, by module name; empty where the kernel's build keeps no list of them."""
    file = build / _BUILTIN
    if not file.is_file():
        return {}
    found: dict[str, set[str]] = {}
    for match in _ENTRY.finditer(file.read_bytes()):
        found.setdefault(match[1].decode(), set()).add(match[2].decode())
    return {module: sorted(names) for module, names in found.items()}


def _error(plan: Plan, module: str, name: str, known: list[str]) -> ParameterError:
    return ParameterError(module, name, known, plan.parameter_places.get(f"{module}.{name}"))
