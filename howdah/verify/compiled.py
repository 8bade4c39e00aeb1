# SPDX-License-Identifier: Apache-2.0
"""Check that the plans of an experiment are those that this version's compiler makes of its profile, none missing and
none extra.

The profile may come from a stranger: it is compiled only if that runs no code of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from howdah.errors import HowdahError, ProfileError
from howdah.place import PROJECT
from howdah.plan.compile import compile_plan
from howdah.plan.plan import of_today
from howdah.profile import Profile, load
from howdah.profile.profile import Cell
from howdah.record.directory import RunDirectory, read_object
from howdah.record.index import PENDING, ExperimentIndex, read_index
from howdah.record.provenance import software
from howdah.record.run import record_or_empty
from howdah.verify.finding import Discrepancy, Report

PROFILE = "profile.yaml"
_CHECKED = f"plans against {PROFILE}, which was compiled again"
_MOST_NAMED = 5


@dataclass(frozen=True)
class Compiled:
    """The cells of a profile by run name, for one way to read the profile."""

    profile: Profile
    cells: dict[str, Cell]


def check_plans(path: Path, index: ExperimentIndex, report: Report) -> None:
    """Compile the profile of an experiment again, and report differing, missing and extra plans of its runs."""
    try:
        compiled = _compiled(path, index)
    except HowdahError as error:
        report.gaps.append(f"its plans were not compared with {PROFILE}, which does not compile here: {error}")
        return
    report.checked.append(_CHECKED)
    _check_texts(path, index, compiled.profile, report)
    found: set[str] = set()
    by_command: dict[str, None] = {}
    for cell in index.cells:
        run = RunDirectory(path / cell.run)
        if not run.plan.exists():
            if cell.status == PENDING:
                report.gaps.append(f"{run.name} was not made")
                found.add(_slug(run.name))
            continue
        said = read_object(run.plan)
        name = str(said.get("run"))
        found.add(name)
        if name not in compiled.cells:
            what = f"{run.name} is not a run of this profile"
            report.findings.append(Discrepancy("experiment.json", what, name))
            continue
        if _slug(run.name) != name and _slug(run.name) in compiled.cells:
            what = f"{run.name} is the name of another run: its plan is that of {name}"
            report.findings.append(Discrepancy("experiment.json", what, run.name, name))
        difference = _difference(said, compiled.cells[name], by_command)
        if difference is not None:
            _report_difference(run, difference, report)
    report.claimed += by_command
    absent = [name for name in compiled.cells if name not in found]
    if absent:
        shown = ", ".join(absent[:_MOST_NAMED]) + (" …" if len(absent) > _MOST_NAMED else "")
        report.gaps.append(f"{len(absent)} of the profile's {len(compiled.cells)} runs are missing: {shown}")


def check_plan(run: RunDirectory, report: Report) -> None:
    """Check a single run's plan against the profile of its experiment."""
    home = run.path.parent
    index = None
    with suppress(HowdahError, OSError):
        index = read_index(home / "experiment.json")
    if index is None or not (home / PROFILE).exists():
        report.claimed.append("the plan: there is no profile to compile again")
        return
    if run.name not in {cell.run for cell in index.cells}:
        report.gaps.append(
            f"its plan was not compared with {PROFILE}: experiment.json does not list this run. The profile that made "
            "it had other values, which --set may have given"
        )
        return
    try:
        compiled = _compiled(home, index)
        said = read_object(run.plan)
        by_command: dict[str, None] = {}
        cell = compiled.cells.get(str(said.get("run")))
        difference = "it is none of this profile's" if cell is None else _difference(said, cell, by_command)
    except HowdahError as error:
        report.gaps.append(f"its plan was not compared with {PROFILE}, which does not compile here: {error}")
        return
    report.checked.append(f"its plan against {PROFILE} of the experiment")
    report.claimed += by_command
    if difference is not None:
        _report_difference(run, difference, report)


def _slug(directory_name: str) -> str:
    """A run's name without the suffix that distinguishes runs of different plans."""
    return directory_name.rpartition("-")[0] or directory_name


