# SPDX-License-Identifier: Apache-2.0
"""What a profile's fields mean together: algorithms that exist and can share a kernel, files that are there."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from howdah.errors import ProfileError
from howdah.profile.algorithm import ALGORITHMS, KERNEL_NAME, from_modules, module_name, nearest
from howdah.profile.algorithm_entry import Algorithm
from howdah.profile.model import AlgorithmSection, Scenario
from howdah.profile.source import Document, Path_

_WHERE_LISTED = "howdah list algorithms shows them; your own need a modules: or algorithms: entry"


def check_scenario(scenario: Scenario, document: Document, directory: Path) -> dict[str, Algorithm]:
    """Check one point of the sweep; returns every algorithm it uses by name. Raises ProfileError."""
    _check_modules(scenario, document, directory)
    _check_kernel(scenario, document, directory)
    table = _table(scenario, document, directory)
    used: dict[str, Algorithm] = {}
    for name, path in _names_used(scenario):
        if name not in table:
            close = nearest(name, table)
            hint = f"did you mean {close}? {_WHERE_LISTED}" if close else _WHERE_LISTED
            raise ProfileError(f"there is no algorithm {name!r}", where=document.place(path), hint=hint)
        _check_mixture(used, table[name], document.place(path))
        used[name] = table[name]
    return used


def _names_used(scenario: Scenario) -> list[tuple[str, Path_]]:
    own = [(flow.algorithm, index) for index, flow in enumerate(scenario.every_flow)]
    names: list[tuple[str, Path_]] = [
        (name, (*scenario.place_of(index), "algorithm")) for name, index in own if name is not None
    ]
    groups = [(group.algorithm, ("groups", index, "algorithm")) for index, group in enumerate(scenario.groups)]
    names += [(name, path) for name, path in groups if name is not None]
    if any(name is None for name, _ in [*own, *groups]):
        names.insert(0, (scenario.algorithm, ("algorithm",)))
    return names


def _table(scenario: Scenario, document: Document, directory: Path) -> dict[str, Algorithm]:
    brought = from_modules(directory / module for module in scenario.modules)
    built = {module_name(Path(module)) for module in scenario.modules}
    table = {**brought, **ALGORITHMS}
    for name, section in scenario.algorithms.items():
        place = ("algorithms", name)
        if section.like is not None:
            table[name] = _alike(name, section, table, document.place((*place, "like")))
        else:
            table[name] = _declared(name, section, built, document.place((*place, "parameters")))
    return table


def _alike(name: str, section: AlgorithmSection, table: dict[str, Algorithm], where: str) -> Algorithm:
    """A known algorithm, or one declared before, under a name of its own and with other parameters."""
    known = table.get(str(section.like))
    if known is None:
        close = nearest(str(section.like), table)
        hint = f"did you mean {close}? {_WHERE_LISTED}" if close else _WHERE_LISTED
        raise ProfileError(f"algorithms.{name} is like {section.like!r}, which is not known", where=where, hint=hint)
    module = section.module or known.module
    if section.parameters and module is None:
        raise ProfileError(f"{known.name} is part of the kernel's TCP and has no parameters to set", where=where)
    given = " ".join(f"{key}={value}" for key, value in section.parameters.items())
    return dataclasses.replace(
        known,
        name=name,
        module=module,
        base=section.base or known.base,
        summary=f"{known.name}{' with ' if given else ''}{given}",
        parameters={**known.parameters, **section.parameters},
    )


def _declared(name: str, section: AlgorithmSection, built: set[str], where: str) -> Algorithm:
    kernel = str(section.kernel)
    known = next((known for known in ALGORITHMS.values() if known.kernel == kernel), None)
    module = section.module or (known.module if known else None)
    if module is None and f"tcp_{kernel}" in built:
        module = f"tcp_{kernel}"
    if section.parameters and module is None:
        raise ProfileError(f"algorithms.{name} has parameters but no module to set them on", where=where)
    base = section.base or (known.base if known else kernel)
    builtin = known is not None and known.builtin and module not in built
    summary = f"{kernel}, declared by the profile"
    return Algorithm(name, kernel, module, base, summary, dict(section.parameters), builtin)


def _check_mixture(used: dict[str, Algorithm], added: Algorithm, where: str) -> None:
    """Module parameters hold for the whole kernel, so one run cannot have two settings of one module."""
    for other in used.values():
        if other.name == added.name:
            continue
        same = other.module == added.module if other.module else other.kernel == added.kernel
        if same and dict(other.parameters) != dict(added.parameters):
            what = f"{other.name} and {added.name} cannot share a run: {added.module} has one set of parameters"
            raise ProfileError(what, where=where, hint="compare them in two runs: algorithm: [..., ...]")


def _check_modules(scenario: Scenario, document: Document, directory: Path) -> None:
    for index, module in enumerate(scenario.modules):
        where = document.place(("modules", index))
        source = directory / Path(module).expanduser()
        if source.suffix not in (".c", ".ko"):
            raise ProfileError(f"expected a kernel module's .c or .ko file, not {module!r}", where=where)
        if not source.is_file():
            raise ProfileError(f"there is no file {source}", where=where, hint="paths start at the profile's directory")
        if not KERNEL_NAME.fullmatch(module_name(source).removeprefix("tcp_")):
            what = f"{source.name} cannot name an algorithm: the kernel takes at most 15 letters, digits, - and _"
            raise ProfileError(what, where=where)


def _check_kernel(scenario: Scenario, document: Document, directory: Path) -> None:
    if "/" not in scenario.kernel:
        return
    tree = directory / Path(scenario.kernel).expanduser()
    if not tree.exists():
        raise ProfileError(f"there is no kernel tree {tree}", where=document.place(("kernel",)))
