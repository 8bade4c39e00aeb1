# SPDX-License-Identifier: Apache-2.0
"""The kernel modules that a profile brings: files that are there, under names of their own, and used by some run."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from howdah.errors import ProfileError
from howdah.profile.algorithm import KERNEL_NAME, MODULE_PREFIX, PLUG_IN_PREFIX, from_modules, module_name
from howdah.profile.model import Scenario
from howdah.profile.profile import PointScenario
from howdah.profile.source import Document
from howdah.profile.written import PATHS_START, written_path

RESERVED = "howdah_"  # begins the names of the project's own modules
_RENAME = "rename one of the files, and what it registers"


def check_modules(scenario: Scenario, document: Document, directory: Path) -> None:
    """Each file is there, and its name can be a module's and is no other file's. Raises ProfileError."""
    files: dict[str, str] = {}
    names: dict[str, str] = {}
    for index, module in enumerate(scenario.modules):
        where = document.place(("modules", index))
        source = written_path(directory, module, where)
        if source.suffix not in (".c", ".ko"):
            raise ProfileError(f"expected a kernel module's .c, .ko or .bpf.c file, not {module!r}", where=where)
        if not source.is_file():
            raise ProfileError(f"there is no file {source}", where=where, hint=PATHS_START)
        name = module_name(source)
        if not KERNEL_NAME.fullmatch(name.removeprefix(MODULE_PREFIX)):
            what = f"{source.name} cannot name an algorithm: the kernel takes at most 15 letters, digits, - and _"
            raise ProfileError(what, where=where)
        if name.startswith(RESERVED):
            what = f"{source.name} has the name of one of howdah's own modules, which begin with {RESERVED}"
            raise ProfileError(what, where=where, hint="rename the file")
        if name in files:
            what = f"two modules are called {name}: {files[name]} and {module}"
            raise ProfileError(what, where=where, hint=_RENAME)
        files[name] = module
        for brought in from_modules([source]):
            if brought in names:
                what = f"{names[brought]} and {module} both bring an algorithm called {brought}"
                raise ProfileError(what, where=where, hint=_RENAME)
            names[brought] = module


def claimed_modules(scenario: Scenario) -> set[str]:
    """Modules of the profile that an algorithm is known to come from, by the file's name or by ``algorithms:``.

    A run loads such a module where it uses the algorithm. Any other one is loaded by every run.
    """
    found = {entry.module for entry in from_modules(Path(module) for module in scenario.modules).values()}
    for section in scenario.algorithms.values():
        found.add((section.module or f"{MODULE_PREFIX}{section.kernel}").replace("-", "_"))
    return {name for name in found if name}


def check_modules_used(points: Iterable[PointScenario]) -> None:
    """Raises ProfileError for a module that no run of the profile would load."""
    used: set[str] = set()
    unused: dict[str, PointScenario] = {}
    for point in points:
        claimed = claimed_modules(point.scenario)
        needed = {entry.module for entry in point.algorithms.values()}
        for module in point.scenario.modules:
            name = module_name(Path(module))
            if name in needed or name not in claimed:
                used.add(module)
            else:
                unused.setdefault(module, point)
    for module, point in unused.items():
        if module not in used:
            raise _unused(module, point)


def _unused(module: str, point: PointScenario) -> ProfileError:
    source = Path(module)
    names = [*from_modules([source])]
    names += [
        name
        for name, section in point.scenario.algorithms.items()
        if (section.module or "").replace("-", "_") == module_name(source)
    ]
    what = f"{source.name} is never used: no flow of any run asks for its algorithm ({', '.join(names)})"
    hint = (
        f"Name the algorithm (algorithm: {names[-1]}), or take the file out (--set 'modules=[]'). "
        f"A module that is not a congestion control needs a name without {MODULE_PREFIX} or {PLUG_IN_PREFIX}."
    )
    index = point.scenario.modules.index(module)
    return ProfileError(what, where=point.document.place(("modules", index)), hint=hint)
