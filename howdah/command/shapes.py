# SPDX-License-Identifier: Apache-2.0
"""Shapes of what commands print with ``--json``; docs/json.schema.json is made from them.

``python -m howdah.command.shapes [--check] [docs]`` writes it, or says whether it is current. An object may
have more fields than its shape: a reader passes over what it does not know.
"""

from __future__ import annotations

import sys
from typing import Any, Literal

from pydantic import Field, TypeAdapter

from howdah.claim.score import Score
from howdah.command.answer import SHAPE, VERSIONS
from howdah.command.build_shapes import Build, BundleSources, BundleWritten
from howdah.command.list_shapes import (
    ListAlgorithms,
    ListKernels,
    ListMetrics,
    ListProfiles,
    ListReceivers,
    ListRuns,
    ListStacks,
)
from howdah.command.nightly_shapes import Nightly, NightlyAccept, NightlyList, NightlyPower
from howdah.compact import compact_json
from howdah.counterexample.session import SearchFile
from howdah.explain.words import Explain
from howdah.extension import extensions
from howdah.generated import docs_of, keep_current
from howdah.hooks import CommandEntry
from howdah.plan.plan import Plan
from howdah.record.claims import ClaimRow, OpenRow
from howdah.record.index import ProfileSource
from howdah.record.model import FilePart, Scalar
from howdah.report.tidy import ResultData
from howdah.validate.comparison import Validation

Verdict = Literal["pass", "fail", "differs", "unsupported", "invalid"]


class Compare(ResultData):
    report: str = Field(description="path of the page")


class ReportShape(Compare):
    experiment: str
    claims: list[ClaimRow] = Field(description="as in claims.json (docs/data-format.md)")


class CellShape(FilePart):
    run: str
    algorithm: str
    repetition: int
    axes: dict[str, Scalar]
    status: str
    verdict: str | None


class TwinRunShape(FilePart):
    """One run of a twin over the recorded flow."""

    run: str
    distance: float | None = Field(description="the largest of 'distances'; null where the recording has no course")
    distances: dict[str, float] = Field(description="of in flight, acknowledged, round trip: shares of the recorded")
    not_explained: list[str] = Field(description="what the run does otherwise, in sentences")


class TwinShape(FilePart):
    page: str | None
    runs: list[TwinRunShape] = Field(description="the nearest first")


class RunShape(FilePart):
    """experiment.json, with the claims."""

    experiment: str
    report: str | None
    found: list[str] = Field(description="what was found, in sentences, as the page begins with")
    twin: TwinShape | None = Field(description="of a twin (docs/explain.md): its runs over the recording")
    name: str
    cells: list[CellShape]
    claims: list[ClaimRow]
    unknown: OpenRow | None = Field(description="as in claims.json (docs/data-format.md)")


class PlanOf(FilePart):
    runs: int = Field(description="of the profile; 'plans' has the first one, or all with --all")
    plans: list[dict[str, Any]] = Field(description="each as in plan.json")
    cautions: list[str] = Field(description="what the runs will not show, or show of something else")


class ClaimsShape(FilePart):
    """claims.json."""

    quick: bool
    profile: ProfileSource | None
    unknown: OpenRow | None = Field(description="what the source leaves open (docs/data-format.md)")
    claims: list[ClaimRow]


class FindingShape(FilePart):
    file: str
    what: str
    said: Any
    found: Any


class Search(SearchFile):
    """A search (docs/search.md)."""

    directory: str
    page: str
    corpus: str | None = Field(description="where --corpus keeps the profile")


class Verified(FilePart):
    path: str
    state: Literal["verified", "digests only", "differs", "unchecked"]
    checked: list[str]
    findings: list[FindingShape]
    gaps: list[str]
    notes: list[str]
    claimed: list[str]
    computed: bool


class Verify(FilePart):
    verified: bool
    reports: list[Verified]


class DifferenceShape(FilePart):
    file: str
    what: str
    said: Any
    found: Any


class Rerun(FilePart):
    rerun: str
    verdict: str
    equal: bool
    difference: str | None
    differences: list[DifferenceShape]
    changed_files: list[str]
    changed: dict[str, list[Any]]


class Sign(FilePart):
    signatures: list[str]


class PassedOver(FilePart):
    what: str
    where: str | None


class Export(FilePart):
    format: str
    written: list[str]
    passed_over: list[PassedOver]


