# SPDX-License-Identifier: Apache-2.0
"""claims.json: the model of an experiment's claims with their verdicts.

``howdah/claim`` writes the file, all pages and commands read it, and docs/data-format.md has these descriptions. A
field that was not set is left out of the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Protocol

from pydantic import AliasChoices, ConfigDict, Field

from howdah.errors import RecordError
from howdah.record.directory import read_json
from howdah.record.index import ProfileSource
from howdah.record.model import FilePart, Scalar, checked

CLAIMS_FORMAT: Literal[1] = 1
CLAIMS_NAME = "claims.json"


class _ClaimPart(FilePart):
    model_config = ConfigDict(serialize_by_alias=True)


class ExpectedRow(_ClaimPart):
    """What a claim expects."""

    text: str = Field(description="In words.")
    low: float | None = Field(
        description="The lower end of the range: of the mean, or with `in_at_least` of each value; null without one."
    )
    high: float | None = Field(description="The upper end.")
    unit: str = Field(description="The unit of both, as in metrics.json.")


class TrendRow(_ClaimPart):
    """One value of the axis of a trend or of a rank correlation."""

    axis: str = Field(description="The value of the axis.")
    mean: float | None = Field(description="The mean there.")
    other: float | None = Field(
        default=None,
        validation_alias=AliasChoices("with", "other"),
        serialization_alias="with",
        description="The number that a rank correlation compares with; only there.",
    )


class SampleRow(_ClaimPart):
    """The mean over the repetitions that count."""

    text: str = Field(description="In words; with fewer than six repetitions, also the least and the largest.")
    mean: float | None = Field(description="The mean; null for texts, and without a value.")
    low: float | None = Field(description="The lower end of its 95 % interval; null without one.")
    high: float | None = Field(description="The upper end.")
    n: int = Field(description="How many repetitions have a value.")
    unit: str = Field(description="As in metrics.json.")
    missing: int = Field(default=0, description="How many have none; left out if all have one.")
    counts: dict[str, int] | None = Field(default=None, description="How often each text was found; only for texts.")
    trend: list[TrendRow] | None = Field(
        default=None, description="Each value of the axis; only for a trend or a rank correlation."
    )


class ComparisonRow(_ClaimPart):
    """The comparison of two samples; differences and ratios have the ends of their 95 % intervals."""

    difference: float = Field(description="The difference of the means.")
    difference_low: float | None = Field(description="The lower end of its interval.")
    difference_high: float | None = Field(description="The upper end.")
    ratio: float | None = Field(description="The ratio of the means; null if the second is 0.")
    ratio_low: float | None = Field(description="The lower end of its interval.")
    ratio_high: float | None = Field(description="The upper end.")
    paired: bool = Field(description="Whether repetitions were compared in pairs.")


class _AtPoint(_ClaimPart):
    at: dict[str, Scalar] = Field(description="The value of each axis.")


class PointRow(SampleRow, _AtPoint):
    """A point at which a claim is judged: its values, its sample and its verdict."""

    verdict: str = Field(description="As for the claim.")
    why: str = Field(description="Reason for it.")
    than: SampleRow | None = Field(description="What it is compared with.")
    comparison: ComparisonRow | None = Field(description="The difference and the ratio of both.")


class MeasuredRow(SampleRow):
    """The sample of the point that decides the verdict, and all points."""

    points: list[PointRow] = Field(description="Each point at which the claim was judged.")


class ControlRow(_ClaimPart):
    """A claim judged on the runs of its control."""

    name: str | None = Field(description="Its name in the profile.")
    what: str = Field(description="What it is.")
    because: str | None = Field(description="Why the claim differs, where the control proves it.")
    verdict: str = Field(description="The claim's verdict there.")
    why: str = Field(description="Reason for it.")
    measured: MeasuredRow | None = Field(description="What was measured there.")
    than: SampleRow | None = Field(description="What it is compared with.")
    runs: list[str] = Field(description="Names of the runs.")


class GridPointRow(_ClaimPart):
    """A claim judged at one point of what its source leaves open."""

    at: dict[str, str] = Field(description="What is open, and its value.")
    verdict: str = Field(description="The claim's verdict there.")
    reverse: bool | None = Field(default=None, description="Whether its reverse holds there.")
    text: str = Field(description="What was measured, in words.")


class GridRow(_ClaimPart):
    """A claim that fails as the profile is written, judged over what its source leaves open."""

    text: str = Field(description="In words.")
    holds: int = Field(description="Number of points at which it holds.")
    reverse: int = Field(default=0, description="At how many its reverse holds.")
    of: int = Field(description="At how many it was judged.")
    share: float = Field(description="Share of points at which it holds.")
    mechanism: bool = Field(
        default=False,
        description="Whether the grid [shows one](claims.md#when-a-grid-shows-a-mechanism).",
    )
    points: list[GridPointRow] = Field(description="Each point; the first is the profile's own.")


class ClaimRow(_ClaimPart):
    """A claim and its verdict. Fields that do not apply are null."""

    id: str = Field(description="Its name in the profile.")
    entries: list[str] = Field(default=[], description="Entries of the atlas to which it belongs.")
    says: str = Field(description="What is claimed, in words.")
    source: str | None = Field(default=None, description="Where it is claimed.")
    verdict: str = Field(description="`pass`, `implemented`, `fail`, `differs`, `depends`, `unsupported` or `invalid`.")
    why: str = Field(default="", description="Reason for it.")
    expected: ExpectedRow = Field(description="What is expected.")
    measured: MeasuredRow | None = Field(default=None, description="What was measured.")
    than: SampleRow | None = Field(default=None, description="What it is compared with.")
    comparison: ComparisonRow | None = Field(default=None, description="The difference and the ratio of both.")
    control: ControlRow | None = Field(default=None, description="The claim on the runs of its control.")
    unknown: GridRow | None = Field(default=None, description="The claim over what its source leaves open.")
    because: str = Field(default="", description="Why it may differ from its source.")
    contradiction: str = Field(default="", description="Where its source contradicts itself.")
    note: str = Field(default="", description="What a reader must know.")
    chosen_after: str = Field(
        default="", description="What its range was before a result was known, and why it was changed."
    )
    runs: list[str] = Field(default=[], description="Names of the runs by which it was judged.")
    renewed: bool = Field(default=False, description="For published results: judged again by the published numbers.")
    outdated: str = Field(default="", description="For published results: what has changed since.")


class MostRow(_ClaimPart):
    """The point of what is open at which most claims hold."""

    at: dict[str, str] = Field(description="What is open, and its value.")
    holds: int = Field(description="How many claims hold there.")
    of: int = Field(description="How many were judged.")


class OpenRow(_ClaimPart):
    """What the source leaves open, and whether all claims hold at one point of it."""

    fields: dict[str, str] = Field(description="What is open, by its name.")
    made: int = Field(description="How many points have runs.")
    of: int = Field(description="How many there are.")
    together: dict[str, str] | None = Field(description="The point at which all claims hold; null without one.")
    most: MostRow | None = Field(description="The point at which most do.")
    text: str = Field(description="For readers; empty where nothing was judged.")


class ClaimsFile(_ClaimPart):
    """claims.json."""

    format: Literal[1] = Field(default=CLAIMS_FORMAT, description="The version of this file.")
    quick: bool = Field(default=False, description="Whether only the `quick:` subset was run.")
    profile: ProfileSource | None = Field(
        default=None, description="`file` and `sha256` of another profile whose claims these are; null of its own."
    )
    unknown: OpenRow | None = Field(default=None, description="What the source leaves open; null if nothing.")
    claims: list[ClaimRow] = Field(description="In the order of the profile.")


class Judged(Protocol):
    """The result of judging a claim: a row of the file, or what a row is made from."""

    @property
    def verdict(self) -> str: ...
    @property
    def why(self) -> str: ...
    @property
    def measured(self) -> MeasuredRow | None: ...
    @property
    def than(self) -> SampleRow | None: ...


def read_claims_file(directory: Path) -> ClaimsFile | None:
    """Read claims.json; None if it is missing, damaged, or of another format."""
    file = directory / CLAIMS_NAME
    try:
        return checked(ClaimsFile, read_json(file), file)
    except (OSError, ValueError, RecordError):
        return None


def read_claims(directory: Path) -> list[ClaimRow]:
    """The claims of claims.json; an empty list if it cannot be read."""
    found = read_claims_file(directory)
    return found.claims if found is not None else []
