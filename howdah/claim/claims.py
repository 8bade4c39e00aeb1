# SPDX-License-Identifier: Apache-2.0
"""claims.json: every claim of an experiment with its verdict, computed from the experiment's directory alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from howdah.claim.expectation import bounds
from howdah.claim.finding import DIFFERS, FAIL, IMPLEMENTED, INVALID, PASS, UNSUPPORTED, At, metric_named
from howdah.claim.grid import judge_grid
from howdah.claim.judging import Judging, expected_text
from howdah.claim.sample import ClaimRun, ClaimRuns
from howdah.errors import HowdahError
from howdah.metric import RATIO, Metric
from howdah.profile.claim import ClaimSection
from howdah.profile.control import ControlSection, axis_key
from howdah.profile.experiment import ExperimentSections, read_sections
from howdah.profile.load import load
from howdah.profile.source import Document, read_document
from howdah.record.claims import (
    CLAIMS_FORMAT,
    CLAIMS_NAME,
    ClaimRow,
    ClaimsFile,
    ControlRow,
    ExpectedRow,
    MeasuredRow,
    read_claims_file,
)
from howdah.record.directory import read_json, write_json
from howdah.record.index import ExperimentIndex, ProfileSource, read_index
from howdah.record.provenance import sha256_text
from howdah.record.result import brief, load_experiment


def final_verdict(claim: ClaimSection, verdict: str, why: str) -> tuple[str, str]:
    """The final verdict and reason. A failed claim that depends on a contradiction in its source is *unsupported*,
    because no measurement can decide it."""
    if claim.contradiction is None or verdict != FAIL:
        return verdict, why
    return UNSUPPORTED, "; ".join(filter(None, (f"its source contradicts itself: {claim.contradiction}", why)))


def judge_claims(directory: Path, profile: Path | None = None) -> ClaimsFile | None:
    """Judge every claim of an experiment and write claims.json. Return its content, or None (and no file) without
    claims.

    The claims come from ``profile``, by default the profile that the experiment was run with. Raises HowdahError if the
    directory is not an experiment, or the profile is invalid. A file with the same content is not rewritten, so that a
    read-only directory can be judged.
    """
    result = judged(directory, profile)
    target = directory / CLAIMS_NAME
    if result is None:
        target.unlink(missing_ok=True)
    elif not target.exists() or _json(target) != result.plain():
        write_json(target, result.plain())
    return result


def judged(directory: Path, profile: Path | None = None) -> ClaimsFile | None:
    """The content of claims.json, or None without claims; writes nothing."""
    if profile is None and not _read_experiment(directory)[2].claims:
        return None  # without reading any run
    runs, quick, claims = read_claim_runs(directory)
    if profile is not None:
        loaded = load(profile)
        runs, claims = replace(runs, controls=loaded.controls, unknowns=loaded.unknown), loaded.claims
    if not claims:
        return None
    source = None if profile is None else ProfileSource(file=str(profile.resolve()), sha256=sha256_text(loaded.text))
    found = [_judge_claim(claim, runs, quick) for claim in claims]
    together = judge_grid(claims, found, runs, quick)
    for claim, row in zip(claims, found, strict=True):
        row.verdict = as_declared(claim, row.verdict)
    return ClaimsFile(format=CLAIMS_FORMAT, quick=quick, profile=source, unknown=together, claims=found)


def as_declared(claim: ClaimSection, verdict: str) -> str:
    """The verdict for the claim's ``kind``: a definition that holds reproduces nothing, so it is *implemented*."""
    if claim.kind is None or verdict not in (PASS, IMPLEMENTED):
        return PASS if verdict == IMPLEMENTED else verdict
    return IMPLEMENTED


def claims_profile(directory: Path) -> Path | None:
    """The profile whose claims are in claims.json; None if it is the experiment's own, or has changed since."""
    found = read_claims_file(directory)
    if found is None or found.profile is None:
        return None
    file = Path(found.profile.file)
    try:
        return file if sha256_text(load(file).text) == found.profile.sha256 else None
    except (HowdahError, OSError):
        return None


def _json(file: Path) -> Any:
    try:
        return read_json(file)
    except (OSError, ValueError):
        return None


