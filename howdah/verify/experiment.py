# SPDX-License-Identifier: Apache-2.0
"""Verify the files beside an experiment's runs: their list, the profile, the claims."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from howdah.claim.claims import claims_profile, judged
from howdah.errors import HowdahError
from howdah.foreign import kind_of, read_foreign
from howdah.record.claims import CLAIMS_NAME
from howdah.record.digest import MANIFEST, MINISIGN_SIGNATURE, SSH_SIGNATURE
from howdah.record.directory import PARTIAL, RunDirectory, read_json
from howdah.record.index import DRAWN_NAME, PENDING, ExperimentIndex, IndexedRun, read_index
from howdah.record.provenance import sha256_text
from howdah.record.run import read_record, record_or_empty
from howdah.record.verdict import read_verdict
from howdah.verify.compiled import PROFILE, check_plans
from howdah.verify.finding import Discrepancy, Report, repeated_names

_DERIVED = ("report.html", "twin.html", "prometheus")
_BESIDE = ("experiment.json", PROFILE, CLAIMS_NAME, MANIFEST, SSH_SIGNATURE, MINISIGN_SIGNATURE)
_TIMED = "raw/agent.json"
_MOST_NAMED = 5


def runs_below(path: Path) -> list[RunDirectory]:
    """Every complete run in the directory of an experiment, listed or not; for the directory of a run, that run."""
    if (path / "plan.json").exists() or (path / "run.json").exists():
        return [RunDirectory(path)]
    files = sorted(path.glob("*/run.json"))
    return [RunDirectory(file.parent) for file in files if not file.parent.name.startswith(PARTIAL)]


def verify_experiment(path: Path) -> Report:
    """Recompute the files beside the runs, which derive from the profile and the runs, and compare them."""
    report = Report(str(path))
    try:
        index = read_index(path / "experiment.json")
        cells = index.cells
        if not cells:
            report.gaps.append("it has no runs")
        _check_index(path, cells, report)
        _check_profile(path, index, report)
        for name in ("experiment.json", CLAIMS_NAME):
            findings = [Discrepancy(name, f"it says {each!r} twice") for each in repeated_names(path / name)]
            report.findings += findings
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        said = error.what if isinstance(error, HowdahError) else repr(error)
        report.findings.append(Discrepancy("experiment.json", f"it cannot be read: {said}"))
        return report
    _check_claims(path, report)
    _check_copies(path, cells, report)
    _note_other_files(path, report)
    there = [name for name in _DERIVED if (path / name).exists()]
    if there:
        is_, them = ("is", "it") if len(there) == 1 else ("are", "them")
        names = " and ".join(there)
        report.notes.append(f"{names} {is_} not checked: 'howdah report' makes {them} again from the runs")
    return report


def _check_index(path: Path, cells: list[IndexedRun], report: Report) -> None:
    report.checked.append("experiment.json against the runs")
    for cell in cells:
        run = RunDirectory(path / cell.run)
        if not run.provenance.exists():
            if cell.status != PENDING:
                report.findings.append(Discrepancy("experiment.json", f"{cell.run} is {cell.status}, and is missing"))
            continue
        for name, said, found in _recorded_and_found(cell, run):
            if said != found:
                what = f"{name} of {cell.run} is {said!r}, the run says {found!r}"
                report.findings.append(Discrepancy("experiment.json", what, said, found))
    listed = {cell.run for cell in cells}
    unlisted = [run.name for run in runs_below(path) if run.name not in listed]
    if unlisted:
        report.notes.append(f"runs of other plans are here and are not listed: {', '.join(unlisted[:5])}")


def _recorded_and_found(cell: IndexedRun, run: RunDirectory) -> Iterator[tuple[str, Any, Any]]:
    yield "status", cell.status, read_record(run).status
    yield "verdict", cell.verdict, read_verdict(run).verdict if run.verdict.exists() else None
    if run.plan.exists():
        plan = read_json(run.plan)
        for name in ("axes", "algorithm", "repetition"):
            yield name, getattr(cell, name), plan[name]


def _check_profile(path: Path, index: ExperimentIndex, report: Report) -> None:
    profile = path / PROFILE
    if not profile.exists():
        report.findings.append(Discrepancy(PROFILE, "it is missing: nothing says what the plans were to be"))
        return
    report.checked.append("profile.yaml against experiment.json")
    if sha256_text(read_foreign(profile).decode()) != index.profile.sha256:
        report.findings.append(Discrepancy(profile.name, "it is not the profile that experiment.json names"))
    check_plans(path, index, report)


def _check_copies(path: Path, cells: list[IndexedRun], report: Report) -> None:
    """Report copied runs: agent.json has wall-clock times, so two runs with equal files are copies."""
    first: dict[str, str] = {}
    for cell in cells:
        run = RunDirectory(path / cell.run)
        digest = (record_or_empty(run).digests or {}).get(_TIMED)
        if digest is not None and first.setdefault(digest, run.name) != run.name:
            what = f"{_TIMED} is that of {first[digest]}: one of these runs is a copy"
            report.findings.append(Discrepancy(f"{run.name}/{_TIMED}", what))


def _note_other_files(path: Path, report: Report) -> None:
    known = {*_BESIDE, *_DERIVED, DRAWN_NAME}
    others = [entry.name for entry in sorted(path.iterdir()) if entry.is_file() or kind_of(entry) == "a link"]
    others = [name for name in others if name not in known and not name.startswith(".")]
    if (path / DRAWN_NAME).is_file():
        report.notes.append(f"{DRAWN_NAME} is not checked: it has the commands that drew figures and made tables")
    if others:
        shown = ", ".join(others[:_MOST_NAMED]) + (" …" if len(others) > _MOST_NAMED else "")
        report.notes.append(f"not howdah's, and not checked: {shown}")


def _check_claims(path: Path, report: Report) -> None:
    file = path / CLAIMS_NAME
    if not file.exists():
        return
    try:
        said = read_json(file)
        if said.get("profile") is not None and claims_profile(path) is None:
            report.gaps.append(f"{CLAIMS_NAME} has claims of {said['profile'].get('file')}, which is no longer there")
            return
        found = again.plain() if (again := judged(path, claims_profile(path))) else None
    except (HowdahError, OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        report.findings.append(Discrepancy(CLAIMS_NAME, f"the claims cannot be judged again: {error}"))
        return
    report.checked.append(f"{CLAIMS_NAME} against the runs")
    claims, now = ({claim["id"]: claim for claim in (each or {}).get("claims", [])} for each in (said, found))
    for name in dict.fromkeys([*claims, *now]):
        one, other = claims.get(name), now.get(name)
        if one == other:
            continue
        verdicts = [(each or {}).get("verdict", "not there") for each in (one, other)]
        what = f"{name} is {verdicts[0]}, judged again it is {verdicts[1]}"
        if verdicts[0] == verdicts[1]:
            what = f"{name}: what was measured is not what the runs give"
        report.findings.append(Discrepancy(CLAIMS_NAME, what, *verdicts))
