# SPDX-License-Identifier: Apache-2.0
"""One run: its files against their digests, and its results against what comes out when they are computed anew."""

from __future__ import annotations

import contextlib
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from howdah.errors import HowdahError, RecordError, explain
from howdah.ingest.run import ingest
from howdah.record.digest import DIGESTS, mismatches
from howdah.record.directory import RunDirectory, read_object
from howdah.record.provenance import analysis_sha256, sha256_text
from howdah.record.raw import read_raw_json
from howdah.record.reading import read_record
from howdah.record.retention import RAW_LEFT_OUT, REMOVED, has_data
from howdah.record.schema import TABLES
from howdah.record.table import TRIPPED, first_difference, read
from howdah.verify.finding import Discrepancy, Report
from howdah.work.again import FileDifference, make_again, measure_differences, verdict_differences
from howdah.work.analysis import evaluate
from howdah.work.stage import read_plan

_SCRATCH = "howdah-verify-"

Progress = Callable[[str, int, int], None]


def verify_run(directory: RunDirectory, *, compute: bool = True) -> Report:
    """Check one run; nothing in its directory is changed. ``compute`` False looks at the digests alone."""
    report = Report(str(directory.path))
    try:
        record = read_record(directory)
    except (OSError, RecordError) as error:
        report.findings.append(Discrepancy("run.json", f"it cannot be read: {error}"))
        return report
    _check_digests(directory, record, report)
    _check_plan(directory, record, report)
    _check_provenance(directory, record, report)
    report.computed = compute
    if not compute:
        return report
    if record["status"] != "finished":
        report.notes.append(f"the run is {record['status']}: it has no results to compute")
    elif not has_data(directory):
        report.computed = False
        report.notes.append("its results cannot be recomputed: the data were removed (keep: first); digests only")
    else:
        _compute(directory, record, report)
    return report


def _check_digests(directory: RunDirectory, record: dict[str, Any], report: Report) -> None:
    if DIGESTS not in record:
        report.gaps.append("no digests: made by an earlier version of howdah, so any file may have been changed since")
        return
    report.checked.append(f"{len(record[DIGESTS])} files against their digests")
    report.findings += [Discrepancy(each.file, str(each)) for each in mismatches(directory, record)]


def _check_plan(directory: RunDirectory, record: dict[str, Any], report: Report) -> None:
    """The plan that is read is the one the run was named by, and the one the guest was given."""
    if not directory.plan.exists():
        return  # its digest says so
    given = directory.share / "plan.json"
    try:
        text = directory.plan.read_text(encoding="utf-8")
        was_given = given.read_text(encoding="utf-8") if given.exists() else None
    except (OSError, UnicodeError) as error:
        report.findings.append(Discrepancy("plan.json", f"it or the guest's copy of it cannot be read: {_why(error)}"))
        return
    if record.get("plan_sha256") != sha256_text(text):
        report.findings.append(Discrepancy("plan.json", "it is not the plan that run.json names (plan_sha256)"))
    if was_given is not None and was_given != text:
        report.findings.append(Discrepancy("share/plan.json", "the guest was given another plan"))


def _why(error: OSError | UnicodeError) -> str:
    return explain(error) if isinstance(error, OSError) else str(error)


def _check_provenance(directory: RunDirectory, record: dict[str, Any], report: Report) -> None:
    """What run.json says the run was made on, against what the guest said; and that its data are there or not."""
    if record.get(REMOVED, False) and directory.raw.is_dir():
        report.findings.append(Discrepancy("run.json", "it says that the data were removed, and raw/ is there"))
    agent = _raw_json(directory.raw / "agent.json")
    said, found = (record.get("kernel") or {}).get("release"), agent.get("kernel_release")
    if said and found and said != found:
        report.findings.append(Discrepancy("run.json", f"kernel {said!r}, the guest said {found!r}", said, found))
    for name, module in (agent.get("modules") or {}).items():
        said = ((record.get("modules") or {}).get(name) or {}).get("srcversion")
        found = (module or {}).get("srcversion")
        if said and found and said != found:
            what = f"module {name} of version {said!r}, the guest loaded {found!r}"
            report.findings.append(Discrepancy("run.json", what, said, found))


