# SPDX-License-Identifier: Apache-2.0
"""Rows of metrics.json, and the comparison of two sources of one measure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from howdah.metric import metric_of

Value = float | int | str | None


@dataclass
class Sheet:
    """Collects the rows of one run; ``common`` is what all of them share.

    ``receivers`` are the behaviours of the receivers of single flows, where they are not the run's. ``unseen`` says why
    nobody can know a metric of a flow: it has no value then. ``ends_unseen`` are flows whose end nobody saw: that is
    why, where one of their metrics has no value.
    """

    common: dict[str, Any]
    receivers: dict[int, str] = field(default_factory=dict)
    rows: list[dict[str, Any]] = field(default_factory=list)
    cross_checks: list[dict[str, Any]] = field(default_factory=list)
    unseen: dict[tuple[int | None, str], str] = field(default_factory=dict)
    ends_unseen: dict[int, str] = field(default_factory=dict)

    def add(
        self, flow: int | None, metric: str, value: Value, why: str | None = None, *, unit: str = "", **extra: Any
    ) -> None:
        """One measure; ``why`` says why there is no value (required then). Its unit is that of the table of metrics.

        ``unit`` is for metrics whose rows have units of their own. Raises HowdahError for one that the table lacks.
        """
        known = metric_of(metric)
        if (flow, metric) in self.unseen:
            value, why = None, self.unseen[flow, metric]
        elif value is None and flow in self.ends_unseen:
            why = self.ends_unseen[flow]
        if unit and not known.is_by_cause:
            raise ValueError(f"the unit of {metric} is that of the table of metrics, not of a row")
        if not known.is_by_cause and not known.is_text:
            unit = known.unit
        if value is None and not why:
            raise ValueError(f"{metric} has neither a value nor a reason")
        row = {**self.common, **extra, "flow": flow, "metric": metric, "value": value, "unit": unit}
        if flow in self.receivers:
            row["receiver"] = self.receivers[flow]
        if value is None:
            row["why"] = why
        self.rows.append(row)

    def cross_check(self, flow: int | None, metric: str, sources: dict[str, Value], agree: bool, message: str) -> None:
        """Two independent sources of one measure; ``message`` says what a disagreement means."""
        self.cross_checks.append(
            {"flow": flow, "metric": metric, "sources": sources, "agree": agree, "message": "" if agree else message}
        )

    def to_json(self) -> dict[str, Any]:
        return {"format": 1, "rows": self.rows, "cross_checks": self.cross_checks}
