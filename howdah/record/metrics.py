# SPDX-License-Identifier: Apache-2.0
"""metrics.json: the measures of a run, and comparisons of two sources for one measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, Strict

from howdah.errors import RecordError
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory, read_json
from howdah.record.model import HINT, FilePart, checked


@dataclass(frozen=True, slots=True)
class MetricRow:
    """A measure of a flow, of a ``group`` of connections (without a flow), of one of its connections, or of the run.
    ``why`` says why the value is missing. ``algorithm`` and ``receiver`` are None if they are the run's.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(strict=False)  # strictly, it would have to be a MetricRow

    flow: Annotated[int | None, Strict()]
    metric: str
    value: int | float | str | None
    unit: str | None
    group: str | None = None
    role: str | None = None
    algorithm: str | None = None
    receiver: str | None = None
    unsupported: bool | None = None
    why: str | None = None

    @property
    def number(self) -> int | float | None:
        """The value, None for text."""
        return None if isinstance(self.value, str) else self.value

    @property
    def of(self) -> str:
        """The flow or the group; empty for the whole run."""
        return self.group or "" if self.flow is None else str(self.flow)

    def plain(self, common: dict[str, Any]) -> dict[str, Any]:
        """The row as the file has it; ``common`` is what all rows of the run share."""
        own = {name: getattr(self, name) for name in ("algorithm", "receiver", "group", "role", "unsupported")}
        said = {name: value for name, value in own.items() if value is not None}
        row = {**common, **said, "flow": self.flow, "metric": self.metric, "value": self.value, "unit": self.unit}
        return row if self.why is None else {**row, "why": self.why}


class CrossCheck(FilePart):
    """A comparison of two independent sources for one measure; ``message`` says what a disagreement means."""

    flow: int | str | None
    metric: str
    sources: dict[str, Any]
    agree: bool | None
    message: str


class Metrics(FilePart):
    """The content of the file; ``connections`` has the number and the digest of the rows of connections.parquet."""

    format: Literal[1] = 1
    rows: list[MetricRow] = Field(default=[])
    cross_checks: list[CrossCheck] = Field(default=[])
    connections: dict[str, Any] | None = None


def read_metrics(directory: RunDirectory, plan: Plan | None = None) -> Metrics:
    """Read and check metrics.json, its flows too if a plan is given. Raise FileNotFoundError and RecordError."""
    found = checked(Metrics, read_json(directory.metrics), directory.metrics)
    if plan is not None:
        flows = {None, *(flow.id for flow in plan.flows)}
        for number, row in enumerate(found.rows):
            if row.flow not in flows:
                what = f"rows.{number}.flow: the plan has no flow {row.flow!r}"
                raise RecordError(what, where=str(directory.metrics), hint=HINT)
    return found