def _compute(directory: RunDirectory, record: dict[str, Any], report: Report) -> None:
    """Tables from raw/, and metrics and verdict from the tables as they lie there, each compared with what is said."""
    if record.get("analysis_sha256") != analysis_sha256():
        report.notes.append(
            "it was analysed by another version of howdah: what differs below may be the analysis. 'howdah report' "
            "brings the run up to date"
        )
    try:
        plan = read_plan(directory)
        if record.get(RAW_LEFT_OUT):
            report.computed = False
            report.notes.append("its tables cannot be recomputed: large files of raw/ were left out of the pack")
        else:
            with _scratch(directory, "tables") as scratch:
                ingest(scratch)
                _compare_tables(directory, scratch, report)
        with _scratch(directory) as scratch:
            evaluate(scratch, plan, lambda _stage: contextlib.nullcontext())
            _compare_results(directory, scratch, report)
    except (HowdahError, OSError, *TRIPPED) as error:
        what = re.sub(rf"\S*/{_SCRATCH}[^/]+/{re.escape(directory.name)}/", "", str(error))
        report.findings.append(Discrepancy("raw/", f"the results cannot be computed from it: {what}"))


@contextmanager
def _scratch(directory: RunDirectory, *without: str) -> Iterator[RunDirectory]:
    """A run directory of the same name in which everything but results (and ``without``) is the original's."""
    with tempfile.TemporaryDirectory(prefix=_SCRATCH) as name:
        scratch = RunDirectory(Path(name) / directory.name)
        scratch.path.mkdir()
        made = {directory.metrics.name, directory.verdict.name, *without}
        for entry in directory.path.iterdir():
            if entry.name not in made:
                (scratch.path / entry.name).symlink_to(entry.resolve())
        yield scratch


def _compare_tables(directory: RunDirectory, scratch: RunDirectory, report: Report) -> None:
    report.checked.append("tables against raw/")
    for name in TABLES:
        there = [each.table(name).exists() for each in (directory, scratch)]
        file = f"tables/{name}.parquet"
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
    said, now = (read_object(each.tables / "ingest.json") for each in (directory, scratch))
    if said != now:
        report.findings.append(Discrepancy("tables/ingest.json", "not what raw/ gives"))


def _compare_results(directory: RunDirectory, scratch: RunDirectory, report: Report) -> None:
    report.checked.append("metrics and verdict against the tables")
    said, now = (read_object(each.metrics) for each in (directory, scratch))
    report.findings += [_finding(each) for each in measure_differences(*_rows(said, now))]
    if said.get("cross_checks") != now.get("cross_checks"):
        report.findings.append(Discrepancy("metrics.json", "its cross-checks are not what the tables give"))
    verdicts = [read_object(each.verdict) for each in (directory, scratch)]
    report.findings += [_finding(each) for each in verdict_differences(*verdicts)]


def _rows(said: dict[str, Any], now: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
    for each in (said, now):
        rows = each.get("rows")
        yield rows if isinstance(rows, list) else []


def _finding(difference: FileDifference, when: str = "") -> Discrepancy:
    return Discrepancy(difference.file, difference.what + when, difference.said, difference.found)


def _raw_json(file: Path) -> dict[str, Any]:
    try:
        found = read_raw_json(file)
    except (HowdahError, OSError):
        return {}
    return found if isinstance(found, dict) else {}


def rerun_run(
    directory: RunDirectory, report: Report, build: Progress, progress: Progress, *, trust: bool = False
) -> None:
    """Make the run again from its plan, in a place that does not stay, and add what came out otherwise."""
    with tempfile.TemporaryDirectory(prefix="howdah-verify-") as name:
        try:
            final = Path(name) / directory.name
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