class Pack(FilePart):
    file: str
    bytes: int
    sha256: str
    runs: list[str]
    files: int
    content_bytes: int
    kind: Literal["everything", "tables", "results"]
    raw: bool = Field(description="whether raw/ is in it whole")
    rewritten: list[str] = Field(description="files in which paths of this machine were replaced")
    left_out: list[str]


class Unpack(FilePart):
    directory: str
    experiments: list[str]
    files: int
    bytes: int


class New(FilePart):
    profile: str
    name: str
    runs: int
    core_s: float


class Figure(FilePart):
    written: list[str]
    beside: list[str] = Field(description="captions, and with --data what is drawn as CSV")
    passed_over: dict[str, str]


class FigureToDraw(FilePart):
    figure: str
    shows: str
    problem: str | None


class FigureList(FilePart):
    figures: list[FigureToDraw]


class ScoreShape(FilePart):
    thresholds: str
    scores: list[Score]


class Checked(FilePart):
    engine: str
    what: str
    status: Literal["ok", "missing", "note"]
    found: str
    remedy: str | None


class Doctor(FilePart):
    checks: list[Checked]


class Bisect(FilePart):
    first_bad: str | None
    candidates: list[str]
    steps: list[dict[str, Any]]
    log: str


class Validate(Validation):
    """The table of the validation (docs/validate.md)."""

    validation: str


class Machines(FilePart):
    """Of 'howdah machines', by its action: what there is of it is in docs/json.md."""


class Error(FilePart):
    class _Error(FilePart):
        what: str
        where: str | None
        hint: str | None

    error: _Error


def _added() -> dict[str, tuple[int, type[FilePart]]]:
    """Of the commands that packages of howdah's own add."""
    found: dict[str, tuple[int, type[FilePart]]] = {}
    for each in extensions("commands").values():
        if each.is_own:
            entry: CommandEntry = each.load()
            found |= entry.answers()
    return found


_ADDED = _added()
ALL_VERSIONS = {**VERSIONS, **{name: version for name, (version, _shape) in _ADDED.items()}}
SHAPES: dict[str, type[FilePart]] = {
    **{name: shape for name, (_version, shape) in _ADDED.items()},
    "bisect": Bisect,
    "search": Search,
    "build": Build,
    "bundle": BundleWritten,
    "bundle-sources": BundleSources,
    "claims": ClaimsShape,
    "compare": Compare,
    "doctor": Doctor,
    "error": Error,
    "explain": Explain,
    "export": Export,
    "figure": Figure,
    "figure-list": FigureList,
    "machines": Machines,
    "list-algorithms": ListAlgorithms,
    "list-kernels": ListKernels,
    "list-metrics": ListMetrics,
    "list-profiles": ListProfiles,
    "list-receivers": ListReceivers,
    "list-runs": ListRuns,
    "list-stacks": ListStacks,
    "nightly": Nightly,
    "nightly-accept": NightlyAccept,
    "nightly-list": NightlyList,
    "nightly-power": NightlyPower,
    "new": New,
    "pack": Pack,
    "plan": PlanOf,
    "report": ReportShape,
    "rerun": Rerun,
    "run": RunShape,
    "score": ScoreShape,
    "sign": Sign,
    "unpack": Unpack,
    "validate": Validate,
    "verify": Verify,
}


def schema(name: str) -> dict[str, Any]:
    """JSON Schema of one shape, its name and version included."""
    found: dict[str, Any] = SHAPES[name].model_json_schema()
    found["properties"] = {SHAPE: {"const": f"{name}/{ALL_VERSIONS[name]}"}, **found.get("properties", {})}
    found["required"] = [SHAPE, *found.get("required", [])]
    if name == "plan":
        plan = TypeAdapter(Plan).json_schema(ref_template="#/$defs/{model}")
        found.setdefault("$defs", {}).update(plan.pop("$defs", {}) | {"Plan": plan})
        found["properties"]["plans"]["items"] = {"$ref": "#/$defs/Plan"}
    return found


def document() -> dict[str, Any]:
    """All shapes as one schema: ``shape`` says which of them an object has."""
    definitions: dict[str, Any] = {}
    for name in SHAPES:
        one = schema(name)
        text = f"{name}/{ALL_VERSIONS[name]}"
        definitions[text] = {**one, "$id": f"urn:howdah:json:{text}", "title": text}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What howdah prints with --json",
        "oneOf": [{"$ref": f"urn:howdah:json:{name}"} for name in definitions],
        "$defs": definitions,
    }


SCHEMA_NAME = "json.schema.json"


def main(arguments: list[str]) -> int:
    return keep_current({docs_of(arguments) / SCHEMA_NAME: compact_json(document())}, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
