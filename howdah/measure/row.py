# SPDX-License-Identifier: Apache-2.0
"""Rows of metrics.json, and comparisons of two sources of one measure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from howdah.metric import metric_of
from howdah.plan.plan import Flow
from howdah.record.connections import Connections, RowsOfConnections
from howdah.record.metrics import CrossCheck, MetricRow

_MOST_NAMED = 10
Value = float | int | str | None


@dataclass
class GroupCheck:
    """Two sources of one measure of each connection of a group: how many were compared, and the flows that differ."""

    message: str
    compared: int = 0
    wrong: list[int | None] = field(default_factory=list)

    def compared_of(self, group: str, metric: str) -> CrossCheck:
        agree = self.compared - len(self.wrong)
        named = ", ".join(map(str, self.wrong[:_MOST_NAMED])) + (" …" if len(self.wrong) > _MOST_NAMED else "")
        message = f"{self.message}: {len(self.wrong)} of {self.compared} connections (flow {named})"
        sources = {"compared": self.compared, "agree": agree}
        said = message if self.wrong else ""
        return CrossCheck(flow=group, metric=metric, sources=sources, agree=not self.wrong, message=said)


@dataclass(frozen=True)
class GroupOf:
    """A group of connections, as named in its rows."""

    group: str
    algorithm: str
    role: str


@dataclass
class Sheet:
    """Collects the rows of one run; ``common`` are the fields that all rows share.

    ``receivers`` are the receivers of single flows that differ from the run's. ``unseen`` has the reason why a metric
    of a flow cannot be known, so that it has no value. ``ends_unseen`` has the reason for missing values of flows whose
    end was not seen. ``connections`` are the rows of single connections of groups.
    """

    common: dict[str, Any]
    receivers: dict[int, str] = field(default_factory=dict)
    rows: list[MetricRow] = field(default_factory=list)
    cross_checks: list[CrossCheck] = field(default_factory=list)
    unseen: dict[tuple[int | None, str], str] = field(default_factory=dict)
    ends_unseen: dict[int, str] = field(default_factory=dict)
    connections: RowsOfConnections = field(default_factory=RowsOfConnections)
    group_checks: dict[tuple[str, str], GroupCheck] = field(default_factory=dict)

    def add(
        self,
        of: Flow | GroupOf | int | None,
        metric: str,
        value: Value,
        why: str | None = None,
        *,
        unit: str = "",
        role: str | None = None,
        unsupported: bool | None = None,
    ) -> None:
        """Add one measure in the unit of the table of metrics; ``why`` is the reason for no value, and required then.

        ``unit`` is for metrics whose rows have their own units. Raise HowdahError for a metric that the table lacks.
        """
        flow = of.id if isinstance(of, Flow) else of if isinstance(of, int) else None
        algorithm, group = (None, None) if of is None or isinstance(of, int) else (of.algorithm, of.group)
        role = of.role if isinstance(of, GroupOf) else role
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
        if flow is not None and group:
            self._add_connection(flow, metric, value, unit, why, group, algorithm)
            return
        receiver = None if flow is None else self.receivers.get(flow)
        why = why if value is None else None
        self.rows.append(MetricRow(flow, metric, value, unit, group, role, algorithm, receiver, unsupported, why))

    def _add_connection(
        self, flow: int, metric: str, value: Value, unit: str, why: str | None, group: str, algorithm: str | None
    ) -> None:
        if isinstance(value, str):
            raise ValueError(f"{metric} of a connection is a number")
        words = {"group": group, "metric": metric, "unit": unit or None, "algorithm": algorithm}
        why = why if value is None else None
        self.connections.add(flow, value, receiver=self.receivers.get(flow), why=why, **words)

    def cross_check(
        self,
        flow: int | None,
        metric: str,
        sources: dict[str, Value],
        agree: bool,
        message: str,
        *,
        group: str | None = None,
    ) -> None:
        """Compare two independent sources of one measure; ``message`` says what a disagreement means.

        The comparisons of a ``group``'s connections become one, which counts them.
        """
        if group is not None:
            counts = self.group_checks.setdefault((group, metric), GroupCheck(message))
            counts.compared += 1
            counts.wrong += [] if agree else [flow]
            return
        said = "" if agree else message
        self.cross_checks.append(CrossCheck(flow=flow, metric=metric, sources=sources, agree=agree, message=said))

    @property
    def compared(self) -> list[CrossCheck]:
        """All cross-checks, with one for each group and measure."""
        return self.cross_checks + [each.compared_of(*of) for of, each in self.group_checks.items()]

    def plain(self, connections: Connections) -> dict[str, Any]:
        """Return metrics.json; ``connections`` is the table of the collected ones."""
        rows = [row.plain(self.common) for row in self.rows]
        found = {"format": 1, "rows": rows, "cross_checks": [check.plain() for check in self.compared]}
        return {**found, "connections": connections.summary()} if len(connections) else found
