# SPDX-License-Identifier: Apache-2.0
"""Dashboards in Grafana's JSON model: of finished runs, nights and a sweep from ``reports/dashboard/boards.yaml``, and
of live runs from ``panels.yaml``, which also make a page that Prometheus itself serves.

``python -m howdah.publish.board`` regenerates the JSON beside them. A test compares it, checks it against Grafana's
schema, and sends every query to a real Prometheus.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from string import Template
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from howdah.assets import UPLOT_VERSION, data
from howdah.codec import decoded
from howdah.generated import compact_json
from howdah.place import REPORTS
from howdah.publish.metric import LIVE_JOB, RESULTS_JOB, RUN_LABELS
from howdah.series import drawn_series

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
        """The query with its placeholders filled in; Grafana's own variables stay."""
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
        """The panel in Grafana's model, without its id and position."""
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
    """A dashboard as described in boards.yaml."""

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
        """The dashboard in Grafana's model (schema 39, Grafana 11 or later), with panels in rows from left to right."""
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
    """Choices of the Prometheus and of the values of labels; ``more`` are further Grafana fields."""
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


PAGE = "live.html"
GRAFANA_FILE = REPORTS / "dashboard" / "howdah-live.json"
WINDOW = "5s"  # four scrapes at least
_CHOICES = ("experiment", "algorithm", "repetition")
_GRAFANA_UNITS = {"ms": "ms", "%": "percent", "Mbit/s": "Mbits", "kB": "deckbytes", "packets/s": "pps"}


@dataclass(frozen=True)
class DashboardPanel:
    """One figure of the dashboard. ``query`` has the placeholders ``$run``, ``$path`` and ``$window``."""

    id: str
    title: str
    unit: str
    query: str
    legend: str

    def promql(self, run: str, window: str) -> str:
        """The query for runs that match ``run`` (the inside of a selector)."""
        return Template(self.query).substitute(run=run, path=", ".join(RUN_LABELS), window=window)


def panels() -> list[DashboardPanel]:
    return [_panel(dict(panel)) for panel in data("dashboard/panels.yaml")["panels"]]


def _panel(written: dict[str, str]) -> DashboardPanel:
    if "series" not in written:
        return DashboardPanel(**written)
    drawn = drawn_series()[written.pop("series")]
    return DashboardPanel(**{"title": drawn.title, "unit": drawn.unit, "query": drawn.promql} | written)


def write_page(directory: Path) -> Path:
    """Write the page as one self-contained file; its only requests go to the server it came from."""
    folder = REPORTS / "dashboard"
    vendor = REPORTS / "vendor" / f"uplot-{UPLOT_VERSION}"
    environment = Environment(
        loader=FileSystemLoader(folder), undefined=StrictUndefined, autoescape=select_autoescape(("html.j2",))
    )
    settings = {
        "panels": [asdict(panel) for panel in panels()],
        "job": LIVE_JOB,
        "path": ", ".join(RUN_LABELS),
        "window": WINDOW,
        "labels": RUN_LABELS,
        "colours": data("palette.yaml")["others"],
        "dashes": data("palette.yaml")["dashes"],
    }
    page = environment.get_template("live.html.j2").render(
        style="\n".join(
            file.read_text(encoding="utf-8")
            for file in (vendor / "uPlot.min.css", REPORTS / "css" / "tokens.css", folder / "live.css")
        ),
        scripts=[
            file.read_text(encoding="utf-8")
            for file in (
                REPORTS / "js" / "theme.js",
                REPORTS / "js" / "format.js",
                REPORTS / "js" / "marks.js",
                vendor / "uPlot.iife.min.js",
                folder / "board.js",
                REPORTS / "js" / "scroll.js",
                folder / "live.js",
            )
        ],
        settings=json.dumps(settings).replace("<", "\\u003c"),
    )
    target = directory / PAGE
    target.write_text(page, encoding="utf-8")
    return target


def grafana() -> dict[str, Any]:
    """The live dashboard in Grafana's JSON model (schema 39, Grafana 11 or later), for provisioning from a file."""
    metric = f'howdah_live_run_info{{job="{LIVE_JOB}"}}'
    run = f'job="{LIVE_JOB}", ' + ", ".join(f'{name}=~"${name}"' for name in _CHOICES)
    return {
        "uid": "howdah-live",
        "title": "howdah: runs as they happen",
        "tags": ["howdah"],
        "schemaVersion": 39,
        "editable": False,
        "timezone": "browser",
        "refresh": "1s",
        "time": {"from": "now-2m", "to": "now"},
        "timepicker": {"refresh_intervals": ["1s", "5s", "30s"]},
        "templating": {"list": label_choices(dict.fromkeys(_CHOICES, metric))},
        "panels": [
            {
                "id": number + 1,
                "title": panel.title,
                "type": "timeseries",
                "datasource": DATASOURCE,
                "gridPos": {"x": 12 * (number % 2), "y": 8 * (number // 2), "w": 12, "h": 8},
                "fieldConfig": {
                    "defaults": {
                        "unit": _GRAFANA_UNITS.get(panel.unit, "short"),
                        "min": 0,
                        "custom": {"lineWidth": 1, "fillOpacity": 0, "showPoints": "never", "spanNulls": False},
                    },
                    "overrides": [],
                },
                "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
                "targets": [
                    {
                        "refId": "A",
                        "datasource": DATASOURCE,
                        "expr": panel.promql(run, WINDOW),
                        "legendFormat": panel.legend,
                        "interval": "1s",
                    }
                ],
            }
            for number, panel in enumerate(panels())
        ],
    }


def grafana_text() -> str:
    return compact_json(grafana())


if __name__ == "__main__":
    for each in boards():
        each.file.write_text(compact_json(each.grafana()), encoding="utf-8")
    GRAFANA_FILE.write_text(grafana_text(), encoding="utf-8")
