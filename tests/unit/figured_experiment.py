# SPDX-License-Identifier: Apache-2.0
"""An experiment of which every figure can be drawn: two swept fields, a group of connections, receivers that were
captured, and a profile with a figure of each kind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from howdah.record.connections import Connections, RowsOfConnections, write_connections
from howdah.record.directory import RunDirectory
from tests.experiment_factory import Scenario, make_experiment
from tests.unit.completed_run import plan_connections

RTTS, BUFFERS = ("50 ms", "100 ms"), ("1 bdp", "2 bdp")
ALGORITHMS = ("cubic-no-hystart", "cubic")
CONNECTIONS = 6
DECLARED = ("swept", "barred", "shares", "curves")  # ids of the profile's figures that are pictures
PROFILE = """\
howdah: 1
name: figured
path: {rate: 5 Mbit/s, buffer: [1 bdp, 2 bdp], rtt: [50 ms, 100 ms]}
algorithm: [cubic-no-hystart, cubic]
duration: 3 s
groups: [{name: web, connections: 6, start: 1 s, size: 30 kB}]
figures:
  - {id: swept, title: Utilisation against RTT, kind: sweep, x: path.rtt, y: utilisation, panels: path.buffer,
     paper: {label: Table 1, points: {1 bdp / cubic: {50 ms: 70 %}}}}
  - {id: barred, title: Utilisation by buffer, kind: bars, x: path.buffer, y: utilisation, at: {path.rtt: 50 ms}}
  - {id: shares, title: Completion, kind: cdf, metric: completion_time_s, at: {path.rtt: 50 ms, path.buffer: 1 bdp}}
  - {id: curves, title: Start-up, kind: time, series: [cwnd, ssthresh], at: {path.rtt: 50 ms, path.buffer: 1 bdp}}
  - {id: numbers, title: Utilisation, kind: table, rows: algorithm, columns: path.rtt, y: utilisation,
     at: {path.buffer: 1 bdp}}
"""


def completion_s(algorithm: str, repetition: int, number: int) -> float:
    """Of a connection of the group, by hand."""
    return 0.5 * (number + 1) + 0.01 * repetition + (1.0 if algorithm == "cubic" else 0.0)


def utilisation(rtt: str, buffer: str, repetition: int) -> float:
    """Of a run, by hand."""
    return 0.9 - 0.1 * RTTS.index(rtt) - 0.05 * BUFFERS.index(buffer) + 0.001 * repetition


def make(parent: Path) -> Path:
    scenario = Scenario(
        name="figured",
        algorithms=ALGORITHMS,
        repetitions=2,
        flows=1,
        duration_s=3.0,
        rate_bits_per_second=5_000_000,
        axes=tuple({"path.rtt": rtt, "path.buffer": buffer} for rtt in RTTS for buffer in BUFFERS),
    )
    root = make_experiment(parent, scenario)
    for file in root.glob("*/metrics.json"):
        metrics = json.loads(file.read_text(encoding="utf-8"))
        model = metrics["rows"][0]
        metrics["rows"] = [row for row in metrics["rows"] if row["metric"] != "utilisation"] + _more(model)
        file.write_text(json.dumps(metrics), encoding="utf-8")
        plan_connections(file.parent, "web", [2 + number for number in range(CONNECTIONS)])
        write_connections(RunDirectory(file.parent), _of_web(model["algorithm"], int(model["repetition"])))
    (root / "profile.yaml").write_text(PROFILE, encoding="utf-8")
    return root


def _more(model: dict[str, Any]) -> list[dict[str, Any]]:
    axes, repetition = model["axes"], int(model["repetition"])
    common = {key: value for key, value in model.items() if key != "why"}
    share = utilisation(axes["path.rtt"], axes["path.buffer"], repetition)
    rows = [{**common, "flow": None, "metric": "utilisation", "value": share, "unit": "ratio"}]
    rows.append({**common, "flow": 1, "metric": "segments_per_ack", "value": 2.0 + repetition, "unit": "packets"})
    return rows


def _of_web(algorithm: str, repetition: int) -> Connections:
    found = RowsOfConnections()
    words = {"group": "web", "metric": "completion_time_s", "unit": "s", "algorithm": algorithm}
    for number in range(CONNECTIONS):
        found.add(2 + number, completion_s(algorithm, repetition, number), receiver=None, why=None, **words)
    return Connections(found.table())
