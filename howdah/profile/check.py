# SPDX-License-Identifier: Apache-2.0
"""Checks that span several fields of a profile: algorithms exist and can share a kernel, and files exist."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from howdah.algorithm import ALGORITHMS, HYSTART_PAIR, Algorithm, ProfileModule, algorithms_with, from_modules
from howdah.errors import ProfileError, did_you_mean, nearest
from howdah.profile.model import AlgorithmSection, Scenario
from howdah.profile.module import all_provided_modules, check_modules, declared_module, declared_modules, defects
from howdah.profile.override import dotted
from howdah.profile.source import Document, Path_
from howdah.profile.stack import is_other_stack, read_stack, stack_file
from howdah.profile.varying import JITTER_INTERVAL_US, MOST_CHANGES
from howdah.profile.written import check_kernel_name, written_path

MOST_CHANGES_TOGETHER = 2_000_000


def count_changes(scenario: Scenario) -> dict[Path_, int]:
    """Upper bounds on the path changes of a run, by the field that causes them; a trace has its own limit."""
    path = scenario.path
    counts: dict[Path_, int] = {("path", "schedule"): len(path.schedule)}
    if path.delay_variation is not None:
        directions = 2 if path.delay_variation.direction == "both" else 1
        counts["path", "delay_variation"] = directions * _count_intervals(scenario, path.delay_variation.interval)
    if path.rate_variation is not None:
        counts["path", "rate_variation"] = _count_intervals(scenario, path.rate_variation.interval)
    if path.handover is not None:
        each = 6 if path.handover.outage else 2  # delay in both directions; with an outage also loss, begin and end
        counts["path", "handover"] = each * _count_intervals(scenario, path.handover.every)
    if scenario.perturbation.jitter.amount and scenario.repetitions > 1:
        counts["perturbation", "jitter"] = _count_intervals(scenario, JITTER_INTERVAL_US)
    return counts


def _count_intervals(scenario: Scenario, interval_us: int) -> int:
    return -(-scenario.duration // interval_us)


def check_changes(scenario: Scenario, document: Document) -> None:
    """Raise ProfileError if the path of one run changes too often, at the field that contributes most."""
    counts = count_changes(scenario)
    total = sum(counts.values())
    if total <= MOST_CHANGES:
        return
    place = max(counts, key=lambda each: counts[each])
    what = f"{dotted(place)}: the path would change {total} times in a run, more than {MOST_CHANGES}"
    hint = "make the time between changes longer, or duration shorter"
    raise ProfileError(what, where=document.place(place), hint=hint)


def check_changes_together(runs: Iterable[tuple[Scenario, int]], document: Document) -> None:
    """Raise ProfileError if the plans of a whole sweep would not fit into memory; ``runs`` are scenarios and their
    numbers of runs.
    """
    total = sum(sum(count_changes(scenario).values()) * count for scenario, count in runs)
    if total > MOST_CHANGES_TOGETHER:
        what = f"in all runs together the path would change {total} times, more than {MOST_CHANGES_TOGETHER}"
        hint = "split the profile, make the time between changes longer, or duration shorter"
        raise ProfileError(what, where=document.place(("path",)), hint=hint)


_WHERE_LISTED = "howdah list algorithms shows them; your own need a modules: or algorithms: entry"


def check_scenario(scenario: Scenario, document: Document, directory: Path) -> dict[str, Algorithm]:
    """Check one point of the sweep. Return every algorithm that it uses, by name. Raises ProfileError."""
    check_modules(scenario, document, directory)
    _check_kernel(scenario, document, directory)
    _check_stacks(scenario, document, directory)
    table = _table(scenario, document, directory)
    used: dict[str, Algorithm] = {}
    for name, path in _names_used(scenario):
        if name not in table:
            raise ProfileError(
                f"there is no algorithm {name!r}",
                where=document.place(path),
                hint=". ".join(
                    [
                        *defects(scenario, document, directory),
                        _hint(name, table, all_provided_modules(scenario, document, directory)),
                    ]
                ),
            )
        _check_compatible(used, table[name], document.place(path))
        used[name] = table[name]
    return used


def _hint(name: str, table: Mapping[str, Algorithm], found: Sequence[ProfileModule]) -> str:
    close = nearest(name, table)
    hint = f"did you mean {close}? " if close else ""
    if not found:
        return hint + _WHERE_LISTED
    names = [
        f"{', '.join(sorted(from_modules([module]))) or 'a module that brings none by its name'} ({module.file})"
        for module in found
    ]
    return f"{hint}modules: brings {'; '.join(names)}. howdah list algorithms shows those that need no module"


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
    found = all_provided_modules(scenario, document, directory)
    table = algorithms_with(found, declared_modules(scenario))
    built = {module.name: module for module in found}
    for name, section in scenario.algorithms.items():
        place = ("algorithms", name)
        if section.kernel is None:
            table[name] = _derived_from(name, section, table, built, document.place((*place, "like")))
            continue
        declared = _declared(name, section, built, document.place((*place, "parameters")))
        like = _start_up_of(name, section, document.place((*place, "like")))
        table[name] = dataclasses.replace(declared, like=like)
    return table


def _start_up_of(name: str, section: AlgorithmSection, where: str) -> str | None:
    """The kernel name of the built-in algorithm that ``like`` names: the declared algorithm has the same start-up."""
    if section.like is None:
        return None
    own = [known for known in ALGORITHMS.values() if known.builtin]
    found = next((known.kernel for known in own if known.name == section.like), None)
    if found is None:
        what = f"algorithms.{name} has a kernel name, and is like {section.like!r}, which is not built into the kernel"
        names = ", ".join(known.name for known in own)
        raise ProfileError(
            what, where=where, hint=f"like names the built-in algorithm with the same start-up: one of {names}"
        )
    return found


def _derived_from(
    name: str, section: AlgorithmSection, table: dict[str, Algorithm], built: Collection[str], where: str
) -> Algorithm:
    """The algorithm that ``like`` names (known, or declared earlier), under a new name and with other parameters."""
    known = table.get(str(section.like))
    if known is None:
        hint = did_you_mean(str(section.like), table, _WHERE_LISTED, both=True)
        raise ProfileError(f"algorithms.{name} is like {section.like!r}, which is not known", where=where, hint=hint)
    module = declared_module(section) or known.module
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
        builtin=known.builtin and module not in built,
    )


def _declared(name: str, section: AlgorithmSection, built: Mapping[str, ProfileModule], where: str) -> Algorithm:
    kernel = str(section.kernel)
    known = next((known for known in ALGORITHMS.values() if known.kernel == kernel), None)
    brings = [module.name for module in built.values() if kernel in (module.registers or ())]
    module = declared_module(section) or (brings[0] if brings else known.module if known else None)
    if module is None and f"tcp_{kernel}" in built:
        module = f"tcp_{kernel}"
    if section.parameters and module is None:
        raise ProfileError(f"algorithms.{name} has parameters but no module to set them on", where=where)
    base = section.base or (known.base if known else kernel)
    builtin = known is not None and known.builtin and module not in built
    summary = f"{kernel}, declared by the profile"
    return Algorithm(name, kernel, module, base, summary, dict(section.parameters), builtin)


def _check_compatible(used: dict[str, Algorithm], added: Algorithm, where: str) -> None:
    """Raise ProfileError unless ``added`` can share a kernel with the algorithms ``used``: one kernel has one module
    per kernel name, and one set of parameters per module."""
    for other in used.values():
        if other.name == added.name:
            continue
        if other.kernel == added.kernel and other.module != added.module:
            what = (
                f"{other.name} and {added.name} cannot share a run: the kernel has one {added.kernel}, "
                f"of {other.module or 'its own'} or of {added.module or 'its own'}"
            )
            raise ProfileError(what, where=where, hint="compare them in two runs: algorithm: [..., ...]")
        same = other.module == added.module if other.module else other.kernel == added.kernel
        if same and dict(other.parameters) != dict(added.parameters):
            what = f"{other.name} and {added.name} cannot share a run: {added.module} has one set of parameters"
            hint = "compare them in two runs: algorithm: [..., ...]"
            if other.kernel == "cubic":
                hint += f"; or hold cubic beside the plug-ins that start alike: {HYSTART_PAIR}"
            raise ProfileError(what, where=where, hint=hint)


def _check_kernel(scenario: Scenario, document: Document, directory: Path) -> None:
    where = document.place(("kernel",))
    check_kernel_name(scenario.kernel, where)
    if "/" not in scenario.kernel:
        return
    tree = written_path(directory, scenario.kernel, where)
    if not tree.exists():
        raise ProfileError(f"there is no kernel tree {tree}", where=where)


def _check_stacks(scenario: Scenario, document: Document, directory: Path) -> None:
    named: list[tuple[str | None, Path_]] = [
        (scenario.receiver.stack, ("receiver", "stack")),
        (scenario.sender.stack, ("sender", "stack")),
    ]
    for index, flow in enumerate(scenario.every_flow):
        own = scenario.place_of(index)
        named += [(flow.receiver_stack, (*own, "receiver_stack")), (flow.sender_stack, (*own, "sender_stack"))]
    for name, place in named:
        if name is not None and is_other_stack(name):
            read_stack(stack_file(name, directory, document.place(place)))
