# SPDX-License-Identifier: Apache-2.0
"""Dashboards of finished runs, nights and a sweep in Grafana's JSON model, from ``reports/dashboard/boards.yaml``.

``python -m howdah.publish.board`` writes the JSON beside it again; a test compares it, checks it against Grafana's
schema, and puts every query to a real Prometheus.
"""

from __future__ import annotations

from pathlib import Path
from string import Template
from typing import Any

from howdah.assets import data
from howdah.compact import compact_json
from howdah.place import REPORTS
from howdah.publish.finished import RESULTS_JOB

FOLDER = REPORTS / "dashboard"
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
SOURCE_CHOICE = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
_COLUMNS, _HEIGHT, _WIDTH = 24, 8, 12
# A run that is invalid or did not finish is in no figure.
_COUNTS = (
    "and on (experiment, run) "
    'last_over_time(howdah_run_info{job="", verdict=~"pass|fail|unjudged", $choice}[$__interval])'
)
_HIDDEN = ("Time", "__name__", "job", "instance")


def boards() -> list[dict[str, Any]]:
    """Every dashboard as Grafana reads it (schema 39, Grafana 11 or later)."""
    return [_board(board) for board in data("dashboard/boards.yaml")]


def file_of_board(board: dict[str, Any]) -> Path:
    return FOLDER / f"{board['uid']}.json"


def text_of(board: dict[str, Any]) -> str:
    return compact_json(board)


def _board(board: dict[str, Any]) -> dict[str, Any]:
    labels = dict.fromkeys(board["choices"], board["metric"]) | board["more"]
    choice = ", ".join(f'{name}=~"${name}"' for name in board["choices"])
    # A run whose labels lack the name is in "All", too.
    choices = [label_choice(name, metric, allValue=".*") for name, metric in labels.items()]
    return {
        "uid": board["uid"],
        "title": board["title"],
        "tags": ["howdah"],
        "schemaVersion": 39,
        "editable": False,
        "timezone": "browser",
        **({"refresh": board["every"]} if "every" in board else {}),
        "time": {"from": f"now-{board['span']}", "to": "now"},
        "templating": {"list": [SOURCE_CHOICE, *choices]},
        "panels": list(_panels(board["panels"], choice, board.get("every", "1m"))),
    }


def label_choice(label: str, metric: str, **more: str) -> dict[str, Any]:
    """Of the values that a label of a metric has; ``more`` are further fields of Grafana's."""
    query = f"label_values({metric}, {label})"
    return {
        "name": label,
        "type": "query",
        "datasource": DATASOURCE,
        "query": {"qryType": 1, "query": query, "refId": label},
        "refresh": 2,
        "includeAll": True,
        **more,
        "multi": True,
        "current": {"text": ["All"], "value": ["$__all"]},
    }


def _panels(rows: list[dict[str, Any]], choice: str, every: str) -> list[dict[str, Any]]:
    """In rows from left to right."""
    found = []
    x = y = 0
    for number, row in enumerate(rows, start=1):
        width = row.get("width", _WIDTH)
        if x + width > _COLUMNS:
            x, y = 0, y + _HEIGHT
        place = {"x": x, "y": y, "w": width, "h": _HEIGHT}
        found.append({"id": number, "title": row["title"], "gridPos": place, **_panel(row, choice, every)})
        x += width
    return found


def _panel(row: dict[str, Any], choice: str, every: str) -> dict[str, Any]:
    kind = row["kind"]
    options, custom = _KINDS[kind]
    is_now = kind in ("stat", "table")
    return {
        "type": "timeseries" if kind == "bars" else kind,
        "datasource": DATASOURCE,
        "fieldConfig": {
            "defaults": {"unit": row.get("unit", "short")} | ({"custom": custom} if custom else {}),
            "overrides": [],
        },
        "options": options,
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": DATASOURCE,
                "expr": _promql(each["query"], choice),
                "legendFormat": each.get("legend", "__auto"),
                "interval": every,
                "instant": is_now,
                "range": not is_now,
                **({"format": "table"} if kind == "table" else {}),
            }
            for index, each in enumerate(row["queries"])
        ],
        **({"transformations": [_ORGANISED]} if kind == "table" else {}),
    }


def _promql(query: str, choice: str) -> str:
    """A query with its places filled in; Grafana's own variables stay."""
    places = {"record": f'job="", {choice}', "now": f'job="{RESULTS_JOB}", {choice}', "choice": choice}
    counts = Template(_COUNTS).safe_substitute(places)
    return Template(query).safe_substitute(places, counts=counts)


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
_KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "timeseries": ({"legend": _LEGEND, "tooltip": {"mode": "multi", "sort": "none"}}, _POINTS),
    "bars": ({"legend": _LEGEND, "tooltip": {"mode": "multi", "sort": "none"}}, _BARS),
    "stat": (_STAT, {}),
    "table": ({"showHeader": True}, {}),
}
_ORGANISED = {"id": "organize", "options": {"excludeByName": dict.fromkeys(_HIDDEN, True)}}


if __name__ == "__main__":
    for each in boards():
        file_of_board(each).write_text(text_of(each), encoding="utf-8")
