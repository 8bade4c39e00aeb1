# SPDX-License-Identifier: Apache-2.0
"""Dashboards of finished runs, nights and a sweep in Grafana's JSON model, from ``reports/dashboard/boards.yaml``.

``python -m howdah.publish.board`` writes the JSON beside it again; a test compares it, checks it against Grafana's
schema, and puts every query to a real Prometheus.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from howdah.assets import data
from howdah.codec import decoded
from howdah.compact import compact_json
from howdah.place import REPORTS
from howdah.publish.finished import RESULTS_JOB

FOLDER = REPORTS / "dashboard"
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
_SOURCE_CHOICE = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
_COLUMNS, _HEIGHT, _WIDTH = 24, 8, 12
# A run that is invalid or did not finish is in no figure.
_COUNTS = (
    "and on (experiment, run) "
    'last_over_time(howdah_run_info{job="", verdict=~"pass|fail|unjudged", $choice}[$__interval])'
)
_HIDDEN = ("Time", "__name__", "job", "instance")


@dataclass(frozen=True)
class BoardQuery:
    query: str
    legend: str = "__auto"

    def promql(self, choice: str) -> str:
        """With its places filled in; Grafana's own variables stay."""
        places = {"record": f'job="", {choice}', "now": f'job="{RESULTS_JOB}", {choice}', "choice": choice}
        counts = Template(_COUNTS).safe_substitute(places)
        return Template(self.query).safe_substitute(places, counts=counts)


@dataclass(frozen=True)
class BoardPanel:
    title: str
    kind: str
    queries: list[BoardQuery]
    unit: str = "short"
    width: int = _WIDTH

    def grafana(self, choice: str, every: str) -> dict[str, Any]:
        """Without its number and place."""
        options, custom = _KINDS[self.kind]
        is_now = self.kind in ("stat", "table")
        return {
            "type": "timeseries" if self.kind == "bars" else self.kind,
            "datasource": DATASOURCE,
            "fieldConfig": {"defaults": {"unit": self.unit} | ({"custom": custom} if custom else {}), "overrides": []},
            "options": options,
            "targets": [
                {
                    "refId": chr(ord("A") + index),
                    "datasource": DATASOURCE,
                    "expr": each.promql(choice),
                    "legendFormat": each.legend,
                    "interval": every,
                    "instant": is_now,
                    "range": not is_now,
                    **({"format": "table"} if self.kind == "table" else {}),
                }
                for index, each in enumerate(self.queries)
            ],
            **({"transformations": [_ORGANISED]} if self.kind == "table" else {}),
        }


@dataclass(frozen=True)
class Board:
    """A dashboard as boards.yaml describes it."""

    uid: str
    title: str
    span: str
    metric: str
    choices: list[str]
    more: dict[str, str]
    panels: list[BoardPanel]
    every: str | None = None

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.uid}.json"

    def grafana(self) -> dict[str, Any]:
        """As Grafana reads it (schema 39, Grafana 11 or later); panels in rows from left to right."""
        choice = ", ".join(f'{name}=~"${name}"' for name in self.choices)
        labels = dict.fromkeys(self.choices, self.metric) | self.more
        drawn = []
        x = y = 0
        for number, panel in enumerate(self.panels, start=1):
            if x + panel.width > _COLUMNS:
                x, y = 0, y + _HEIGHT
            place = {"x": x, "y": y, "w": panel.width, "h": _HEIGHT}
            own = panel.grafana(choice, self.every or "1m")
            drawn.append({"id": number, "title": panel.title, "gridPos": place, **own})
            x += panel.width
        return {
            "uid": self.uid,
            "title": self.title,
            "tags": ["howdah"],
            "schemaVersion": 39,
            "editable": False,
            "timezone": "browser",
            **({"refresh": self.every} if self.every else {}),
            "time": {"from": f"now-{self.span}", "to": "now"},
            # A run whose labels lack the name is in "All", too.
            "templating": {"list": label_choices(labels, allValue=".*")},
            "panels": drawn,
        }


def boards() -> list[Board]:
    return [decoded(Board, board) for board in data("dashboard/boards.yaml")]


def label_choices(labels: Mapping[str, str], **more: str) -> list[dict[str, Any]]:
    """Of Prometheus, and of the values that labels of metrics have; ``more`` are further fields of Grafana's."""
    return [
        _SOURCE_CHOICE,
        *(
            {
                "name": label,
                "type": "query",
                "datasource": DATASOURCE,
                "query": {"qryType": 1, "query": f"label_values({metric}, {label})", "refId": label},
                "refresh": 2,
                "includeAll": True,
                **more,
                "multi": True,
                "current": {"text": ["All"], "value": ["$__all"]},
            }
            for label, metric in labels.items()
        ),
    ]


_LEGEND = {"displayMode": "list", "placement": "bottom", "showLegend": True, "calcs": []}
_POINTS = {
    "drawStyle": "line",
    "lineWidth": 1,
    "fillOpacity": 0,
    "showPoints": "always",
    "pointSize": 6,
    "spanNulls": True,  # from one run or night to the next
}
_BARS = {"drawStyle": "bars", "fillOpacity": 80, "lineWidth": 0, "stacking": {"mode": "normal", "group": "A"}}
_STAT = {
    "reduceOptions": {"calcs": ["lastNotNull"], "values": False},
    "colorMode": "value",
    "graphMode": "none",
    "textMode": "value_and_name",
}
_KINDS = {
    "timeseries": ({"legend": _LEGEND, "tooltip": {"mode": "multi", "sort": "none"}}, _POINTS),
    "bars": ({"legend": _LEGEND, "tooltip": {"mode": "multi", "sort": "none"}}, _BARS),
    "stat": (_STAT, {}),
    "table": ({"showHeader": True}, {}),
}
_ORGANISED = {"id": "organize", "options": {"excludeByName": dict.fromkeys(_HIDDEN, True)}}


if __name__ == "__main__":
    for each in boards():
        each.file.write_text(compact_json(each.grafana()), encoding="utf-8")