def _report_difference(run: RunDirectory, difference: str, report: Report) -> None:
    """Report a difference as a finding if this version made the plan; the compiler of another may differ (a gap)."""
    made, now = record_or_empty(run).howdah, software()
    name = f"{run.name}/plan.json" if Path(report.path) != run.path else "plan.json"
    if made == now:
        report.findings.append(Discrepancy(name, f"it is not what {PROFILE} gives: {difference}"))
    else:
        report.gaps.append(
            f"{name} is not what {PROFILE} gives by this howdah: {difference}. It claims to be of howdah "
            f"{made.version} ({str(made.revision)[:12]})"
        )


def _compiled(path: Path, index: ExperimentIndex) -> Compiled:
    """Return the reading of the profile that gives the listed runs, else the first. Raises HowdahError."""
    listed = {_slug(cell.run) for cell in index.cells}
    number = len(index.cells) if index.total is None else index.total
    first: Compiled | None = None
    problem: HowdahError | None = None
    ways = product(_directories(path, index), dict.fromkeys([index.quick, False]), (False, True))
    for directory, quick, unknowns in ways:
        try:
            profile = load(path / PROFILE, confirmed_runs=number, quick=quick, unknowns=unknowns, directory=directory)
            _check_harmless(profile)
            cells: Sequence[Cell] = profile.cells()
            found = Compiled(profile, {cell.run: cell for cell in cells})
            compile_plan(cells[0])
        except HowdahError as error:
            problem = problem or error
            continue
        first = first or found
        if listed == set(found.cells):
            return found
    if first is None:
        assert problem is not None
        raise problem
    return first


def _directories(path: Path, index: ExperimentIndex) -> list[Path]:
    """Directories where the profile's relative paths may start: the original one, if it exists, then the present
    one."""
    written = Path(index.profile.file)
    there = [(root / written).parent for root in (PROJECT, Path.cwd()) if (root / written).is_file()]
    return [*there[:1], path]


def _check_harmless(profile: Profile) -> None:
    for point in profile.points[:1]:
        if point.scenario.topology.file is not None:
            raise ProfileError(
                "it has a topology of its own, which is a program and is not run to verify something",
                where=point.document.place(("topology", "file")),
            )


def _difference(said: dict[str, Any], cell: Cell, by_command: dict[str, None]) -> str | None:
    """The first difference between a plan and what its cell gives; None if they are equal."""
    try:
        made = json.loads(compile_plan(cell).to_json())
        given: dict[str, str | None] = {
            name: str(said.get(name)) if said.get(name) != made.get(name) else None for name in ("engine", "kernel")
        }
        if any(given.values()):
            made = json.loads(compile_plan(cell, given["engine"], given["kernel"]).to_json())
            for name, value in given.items():
                if value is not None:
                    by_command[f"{name} {value}, which is not the profile's: --{name} on the command line"] = None
    except HowdahError as error:
        return f"it cannot be compiled: {error.what}"
    try:
        return next(differences(of_today(said), of_today(made)), None)
    except ValueError as error:
        return f"it cannot be read: {error}"


def differences(said: Any, made: Any, place: str = "") -> Iterator[str]:
    """Every place at which two JSON values differ, with both values."""
    if isinstance(said, dict) and isinstance(made, dict):
        for name in dict.fromkeys([*made, *said]):
            below = f"{place}.{name}" if place else str(name)
            if name not in said or name not in made:
                yield f"{below} is {'missing' if name not in said else 'extra'}"
            else:
                yield from differences(said[name], made[name], below)
    elif isinstance(said, list) and isinstance(made, list) and len(said) == len(made):
        for number, pair in enumerate(zip(said, made, strict=True)):
            yield from differences(*pair, f"{place}.{number}")
    elif type(said) is not type(made) or said != made:
        yield f"{place} is {_short(said)}, the profile gives {_short(made)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _check_texts(path: Path, index: ExperimentIndex, profile: Profile, report: Report) -> None:
    """Compare what experiment.json says about its profile with the profile."""
    for name, value in (("description", profile.description), ("axes", profile.axes)):
        said = getattr(index, name) if name in index.model_fields_set else None
        if said is not None and said != value:
            what = f"{name} is {_short(said)}, {PROFILE} has {_short(value)}"
            report.findings.append(Discrepancy("experiment.json", what, said, value))
    if index.name not in ("", path.name):
        report.notes.append(f"it was made as {index.name!r}")