def _read_experiment(directory: Path) -> tuple[ExperimentIndex, Document, ExperimentSections]:
    index_file = directory / "experiment.json"
    if not index_file.exists():
        raise HowdahError("this is not an experiment: it has no experiment.json", where=str(directory))
    file = directory / "profile.yaml"
    document = read_document(file) if file.exists() else Document({})
    return read_index(index_file), document, read_sections(document)


def read_claim_runs(directory: Path) -> tuple[ClaimRuns, bool, list[ClaimSection]]:
    """The runs of an experiment, whether they are those of --quick, and the profile's claims."""
    index, document, sections = _read_experiment(directory)
    made = {run.name: run for run in load_experiment(directory, kept=brief).runs}
    cells = [ClaimRun(cell.run, cell.axes, cell.algorithm, cell.repetition, made.get(cell.run)) for cell in index.cells]
    axes = {name: [str(value) for value in values] for name, values in index.axes.items()}
    runs = ClaimRuns(cells, document, sections.controls, axes, sections.unknown)
    return runs, index.quick, sections.claims


def row_of(claim: ClaimSection, verdict: str, why: str, expected: str = "") -> ClaimRow:
    """A claim's row without any measurement."""
    return ClaimRow(
        id=claim.id,
        entries=claim.entry,
        says=claim.says,
        source=claim.source,
        verdict=verdict,
        why=why,
        expected=ExpectedRow(text=expected, low=None, high=None, unit=""),
        measured=None,
        than=None,
        comparison=None,
        control=None,
        unknown=None,
        because=claim.because or "",
        contradiction=claim.contradiction or "",
        note=claim.note or "",
        chosen_after=claim.chosen_after or "",
        runs=[],
    )


def _judge_claim(claim: ClaimSection, runs: ClaimRuns, quick: bool) -> ClaimRow:
    row = row_of(claim, UNSUPPORTED, claim.unsupported or "")
    if claim.unsupported is not None:
        return row
    assert claim.value is not None
    row.expected = _expected(claim, metric_named(claim.value.metric))
    found = Judging(claim, runs, quick).judge()
    row.verdict, row.why, row.runs = found.verdict, found.why, found.runs
    row.measured, row.than, row.comparison = found.measured, found.than, found.comparison
    control = runs.controls.get(claim.control or "")
    if found.verdict == FAIL and control is not None and claim.control is not None:
        assert found.measured is not None
        row.control = _judge_on_control(claim, runs, quick, control, found.measured)
        if row.control.verdict == PASS:
            row.verdict = DIFFERS
    row.verdict, row.why = final_verdict(claim, row.verdict, row.why)
    return row


def _judge_on_control(
    claim: ClaimSection, runs: ClaimRuns, quick: bool, control: ControlSection, failed: MeasuredRow
) -> ControlRow:
    """Judge the claim on the runs of its control, which must include the points at which the claim failed."""
    found = Judging(claim, runs, quick, claim.control).judge()
    verdict, why = found.verdict, found.why
    there = {_point_key(point.at, control) for point in (found.measured.points if found.measured else ())}
    needed = [point.at for point in failed.points if claim.hold != "all" or point.verdict in (FAIL, INVALID)]
    absent = [at for at in needed if _point_key(at, control) not in there]
    if verdict == PASS and absent and claim.hold != "any":
        shown = ", ".join(f"{axis} = {value}" for axis, value in absent[0].items())
        verdict, why = UNSUPPORTED, f"the control was not run at {shown}, where the claim fails"
    return ControlRow(
        name=claim.control,
        what=control.what,
        because=claim.because,
        verdict=verdict,
        why=why,
        measured=found.measured,
        than=found.than,
        runs=found.runs,
    )


def _point_key(at: At, control: ControlSection) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((axis, axis_key(value)) for axis, value in at.items() if axis not in control.set))


def _expected(claim: ClaimSection, metric: Metric) -> ExpectedRow:
    expect = claim.expect
    assert expect is not None
    text = expected_text(claim)
    low = high = None
    unit = metric.dimension
    if expect.ratio is not None:
        (low, high), unit = bounds(expect.ratio, RATIO), "ratio"
    elif expect.rank_correlation is not None:
        (low, high), unit = bounds(expect.rank_correlation, RATIO), "ratio"
    elif expect.difference is not None:
        low, high = bounds(expect.difference, metric)
    elif expect.given:
        low, high = bounds(expect, metric)
    return ExpectedRow(text=text, low=low, high=high, unit=unit)
