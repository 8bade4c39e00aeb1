# SPDX-License-Identifier: Apache-2.0
"""claims.json: every claim of an experiment with its verdict, from the experiment's directory alone."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from howdah.claim.expectation import bounds, judge_point, judge_trend
from howdah.claim.finding import DIFFERS, FAIL, INVALID, PASS, UNSUPPORTED, Finding, number_text, summary
from howdah.claim.points import axis_order, pooled
from howdah.claim.sample import Field, Made, Sample, SelectionError, sample
from howdah.claim.words import expected_text, than_text
from howdah.errors import HowdahError
from howdah.metric import RATIO, Metric, known_metrics
from howdah.profile.claim import ClaimSection, SelectorSection
from howdah.profile.claim_check import completed
from howdah.profile.control import CONTROL_AXIS, ControlSection, axis_key
from howdah.profile.experiment import read_sections
from howdah.profile.load import load
from howdah.profile.source import Document, read_document
from howdah.record.claims import CLAIMS_FORMAT, CLAIMS_NAME
from howdah.record.directory import read_json, write_json
from howdah.record.provenance import sha256_text
from howdah.record.reading import read_index
from howdah.record.result import load_experiment

_LEFT_OUT_QUICK = "left out of the quick atlas"
_LEFT_OUT = "its points were left out of the sweep"
_WORST_FIRST = (FAIL, INVALID, UNSUPPORTED, PASS)


def judge_claims(directory: Path, profile: Path | None = None) -> dict[str, Any] | None:
    """Judge every claim of an experiment and write claims.json; its content, or None (and no file) without claims.

    The claims are those of ``profile``, by default of the profile with which the experiment was run. Raises
    HowdahError where the directory is no experiment, or the profile is wrong. A file that says the same already is left
    as it is, so that a directory that cannot be written can still be judged.
    """
    result = judged(directory, profile)
    target = directory / CLAIMS_NAME
    if result is None:
        target.unlink(missing_ok=True)
    elif not target.exists() or _json(target) != _plain(result):
        write_json(target, result)
    return result


def judged(directory: Path, profile: Path | None = None) -> dict[str, Any] | None:
    """What claims.json has to say, or None without claims; nothing is written."""
    field, quick, claims = _field(directory)
    if profile is not None:
        loaded = load(profile)
        field, claims = replace(field, controls=loaded.controls), loaded.claims
    if not claims:
        return None
    source = None if profile is None else {"file": str(profile.resolve()), "sha256": sha256_text(loaded.text)}
    found = [_judged(claim, field, quick) for claim in claims]
    return {"format": CLAIMS_FORMAT, "quick": quick, "profile": source, "claims": found}


def judged_with(directory: Path) -> Path | None:
    """The profile whose claims claims.json has; None for that of the experiment, or where it has changed since."""
    found = _json(directory / CLAIMS_NAME)
    source = found.get("profile") if isinstance(found, dict) else None
    if not isinstance(source, dict):
        return None
    file = Path(str(source.get("file")))
    try:
        return file if sha256_text(load(file).text) == source.get("sha256") else None
    except (HowdahError, OSError):
        return None


def _json(file: Path) -> Any:
    try:
        return read_json(file)
    except (OSError, ValueError):
        return None


def _plain(value: Any) -> Any:
    """A value as JSON gives it back."""
    return json.loads(json.dumps(value))


def _field(directory: Path) -> tuple[Field, bool, list[ClaimSection]]:
    """The runs of an experiment, whether they are those of --quick, and the claims that were made of them."""
    index_file = directory / "experiment.json"
    if not index_file.exists():
        raise HowdahError("this is not an experiment: it has no experiment.json", where=str(directory))
    index = read_index(index_file)
    file = directory / "profile.yaml"
    document = read_document(file) if file.exists() else Document({})
    sections = read_sections(document)
    runs = {run.name: run for run in load_experiment(directory).runs}
    cells = [
        Made(
            cell["run"],
            cell.get("axes", {}),
            cell.get("algorithm", ""),
            cell.get("repetition", 0),
            runs.get(cell["run"]),
        )
        for cell in index["cells"]
    ]
    axes = {str(name): list(values) for name, values in index.get("axes", {}).items()}
    return Field(cells, document.data, sections.controls, axes), bool(index.get("quick")), sections.claims


def _judged(claim: ClaimSection, field: Field, quick: bool) -> dict[str, Any]:
    """One claim as claims.json has it."""
    row: dict[str, Any] = {
        "id": claim.id,
        "entries": claim.entry,
        "says": claim.says,
        "source": claim.source,
        "verdict": UNSUPPORTED,
        "why": claim.unsupported or "",
        "expected": {"text": "", "low": None, "high": None, "unit": ""},
        "measured": None,
        "than": None,
        "comparison": None,
        "control": None,
        "because": claim.because or "",
        "runs": [],
    }
    if claim.unsupported is not None:
        return row
    metric = _metric(claim.value.metric) if claim.value else RATIO
    row["expected"] = _expected(claim, metric)
    ordinary = Judging(claim, metric, field, quick, None).judge()
    row.update(ordinary)
    control = field.controls.get(claim.control or "")
    if ordinary["verdict"] == FAIL and control is not None and claim.control is not None:
        row["control"] = _controlled(claim, metric, field, quick, control, ordinary["measured"])
        if row["control"]["verdict"] == PASS:
            row["verdict"] = DIFFERS
    return row


def _controlled(
    claim: ClaimSection, metric: Metric, field: Field, quick: bool, control: ControlSection, failed: dict[str, Any]
) -> dict[str, Any]:
    """The same claim on the runs of its control, which must have the points at which the claim failed."""
    found = Judging(claim, metric, field, quick, claim.control).judge()
    verdict, why = found["verdict"], found["why"]
    there = {_point_key(point["at"], control) for point in (found["measured"] or {}).get("points", [])}
    needed = [point["at"] for point in failed["points"] if claim.hold != "all" or point["verdict"] in (FAIL, INVALID)]
    absent = [at for at in needed if _point_key(at, control) not in there]
    if verdict == PASS and absent and claim.hold != "any":
        shown = ", ".join(f"{axis} = {value}" for axis, value in absent[0].items())
        verdict, why = UNSUPPORTED, f"the control was not run at {shown}, where the claim fails"
    return {
        "name": claim.control,
        "what": control.what,
        "because": claim.because,
        "verdict": verdict,
        "why": why,
        "measured": found["measured"],
        "than": found["than"],
        "runs": found["runs"],
    }


def _point_key(at: dict[str, Any], control: ControlSection) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((axis, axis_key(value)) for axis, value in at.items() if axis not in control.set))


def _metric(name: str) -> Metric:
    """The metric of that name; one that was known when the runs were made and is not now has no unit to show."""
    return known_metrics().get(name) or Metric(name)


def _expected(claim: ClaimSection, metric: Metric) -> dict[str, Any]:
    expect = claim.expect
    assert expect is not None
    text = expected_text(claim)
    low = high = None
    unit = metric.dimension
    if expect.ratio is not None:
        (low, high), unit = bounds(expect.ratio, RATIO), "ratio"
    elif expect.difference is not None:
        low, high = bounds(expect.difference, metric)
    elif expect.given:
        low, high = bounds(expect, metric)
    return {"text": text, "low": low, "high": high, "unit": unit}


class Judging:
    """One claim over the ordinary runs, or over those of a control."""

    def __init__(self, claim: ClaimSection, metric: Metric, field: Field, quick: bool, control: str | None) -> None:
        assert claim.expect is not None
        self.claim, self.metric, self.field, self.quick, self.control = claim, metric, field, quick, control
        self.expect = claim.expect
        self.value, self.than = completed(claim)
        self.used: dict[str, None] = {}

    def judge(self) -> dict[str, Any]:
        """Verdict, why, measured, than, comparison and the runs used."""
        points, left_out = self._points()
        try:
            findings = [each for each in map(self._finding, points) if each is not None]
        except SelectionError as error:
            return self._result(INVALID, str(error), [], None)
        if not findings:
            return self._result(UNSUPPORTED, _LEFT_OUT_QUICK if self.quick else _LEFT_OUT, [], None)
        verdict, why, chosen = self._held(findings)
        missing = left_out + len(points) - len(findings)
        notes = [why, *dict.fromkeys(each.note for each in findings if each.note and each.note != why)]
        if missing:
            of = "left out of the quick atlas" if self.quick else "left out of the sweep"
            notes.append(f"{missing} of {missing + len(findings)} points {of}")
        return self._result(verdict, "; ".join(filter(None, notes)), findings, chosen)

    def _points(self) -> tuple[list[dict[str, Any]], int]:
        """Every combination of the values of ``each`` that was run, and how many of the profile were not."""
        values = []
        for axis in self.claim.each:
            here = self.field.values(axis, self.control)
            # A control that replaces the axis has one point for all of its values.
            values.append([{axis: value} for value in here] or [{}])
        points = [
            dict(itertools.chain.from_iterable(each.items() for each in some)) for some in itertools.product(*values)
        ]
        if self.control is not None:
            return points, 0
        full = 1
        for axis in self.claim.each:
            full *= len(self.field.axes.get(axis, ())) or 1
        return points, max(0, full - len(points))

    def _at(self, selector: SelectorSection, point: dict[str, Any], **more: Any) -> dict[str, Any]:
        control = {CONTROL_AXIS: self.control} if self.control is not None else {}
        return {**point, **more, **selector.at, **control}

    def _sample(self, selector: SelectorSection, at: dict[str, Any]) -> Sample | None:
        """The sample at a point; None where the experiment has no run of it."""
        runs = self.field.at(at)
        if not runs:
            return None
        self.used.update(dict.fromkeys(made.name for made in runs))
        return sample(runs, selector)

    def _finding(self, point: dict[str, Any]) -> Finding | None:
        if self.expect.over is not None:
            return self._trend(point)
        value = self._sample(self.value, self._at(self.value, point))
        than = self._sample(self.than, self._at(self.than, point)) if self.than else None
        if value is None or (self.than is not None and than is None):
            return None
        return judge_point(self.expect, self.metric, point, value, than)

    def _trend(self, point: dict[str, Any]) -> Finding | None:
        axis = str(self.expect.over)
        along = []
        for value in self.field.values(axis, self.control):
            found = self._sample(self.value, self._at(self.value, point, **{axis: value}))
            if found is not None:
                along.append((value, found))
        if len(along) < 2:
            return None
        trend = judge_trend(self.expect, self.metric, point, along, axis_order([value for value, _ in along]))
        absent = len(self.field.axes.get(axis, ())) - len(along) if self.control is None else 0
        if absent > 0:
            left = f"without {absent} of {absent + len(along)} values of {axis}"
            trend = replace(trend, note="; ".join(filter(None, (trend.note, left))))
        return trend

    def _held(self, findings: list[Finding]) -> tuple[str, str, Finding]:
        """The verdict over the points, why, and the point that decides it."""
        hold = self.claim.hold
        if hold in ("max", "min", "mean"):
            chosen = self._reduced(findings)
            at = _at_text(chosen.at) if chosen.why and hold != "mean" and len(findings) > 1 else ""
            return chosen.verdict, f"{chosen.why}{at}", chosen
        verdicts = [each.verdict for each in findings]
        if hold == "any":
            verdict = PASS if PASS in verdicts else (INVALID if INVALID in verdicts else FAIL)
        else:
            verdict = next(each for each in _WORST_FIRST if each in verdicts)
        chosen = next(each for each in findings if each.verdict == verdict)
        why = chosen.why
        if len(findings) > 1:
            word = "holds" if verdict == PASS else "fails" if verdict == FAIL else "cannot be judged"
            count = verdicts.count(verdict)
            why = f"{word} at {count} of {len(findings)} points"
            if verdict == PASS and hold == "all":
                why = ""
            else:
                why += f":{f' {chosen.why}' if chosen.why else ''}{_at_text(chosen.at)}"
        return verdict, why, chosen

    def _reduced(self, findings: list[Finding]) -> Finding:
        unusable = [each for each in findings if each.extent is None]
        if unusable:
            return next((each for each in unusable if each.verdict == INVALID), unusable[0])
        if self.claim.hold == "mean":
            value = pooled([each.value for each in findings])
            than = pooled([each.than for each in findings if each.than is not None]) if self.than else None
            return judge_point(self.expect, self.metric, {}, value, than)
        pick: Callable[..., Finding] = max if self.claim.hold == "max" else min
        return pick(findings, key=lambda each: each.extent)

    def _result(self, verdict: str, why: str, findings: list[Finding], chosen: Finding | None) -> dict[str, Any]:
        measured: dict[str, Any] | None = None
        than: dict[str, Any] | None = None
        if chosen is not None:
            measured = self._measured(findings, chosen)
            why = "" if why == measured["text"] else why
            if chosen.than is not None and self.than is not None:
                than = summary(chosen.than, _metric(self.than.metric))
                than["text"] = f"{than['text']} ({than_text(self.claim)})"
                if len(findings) > 1 and self.claim.hold == "all" and verdict == PASS:
                    than["text"] = than_text(self.claim)  # the points have the numbers
        return {
            "verdict": verdict,
            "why": why,
            "measured": measured,
            "than": than,
            "comparison": chosen.comparison if chosen else None,
            "runs": list(self.used),
        }

    def _measured(self, findings: list[Finding], chosen: Finding) -> dict[str, Any]:
        points = []
        for each in findings:
            other = summary(each.than, _metric(self.than.metric)) if each.than and self.than else None
            points.append(
                {
                    "at": each.at,
                    **self._shown(each),
                    "verdict": each.verdict,
                    "why": each.why,
                    "than": other,
                    "comparison": each.comparison,
                }
            )
        shown = self._shown(chosen)
        text = shown["text"]
        means = [point["mean"] for point in points if point["mean"] is not None]
        if len(findings) > 1 and self.claim.hold == "all" and chosen.verdict == PASS and len(means) == len(points):
            text = f"{number_text(min(means), self.metric)} to {number_text(max(means), self.metric)}"
            text += f" at {len(points)} points"
        elif len(findings) > 1 and self.claim.hold != "mean":
            text += _at_text(chosen.at)
        return {**shown, "text": text, "points": points}

    def _shown(self, finding: Finding) -> dict[str, Any]:
        shown = summary(finding.value, self.metric)
        if finding.trend:
            shown = {**shown, "text": finding.why, "trend": finding.trend}
        return shown


def _at_text(at: dict[str, Any]) -> str:
    return f" at {', '.join(f'{axis} = {value}' for axis, value in at.items())}" if at else ""
