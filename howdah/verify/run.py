# SPDX-License-Identifier: Apache-2.0
"""Verify one run: its files against their digests, and its results against recomputed ones."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from howdah.errors import HowdahError, RecordError, explain
from howdah.extension import extensions
from howdah.foreign import kind_of, open_foreign, read_foreign
from howdah.hooks import GROUPS
from howdah.ingest.run import ingest
from howdah.record.digest import has_data, mismatches
from howdah.record.directory import RunDirectory, read_object
from howdah.record.provenance import RESULTS, analysis_sha256, sha256_text
from howdah.record.raw import agent_or_empty, content_name, raw_exists
from howdah.record.run import RunRecord, read_record
from howdah.record.schema import TABLES
from howdah.record.table import TRIPPED, first_difference, open_table, read
from howdah.record.verdict import read_verdict
from howdah.scratch import scratch
from howdah.trait import traits
from howdah.verify.finding import Discrepancy, Report, repeated_names
from howdah.work.again import (
    FileDifference,
    connection_differences,
    make_again,
    measure_differences,
    verdict_differences,
)
from howdah.work.analysis import evaluate
from howdah.work.stage import read_plan

Progress = Callable[[str, int, int], None]

PREFIX = "howdah-verify-"  # prefix of scratch directories; a command makes everything in one of them


def verify_run(directory: RunDirectory, *, compute: bool = True, place: Path | None = None) -> Report:
    """Check one run without changing its directory. ``compute`` False checks only the digests.

    Results are computed in a directory below ``place``, which the caller always removes.
    """
    report = Report(str(directory.path))
    try:
        record = read_record(directory)
    except (OSError, RecordError) as error:
        report.findings.append(Discrepancy("run.json", f"it cannot be read: {error}"))
        return report
    _check_digests(directory, record, report)
    _check_plan(directory, record, report)
    _check_provenance(directory, record, report)
    _report_unconfirmed(record, report)
    report.computed = compute
    if not compute:
        return report
    if not _has_extensions(record, report):
        report.computed = False
        return report
    _check_names(directory, report)
    _check_guest_plans(directory, record, report)
    if record.status != "finished":
        report.notes.append(f"the run is {record.status}: it has no results to compute")
        _check_failure(directory, record, report)
    elif not has_data(directory):
        report.computed = False
        why = "the data were removed (keep: first)"
        if record.packed_as == "results":
            why = "records and tables were left out of the pack (--results)"
        passes = "which a number that was changed with its digest passes: 'howdah rerun' makes a run again"
        report.notes.append(f"its results cannot be recomputed: {why}; digests only, {passes}")
    else:
        _compute(directory, record, report, place)
    return report


def _has_extensions(record: RunRecord, report: Report) -> bool:
    """Whether the extensions that took part in the run are here, and no others that add results; report gaps."""
    took_part = {(each.kind, each.name): each for each in record.extensions}
    here = {(each.kind, each.name): each for kind in GROUPS for each in extensions(kind).values() if not each.is_own}
    gaps = []
    for key, each in took_part.items():
        package = f"the package {each.package} {each.version}, which added {key[1]!r} ({key[0]}) to the run"
        if key not in here:
            gaps.append(f"{package}, is not installed here: nothing was computed again")
        elif here[key].to_json() != each.plain():
            gaps.append(f"{package}, is here as {here[key].package} {here[key].version}: nothing was computed again")
    for key, found in here.items():
        if found.kind in RESULTS and key not in took_part:
            package = f"the package {found.package} {found.version}"
            gaps.append(f"{package} adds {key[1]!r} ({key[0]}) here, and took no part in the run: nothing was computed")
    report.gaps += gaps
    return not gaps


def _check_digests(directory: RunDirectory, record: RunRecord, report: Report) -> None:
    if record.digests is None:
        report.gaps.append("no digests: made by an earlier version of howdah, so any file may have been changed since")
        return
    report.checked.append(f"{len(record.digests)} files against their digests")
    report.findings += [Discrepancy(each.file, str(each)) for each in mismatches(directory, record)]


def _check_plan(directory: RunDirectory, record: RunRecord, report: Report) -> None:
    """Check that plan.json is the plan that names the run and that the guest received."""
    if not directory.plan.exists():
        return  # the check of digests reports it
    given = directory.share / "plan.json"
    try:
        text = read_foreign(directory.plan).decode()
        was_given = read_foreign(given).decode() if given.exists() else None
    except (OSError, UnicodeError, RecordError) as error:
        report.findings.append(Discrepancy("plan.json", f"it or the guest's copy of it cannot be read: {_why(error)}"))
        return
    if record.plan_sha256 != sha256_text(text):
        report.findings.append(Discrepancy("plan.json", "it is not the plan that run.json names (plan_sha256)"))
    if was_given is not None and was_given != text:
        report.findings.append(Discrepancy("share/plan.json", "the guest was given another plan"))


def _check_names(directory: RunDirectory, report: Report) -> None:
    """Check that no file repeats a name, and that tables/ contains only tables."""
    files = (directory.provenance, directory.plan, directory.metrics, directory.verdict, directory.raw / "agent.json")
    for file in files:
        for name in repeated_names(file):
            report.findings.append(Discrepancy(str(file.relative_to(directory.path)), f"it says {name!r} twice"))
    known = {directory.ingested.name, *(directory.table(name).name for name in TABLES)}
    for table in sorted(directory.tables.iterdir()) if directory.tables.is_dir() else ():
        if table.name not in known and not table.name.startswith("."):
            report.findings.append(Discrepancy(f"tables/{table.name}", "howdah makes no such table"))


def _check_guest_plans(directory: RunDirectory, record: RunRecord, report: Report) -> None:
    """Check that each guest's plan exists, and that the plan's traits are those of its engine."""
    try:
        plan = read_plan(directory)
        due = traits(plan.engine, real_time=plan.real_time is not None)
    except KeyError:
        report.gaps.append(f"no engine is called {plan.engine!r}: nothing says what its runs must hold")
        return
    except (HowdahError, OSError) as error:
        what = error.what if isinstance(error, HowdahError) else explain(error)
        report.findings.append(Discrepancy("plan.json", what))
        return
    if record.status == "finished" and not record.data_removed:
        for name in [f"share/{part.name}/plan.json" for part in plan.parts] or ["share/plan.json"]:
            if not (directory.path / name).exists():
                report.findings.append(Discrepancy(name, "it is missing: nothing says what the guest was given"))
    if plan.traits != due:  # traits decide what is judged, and how strictly
        report.findings.append(Discrepancy("plan.json", f"its traits are not those of the engine {plan.engine}"))


def _why(error: Exception) -> str:
    return explain(error) if isinstance(error, OSError) else str(error)


def _check_failure(directory: RunDirectory, record: RunRecord, report: Report) -> None:
    """Check that a failed run has no measures, and that its verdict gives the reason in run.json."""
    if record.status != "failed":
        report.gaps.append("the run has not ended")
        return
    report.checked.append("metrics and verdict against the failure")
    if read_object(directory.metrics).get("rows"):
        report.findings.append(Discrepancy("metrics.json", "it has measures, and the run failed"))
    try:
        verdict = read_verdict(directory)
        is_it = verdict.verdict == "invalid" and [check.message for check in verdict.checks] == [record.error]
    except (OSError, RecordError):
        is_it = False
    if not is_it:
        report.findings.append(Discrepancy("verdict.json", "it is not that of the failure in run.json"))


def _report_unconfirmed(record: RunRecord, report: Report) -> None:
    """Report the statements of run.json that no file of the run can confirm."""
    facts = {
        "kernel image": str(record.kernel.image_sha256)[:12],
        "source": record.kernel.source,
        "howdah": f"{record.howdah.version} ({str(record.howdah.revision)[:12]})",
        "host": record.host.cpu or record.host.machine,
        "made": record.started,
    }
    report.claimed += [f"{name} {value}" for name, value in facts.items() if value is not None]


def _check_provenance(directory: RunDirectory, record: RunRecord, report: Report) -> None:
    """Compare run.json with what the guest reported, and check whether data are there as it says."""
    if record.data_removed and directory.raw.is_dir():
        report.findings.append(Discrepancy("run.json", "it says that the data were removed, and raw/ is there"))
    agent = agent_or_empty(directory)
    for name in record.modules:
        if agent.modules is not None and name not in agent.modules:
            report.findings.append(Discrepancy("run.json", f"module {name}, which the guest did not have"))
    said, found = record.kernel.release, agent.kernel_release
    if said and found and said != found:
        report.findings.append(Discrepancy("run.json", f"kernel {said!r}, the guest said {found!r}", said, found))
    plan = read_object(directory.plan)
    for name in ("run", "seed"):
        whose = getattr(agent, name)
        if whose is not None and whose != plan.get(name):
            what = f"it is of {name} {whose!r}, the plan's is {plan.get(name)!r}"
            report.findings.append(Discrepancy("raw/agent.json", what, plan.get(name), whose))
    for name, module in (agent.modules or {}).items():
        said = record.modules[name].srcversion if name in record.modules else None
        found = module.srcversion if module else None
        if said and found and said != found:
            what = f"module {name} of version {said!r}, the guest loaded {found!r}"
            report.findings.append(Discrepancy("run.json", what, said, found))


def _compute(directory: RunDirectory, record: RunRecord, report: Report, place: Path | None) -> None:
    """Recompute tables from raw/, and metrics and verdict from the existing tables, and compare each."""
    if record.analysis_sha256 != analysis_sha256():
        report.notes.append(
            "it was analysed by another version of howdah: what differs below may be the analysis. 'howdah report' "
            "brings the run up to date"
        )
    try:
        plan = read_plan(directory)
        left_out = record.raw_left_out
        if left_out:
            report.computed = False
            report.notes.append("not all of its tables can be recomputed: files of raw/ were left out of the pack")
            _check_left_out(directory, left_out, report)
        with _scratch(directory, place, "tables") as scratch:
            ingest(scratch)
            _compare_tables(directory, scratch, report, part=bool(left_out))
        with _scratch(directory, place) as scratch:
            evaluate(scratch, plan, lambda _stage: contextlib.nullcontext())
            _compare_results(directory, scratch, report)
    except (HowdahError, OSError, *TRIPPED) as error:
        what = re.sub(rf"\S*/{PREFIX}\S*?/{re.escape(directory.name)}/", "", str(error))
        report.findings.append(Discrepancy("raw/", f"the results cannot be computed from it: {what}"))


@contextmanager
def _scratch(directory: RunDirectory, place: Path | None, *without: str) -> Iterator[RunDirectory]:
    """A copy of the run directory, under the same name, without results and without ``without``."""
    with scratch(PREFIX, place) as own:
        copy = RunDirectory(own / directory.name)
        copy.path.mkdir()
        made = {directory.metrics.name, directory.connections.name, directory.verdict.name, *without}
        for entry in directory.path.iterdir():
            if entry.name not in made:
                _link_or_copy(entry, copy.path / entry.name)
        yield copy


def _link_or_copy(entry: Path, target: Path) -> None:
    """Link a directory, copy a regular file, and skip anything else, which the check of digests has reported."""
    kind = kind_of(entry)
    if kind == "a directory":
        target.symlink_to(entry.resolve())
    elif kind is None:
        with open_foreign(entry) as source, target.open("wb") as copy:
            shutil.copyfileobj(source, copy)


def _check_left_out(directory: RunDirectory, left_out: list[str], report: Report) -> None:
    for name in left_out:
        if not name.startswith("raw/") or content_name(Path(name)).suffix == ".json":
            report.findings.append(Discrepancy("run.json", f"{name} is none of what a pack leaves out"))
        elif raw_exists(directory.path / content_name(Path(name))):
            report.findings.append(Discrepancy("run.json", f"{name} was left out, it says, and is there"))


def _compare_tables(directory: RunDirectory, scratch: RunDirectory, report: Report, *, part: bool) -> None:
    """Compare the tables with those from raw/, which gives fewer if ``part`` of its files were left out."""
    report.checked.append("tables against raw/" + (", as far as it is there" if part else ""))
    for name in TABLES:
        there = [each.table(name).exists() for each in (directory, scratch)]
        file = f"tables/{name}.parquet"
        if part and there[0] and (not there[1] or _rows_of(scratch, name) < _rows_of(directory, name)):
            continue  # made of a file that was left out
        if there[0] != there[1]:
            what = "raw/ gives no such table" if there[0] else "raw/ gives this table, and it is missing"
            report.findings.append(Discrepancy(file, what))
        elif there[0]:
            try:
                found = first_difference(name, read(directory, name, axes=True), read(scratch, name, axes=True))
            except HowdahError as error:
                report.findings.append(Discrepancy(file, error.what))
                continue
            if found is not None:
                report.findings.append(Discrepancy(file, f"not what raw/ gives, at {found}"))
    said, now = (read_object(each.ingested) for each in (directory, scratch))
    if said != now and not part:
        report.findings.append(Discrepancy("tables/ingest.json", "not what raw/ gives"))


def _rows_of(directory: RunDirectory, name: str) -> int:
    with open_table(directory.table(name), name) as file:
        return int(file.metadata.num_rows)


def _compare_results(directory: RunDirectory, scratch: RunDirectory, report: Report) -> None:
    report.checked.append("metrics and verdict against the tables")
    said, now = (read_object(each.metrics) for each in (directory, scratch))
    report.findings += [_finding(each) for each in measure_differences(*_rows(said, now))]
    report.findings += [_finding(each) for each in connection_differences(directory, scratch)]
    if said.get("cross_checks") != now.get("cross_checks"):
        report.findings.append(Discrepancy("metrics.json", "its cross-checks are not what the tables give"))
    files = [(directory.metrics.name, [said, now])]
    try:
        verdicts = [read_verdict(each) for each in (directory, scratch)]
        report.findings += [_finding(each) for each in verdict_differences(*verdicts)]
        files.append((directory.verdict.name, [read_object(each.verdict) for each in (directory, scratch)]))
    except (OSError, RecordError) as error:
        report.findings.append(Discrepancy(directory.verdict.name, _why(error)))
    found = {each.file for each in report.findings}
    for file, (one, other) in files:
        if one != other and file not in found:
            report.findings.append(Discrepancy(file, "it says more than the tables give, or in another order"))


def _rows(said: dict[str, Any], now: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    for each in (said, now):
        rows = each.get("rows")
        yield rows if isinstance(rows, list) else []


def _finding(difference: FileDifference, when: str = "") -> Discrepancy:
    return Discrepancy(difference.file, difference.what + when, difference.said, difference.found)


def rerun_run(
    directory: RunDirectory,
    report: Report,
    build: Progress,
    progress: Progress,
    *,
    trust: bool = False,
    place: Path | None = None,
) -> None:
    """Make the run again from its plan, in a temporary directory, and report the differences."""
    with scratch(PREFIX, place) as own:
        try:
            final = own / directory.name
            again = make_again(directory, final, build, progress, up_to_date=False, trust=trust)
        except HowdahError as error:
            report.gaps.append(f"it was not made again: {error.what}")
            return
    what = "made again: tables, metrics and verdict" if again.tables_compared else "made again: metrics and verdict"
    report.checked.append(what)
    report.computed = True
    report.findings += [_finding(each, " when the run is made again") for each in again.differences]
    report.notes += [f"changed since the run was made: {each}" for each in again.changes_text()]
    if not again.changed:
        report.notes.append("made again on the same kernel, guest tree, modules and howdah")
