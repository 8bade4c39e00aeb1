# SPDX-License-Identifier: Apache-2.0
"""Everything that a plan refers to outside of itself: files of the machine that makes the run, and that machine itself.

A plan from elsewhere that is run again makes the reader's machine build, load or start these (``howdah/work/trust.py``
asks first). Content given by digest, and files shipped with howdah, are not included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from howdah.default import KERNEL_FORM
from howdah.foreign import is_plain_name
from howdah.place import STACKS
from howdah.plan.plan import Plan
from howdah.plan.traffic import ProgramFile
from howdah.trait import traits

_KERNEL = re.compile(KERNEL_FORM, re.ASCII)
_STACK = re.compile(r"stacks/([a-z0-9-]+)\.yaml", re.ASCII)
# A user-mode kernel has arguments that name files and programs of the host; their names have no dot.
_PARAMETER = re.compile(r"[A-Za-z0-9_]+\.[A-Za-z0-9_]+", re.ASCII)
_VALUE = re.compile(r"[!-~]*", re.ASCII)
_DIGEST = re.compile(r"[0-9a-f]{64}", re.ASCII)
_GUESTS = ("uml", "vm")  # engines that run a plan in a guest
CONFINING = ("uml",)  # engines whose guests the launcher confines (howdah/build/confine.h), if the machine can
_ENDS = ("client", "server")
MOST_PROGRAM_BYTES = 256 * 2**20

KERNEL, MODULE, STACK, PROGRAM, ENGINE = "kernel", "module", "stack", "program of", "engine"
BUILT = (KERNEL, MODULE, STACK)  # built on this machine; a stranger's in a sandbox (howdah/build/supervise.py)


@dataclass(frozen=True)
class Dependency:
    """``kind`` says what it is, ``name`` is its path in the plan, or the name of an engine or a flow.

    ``runs`` describes which part of it runs where.
    """

    kind: str
    name: str
    runs: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.runs}"


def dependencies_of(plan: Plan) -> list[Dependency]:
    """Return everything that the plan refers to, each once; empty if this howdah and Debian kernels suffice for it."""
    return list(dict.fromkeys(_dependencies(plan)))


def _dependencies(plan: Plan) -> Iterator[Dependency]:
    if plan.engine not in _GUESTS:
        yield Dependency(ENGINE, plan.engine, "the run is made outside of a guest, with this machine's own programs")
    kernels = [*plan.kernels, *(plan.machine_kernels or {}).values()]
    for kernel in kernels if not _is_model(plan.engine) else ():
        if not _KERNEL.fullmatch(kernel):
            yield Dependency(KERNEL, kernel, "its makefiles and build scripts run on this machine")
    for file in (plan.own_kernel.modules, plan.own_kernel.headers) if plan.own_kernel is not None else ():
        if file is not None:
            yield Dependency(KERNEL, file, "the makefiles and scripts of its headers run on this machine")
    for module in plan.modules:
        yield Dependency(MODULE, module, "its Kbuild, its includes and the compiler run on this machine")
    for flow in plan.flows:
        if flow.program is not None:
            yield Dependency(PROGRAM, flow.title, "its commands run in the guest")
        for stack in flow.stacks:
            file = stack.file
            if not _is_shipped(file):
                yield Dependency(STACK, file, "the commands that build it run on this machine")


def _is_model(engine: str) -> bool:
    """Whether the engine's runs have no kernel. Decided by the engine's name, as the traits in a plan may be forged."""
    try:
        return bool(traits(engine).model)
    except KeyError:
        return False


def _is_shipped(file: str) -> bool:
    match = _STACK.fullmatch(file)
    return match is not None and (STACKS / f"{match[1]}.yaml").is_file()


def programs_of(plan: Plan) -> Iterator[tuple[str, ProgramFile]]:
    """Yield the directory below share/ and each file of the programs that make flows (docs/data-format.md)."""
    for flow in plan.flows:
        if flow.program is None:
            continue
        for end in _ENDS:
            for file in flow.program.end(end).files:
                yield f"program/{flow.id}-{end}", file


def check_names(plan: Plan) -> None:
    """Raise ValueError for a name that could mean something else: a file elsewhere, or an option of a program."""
    for name in (plan.run, plan.profile):
        if not is_plain_name(name):
            raise ValueError(f"{name!r} is not the name of a run or a profile")
    places: set[tuple[str, str]] = set()
    for place, file in programs_of(plan):
        name = file.name
        if not is_plain_name(name.lstrip(".")) or name in (".", "..") or (place, name) in places:
            raise ValueError(f"{name!r} is not the name of a program's file")
        if not _DIGEST.fullmatch(file.sha256):
            raise ValueError(f"the program's file {name!r} has no digest")
        places.add((place, name))
    for name, value in plan.kernel_parameters.items():
        if not _PARAMETER.fullmatch(name) or not _VALUE.fullmatch(value):
            raise ValueError(f"{name}={value} is not a parameter of a kernel's module")
    for flow in plan.flows:
        for stack in flow.stacks:
            if not is_plain_name(stack.name):
                raise ValueError(f"{stack.name!r} is not the name of a stack")
