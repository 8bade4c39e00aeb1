# SPDX-License-Identifier: Apache-2.0
"""The panels of ``reports/dashboard/panels.yaml`` as a page that Prometheus itself shows, and as Grafana's JSON.

``python -m howdah.publish.dashboard`` writes the JSON beside the panels again; a test compares it with them.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from string import Template
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, select_autoescape

from howdah.assets import UPLOT_VERSION, data
from howdah.compact import compact_json
from howdah.place import REPORTS
from howdah.publish.board import DATASOURCE, label_choices
from howdah.publish.metric import RUN_LABELS
from howdah.series import drawn_series

LIVE_JOB = "howdah-live"
NODE_JOB = "node"
PAGE = "live.html"
GRAFANA_FILE = REPORTS / "dashboard" / "howdah-live.json"
WINDOW = "5s"  # four scrapes at least
_CHOICES = ("experiment", "algorithm", "repetition")
_GRAFANA_UNITS = {"ms": "ms", "%": "percent", "Mbit/s": "Mbits", "kB": "deckbytes", "packets/s": "pps"}


@dataclass(frozen=True)
class DashboardPanel:
    """One figure of the dashboard. ``query`` has the places ``$run``, ``$path`` and ``$window``."""

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
    """The page with all it needs in one file; it asks the server it came from and no other."""
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
    """The dashboard in Grafana's JSON model (schema 39, Grafana 11 or later), for provisioning from a file."""
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
    GRAFANA_FILE.write_text(grafana_text(), encoding="utf-8")
