# SPDX-License-Identifier: Apache-2.0
"""Repeat a finished run from its own plan and list what differs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from howdah.build.supervise import building_for_a_stranger
from howdah.engine.registry import engine as find_engine
from howdah.engine.share import bring_programs
from howdah.errors import HowdahError
from howdah.foreign import read_foreign
from howdah.plan.plan import Plan
from howdah.record.connections import read_connections
from howdah.record.digest import has_data
from howdah.record.directory import PARTIAL, RunDirectory, read_object
from howdah.record.provenance import first_record
from howdah.record.run import KernelOrigin, ModuleOrigin, RunRecord, Software, TreeOrigin, read_record, write_record
from howdah.record.table import equal
from howdah.record.verdict import Verdict, read_verdict
from howdah.scratch import held
from howdah.work.stage import execute, outdated, read_plan, refresh
from howdah.work.trust import check_trust, signed

Progress = Callable[[str, int, int], None]
# Fields of run.json with what a run was made on. A change of one of them explains tables that differ.
_MODULES = "modules"
MADE_ON = ("kernel", "guest_tree", _MODULES, "howdah")
Rows = dict[str, dict[str, Any]]  # measures or checks by name
METRICS, VERDICT = "metrics.json", "verdict.json"


@dataclass(frozen=True)
class FileDifference:
    """One value of ``file`` that differs. ``what`` names it, ``said`` is the old value, ``found`` the new one."""

    file: str
    what: str
    said: Any = None
    found: Any = None

    def __str__(self) -> str:
        return self.what if self.file.startswith("tables/") else f"{self.file} {self.what}"


@dataclass(frozen=True)
class Again:
    """A repeated run. ``differences`` has the first difference of the tables, and all differences of measures and
    verdict. ``changed`` maps each part that the run was made on, such as the kernel, to its old and new value.
    """

    directory: RunDirectory
    verdict: str
    differences: list[FileDifference] = field(default_factory=list)
    changed: dict[str, list[Any]] = field(default_factory=dict)
    tables_compared: bool = True

    @property
    def equal(self) -> bool:
        return not self.differences

    def changes_text(self) -> list[str]:
        """Return a line for each part in ``changed``, with one for each module."""
        shown = [
            (name, *(_short(name, each) for each in both)) for name, both in self.changed.items() if name != _MODULES
        ]
        for name, both in self._modules():
            with_file = all(each is None or each.sha256 for each in both)  # an earlier release recorded no digest
            shown.append((f"module {name}", *(_module(each, with_file=with_file) for each in both)))
        return [f"{name}: {before}, now {now}" for name, before, now in shown if before != now]

    def _modules(self) -> Iterator[tuple[str, tuple[ModuleOrigin | None, ModuleOrigin | None]]]:
        none: dict[str, ModuleOrigin] = {}
        before, now = (each or none for each in self.changed.get(_MODULES, [none, none]))
        for name in sorted({*before, *now}):
            yield name, (before.get(name), now.get(name))


def make_again(
    original: RunDirectory,
    final: Path,
    build: Progress,
    progress: Progress,
    *,
    up_to_date: bool = True,
    trust: bool = False,
) -> Again:
    """Repeat the run ``original`` in the new directory ``final`` and compare the two.

    If another version of the analysis made the original's results, they are recomputed first, unless ``up_to_date`` is
    false: then nothing in the original's directory changes. With ``trust`` the user permits the code that a stranger's
    plan names.

    Raise UntrustedError without that permission, and HowdahError where nothing can be compared: the run did not finish,
    or another version analysed it and its data were not kept.
    """
    plan = read_plan(original)
    record = read_record(original)
    _check_comparable(original, record)
    plan_json = read_foreign(original.plan).decode()
    is_strangers = check_trust(plan, plan_json, record, trust=trust)
    partial = RunDirectory(final.with_name(f"{PARTIAL}{final.name}-{os.getpid()}"))
    partial.path.mkdir(parents=True)  # fails where another container's process has this number, whose run stays
    try:
        with held(partial.path):
            partial.raw.mkdir()
            partial.share.mkdir()
            partial.plan.write_text(plan_json, encoding="utf-8")
            first = first_record(plan_json, record.key or "").replaced(rerun_of=str(original.path))
            write_record(partial, first if is_strangers else signed(first, plan, plan_json))
            bring_programs(original, partial, plan)
            if up_to_date:
                refresh(original)  # analyse both with the same code: compare runs, not analyses
            engine = find_engine(plan.engine)
            with building_for_a_stranger(is_stranger=is_strangers):
                engine.prepare([plan], build)
                verdict = execute(partial, progress, engine=engine)
            found = differences(original, partial, plan)
            partial.path.rename(final)
    except BaseException:
        shutil.rmtree(partial.path, ignore_errors=True)
        raise
    changed = _changes(record, read_record(RunDirectory(final)), with_addresses=bool(found))
    return Again(RunDirectory(final), verdict, found, changed, has_data(original))


def _check_comparable(original: RunDirectory, record: RunRecord) -> None:
    if record.status != "finished":
        raise HowdahError(f"this run is {record.status}: there is nothing to compare with", where=str(original.path))
    if outdated(original):
        raise HowdahError(
            "the results of this run were made by another version of the analysis, and its data were not kept",
            where=str(original.path),
            hint="There is nothing to compare with; 'howdah run --again' makes the run again.",
        )


def _changes(before: RunRecord, after: RunRecord, *, with_addresses: bool) -> dict[str, list[Any]]:
    """Return what the runs were made on and differs, and, ``with_addresses``, whether addresses were fixed in both."""
    changed = {
        name: [_recorded(before, name), _recorded(after, name)]
        for name in MADE_ON
        if _comparable(before, name, after) != _comparable(after, name, before)
    }
    fixed = [each.confinement is None or each.confinement.addresses_fixed for each in (before, after)]
    if with_addresses and not all(fixed):
        changed["addresses"] = fixed
    return changed


def differences(original: RunDirectory, again: RunDirectory, plan: Plan) -> list[FileDifference]:
    """Return the first difference of the tables, if the original has them, and all of the measures and the verdict."""
    found = []
    if has_data(original) and (first := equal(original, again)):
        found.append(FileDifference(f"tables/{first.table}.parquet", str(first)))
    rows = [_rows(run, plan) for run in (original, again)]
    return (
        found
        + measure_differences(*rows)
        + connection_differences(original, again)
        + verdict_differences(*(read_verdict(run) for run in (original, again)))
    )


def connection_differences(before: RunDirectory, after: RunDirectory) -> list[FileDifference]:
    """Return the first measure of a group's connections that differs. If the digest in metrics.json is not that of the
    file of these measures, return that instead."""
    file = before.connections.name
    found = [read_connections(each) for each in (before, after)]
    for each, rows in zip((before, after), found, strict=True):
        recorded = read_object(each.metrics).get("connections")
        if (rows.summary() if len(rows) else None) != recorded:
            return [FileDifference(file, "metrics.json has the digest of other measures of connections")]
    if len(found[0]) != len(found[1]):
        return [_difference(file, "measures of connections", len(found[0]), len(found[1]))]
    for one, other in zip(found[0].rows(), found[1].rows(), strict=True):
        if one != other:
            name = f"{one.metric} of flow {one.flow} of {one.group}"
            return [_difference(file, name, one.value, other.value)]
    return []


def _rows(run: RunDirectory, plan: Plan) -> list[dict[str, Any]]:
    """Return the measures of a run. In virtual time that computing does not advance, leave out processor times: they
    are a property of the machine."""
    rows: list[dict[str, Any]] = read_object(run.metrics).get("rows", [])
    of_the_machine = plan.traits.exact_uptime
    return [row for row in rows if not (of_the_machine and str(row["metric"]).startswith("cpu_"))]


def measure_differences(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[FileDifference]:
    """Return every measure whose value differs or that only one of the runs has."""
    return _row_differences(METRICS, _by_name(before), _by_name(after), "value")


def _row_differences(file: str, left: Rows, right: Rows, *first: str) -> list[FileDifference]:
    """Return the rows that differ, comparing the fields ``first`` before all others."""
    found = []
    for name in dict.fromkeys([*left, *right]):
        one, other = left.get(name), right.get(name)
        if one is None or other is None:
            found.append(FileDifference(file, f"{name}: only {'before' if one else 'now'}", one, other))
        elif one != other:
            key = next(key for key in (*first, *one, *other) if one.get(key) != other.get(key))
            what = name if key == "value" else f"{name}: {key}"
            found.append(_difference(file, what, one.get(key), other.get(key)))
    return found


def _difference(file: str, what: str, said: Any, found: Any) -> FileDifference:
    return FileDifference(file, f"{what}: {said!r} against {found!r}", said, found)


def _by_name(rows: list[dict[str, Any]]) -> Rows:
    """Map readable, unique names to rows; rows of the same name get a number."""
    found: Rows = {}
    for row in rows:
        name = f"{row['metric']} of flow {row['flow']}" if row["flow"] is not None else str(row["metric"])
        if row["flow"] is None and row.get("group"):
            name = f"{row['metric']} of group {row['group']}"
        number = 2
        unique = name
        while unique in found:
            unique, number = f"{name} ({number})", number + 1
        found[unique] = row
    return found


def verdict_differences(before: Verdict, after: Verdict) -> list[FileDifference]:
    """Return a difference of the verdict, and every check whose outcome differs."""
    found = []
    if before.verdict != after.verdict:
        found.append(_difference(VERDICT, "verdict", before.verdict, after.verdict))
    left, right = (
        {f"check '{check.name}' ({check.stage})": asdict(check) for check in each.checks} for each in (before, after)
    )
    return found + _row_differences(VERDICT, left, right, "ok", "measured")


def _recorded(record: RunRecord, name: str) -> Any:
    """Return a field as run.json has it; None if it is missing."""
    return getattr(record, name) if name in record.model_fields_set else None


def _comparable(record: RunRecord, name: str, other: RunRecord) -> Any:
    """Return the part of a field that shows a change: for modules the digests that ``other`` has, too, without the path
    of the source."""
    if name != _MODULES:
        return _recorded(record, name)
    found = {}
    for module, about in record.modules.items():
        less: dict[str, None] = {"source": None}
        if module in other.modules and other.modules[module].sha256 is None:  # of an earlier release
            less["sha256"] = None
        found[module] = about.model_copy(update=less)
    return found


def _short(name: str, value: Any) -> str:
    """Return a short text that distinguishes two values of a field."""
    if name == "addresses":
        return (
            "the same in every run" if value else "random, because this container forbids personality(2) and prctl(2)"
        )
    match value:
        case None:
            return "none"
        case KernelOrigin():
            return f"{value.release} (image {str(value.image_sha256)[:12]})"
        case TreeOrigin():
            return str(value.sha256)[:12]
        case Software():
            modified = ", modified" if value.modified else ""
            return f"{value.version} ({str(value.revision)[:12]}{modified})"
    return str(value)


def _module(about: ModuleOrigin | None, *, with_file: bool) -> str:
    if about is None:
        return "none"
    values = ", ".join(f"{name}={value}" for name, value in sorted((about.parameters or {}).items()))
    more = "; ".join(filter(None, (f"file {str(about.sha256)[:12]}" if with_file else "", values)))
    return (about.srcversion or "without srcversion") + (more and f" ({more})")
