# SPDX-License-Identifier: Apache-2.0
"""Chooses the modules that a guest's kernel loads, and checks the parameters that the run sets.

The kernel ignores an unknown name. A value that a parameter of built-in code rejects is fatal at boot: the kernel stops
parsing its command line there and finds no program to run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from howdah.agent.module import parameters_of
from howdah.build.modules import Module
from howdah.build.uml_kernel import Kernel
from howdah.engine.uml.build import Built
from howdah.errors import ParameterError
from howdah.plan.module import TRAFFIC_MODULE
from howdah.plan.plan import Plan

_BUILTIN = "modules.builtin.modinfo"
_TYPE = re.compile(rb"([A-Za-z0-9_]+)\.parmtype=([^:\0]+):([a-z]+)\0")
# Range of each integer type of the kernel's parameters.
_NUMBERS = {
    "byte": (0, 2**8 - 1),
    "short": (-(2**15), 2**15 - 1),
    "ushort": (0, 2**16 - 1),
    "int": (-(2**31), 2**31 - 1),
    "uint": (0, 2**32 - 1),
    "long": (-(2**63), 2**63 - 1),
    "ulong": (0, 2**64 - 1),
}
_WHOLE = re.compile(r"(?P<sign>[+-]?)(?:0[xX](?P<hex>[0-9a-fA-F]+)|(?P<octal>0[0-7]*)|(?P<decimal>[1-9][0-9]*))")
_TRUTH = re.compile(r"(?:[yYtT1nNfF0]|[oO][nNfF]).*|")  # kstrtobool() ignores what follows
_ENTRY = re.compile(rb"([A-Za-z0-9_]+)\.parm(?:type)?=([^:\0]+):")


def check_parameters(plan: Plan, modules: Iterable[Module], kernel: Kernel) -> None:
    """Raise ParameterError for the first parameter that a module or built-in code lacks, or value it rejects."""
    for module in modules:
        for name in plan.module_parameters.get(module.name, {}):
            known = parameters_of(module.file)
            if name not in known:
                raise _error(plan, module.name, name, known)
    if not plan.kernel_parameters:
        return
    built_in = built_in_parameters(kernel.build_dir)
    for full in plan.kernel_parameters:
        owner, _, name = full.partition(".")
        if owner in built_in and name not in built_in[owner]:
            raise _error(plan, owner, name, built_in[owner])
    kinds = _built_in_types(kernel.build_dir)
    for full, value in plan.kernel_parameters.items():
        expected = _expected(kinds.get(full, ""), value)
        if expected is not None:
            what = f"{full} takes {expected}, not {value!r}"
            raise ParameterError(what, where=plan.parameter_places.get(full), hint="a kernel does not boot with it")


def built_in_parameters(build: Path) -> dict[str, list[str]]:
    """Return the parameters of built-in code by module name; empty if the kernel's build has no list of them."""
    file = build / _BUILTIN
    if not file.is_file():
        return {}
    found: dict[str, set[str]] = {}
    for match in _ENTRY.finditer(file.read_bytes()):
        found.setdefault(match[1].decode(), set()).add(match[2].decode())
    return {module: sorted(names) for module, names in found.items()}


def _built_in_types(build: Path) -> dict[str, str]:
    """Return types by ``module.parameter``; empty if the kernel's build has no list of them."""
    file = build / _BUILTIN
    content = file.read_bytes() if file.is_file() else b""
    return {f"{found[1].decode()}.{found[2].decode()}": found[3].decode() for found in _TYPE.finditer(content)}


def _expected(kind: str, value: str) -> str | None:
    """Describe what a parameter of this type takes; None if the value is valid or the type is not checked."""
    if kind in ("bool", "invbool"):
        return None if _TRUTH.fullmatch(value) else "yes or no, as 1 or 0"
    if kind not in _NUMBERS:
        return None
    least, largest = _NUMBERS[kind]
    number = _WHOLE.fullmatch(value)
    if number is not None and not (number["sign"] == "-" and least == 0):
        digits = number["decimal"] or number["hex"] or number["octal"]
        base = 10 if number["decimal"] else 16 if number["hex"] else 8
        if least <= int(f"{number['sign']}{digits}", base) <= largest:
            return None
    return f"a whole number from {least} to {largest}"


def _error(plan: Plan, module: str, name: str, known: list[str]) -> ParameterError:
    return ParameterError.unknown(module, name, known, plan.parameter_places.get(f"{module}.{name}"))


def modules_of(plan: Plan, required: Iterable[str] | None, built: Built) -> list[Module]:
    """Return the ``required`` modules and their dependencies, in the order of loading.

    If the profile brings modules or a kernel, howdah_traffic is loaded even if another program makes the traffic
    (provided that it builds): user code may crash, and that module reports the calls that led there
    (modules/traffic/traffic_crash.c). Raises HowdahError for a module that did not build, and ParameterError.
    """
    brought = bool(plan.modules) or any("/" in kernel for kernel in plan.kernels)
    beside = [TRAFFIC_MODULE] if brought else []
    modules = built.module_set.choose(required, plan.kernels_algorithms, beside)
    check_parameters(plan, modules, built.kernel)
    return modules
