# SPDX-License-Identifier: Apache-2.0
"""Receivers laid over each other: strips of their measures on one scale, and the sentence of what differs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from howdah.record.result import Experiment, Run, load_experiment
from howdah.report.build import report
from howdah.report.receiverstrip import receiver_drawing, receiver_strips, what_differs
from howdah.report.template import whole
from howdah.report.variant import Variants
from tests.experiment_factory import Scenario, make_experiment

AXES = tuple({"receiver": name} for name in ("linux", "quick-ack", "stretch-ack"))
SEGMENTS = {"linux": 1.9, "quick-ack": 1.0, "stretch-ack": 7.5}


def made(
    tmp_path: Path, invalid: tuple[tuple[str, int], ...] = (), **measures: Mapping[str, float | Mapping[str, float]]
) -> Experiment:
    """Runs of three receivers, whose first flow has each of ``measures`` by receiver."""
    axes = AXES
    scenario = Scenario(algorithms=("cubic", "reno"), repetitions=1, flows=1, axes=axes, invalid=invalid)
    scenario.duration_s, scenario.second_flow_s = 2.0, 1.0
    directory = make_experiment(tmp_path, scenario)
    for file in directory.glob("*/metrics.json"):
        receiver = json.loads((file.parent / "plan.json").read_text())["axes"]["receiver"]
        metrics = json.loads(file.read_text())
        kept = [row for row in metrics["rows"] if row["metric"] not in measures]
        algorithm = metrics["rows"][0]["algorithm"]
        model = next(row for row in metrics["rows"] if row["flow"] == 1)
        kept += [
            {**model, "metric": name, "value": of(values[receiver], algorithm)} for name, values in measures.items()
        ]
        file.write_text(json.dumps({**metrics, "rows": kept}))
    return load_experiment(directory)


def of(value: float | Mapping[str, float], algorithm: str) -> float:
    return value[algorithm] if isinstance(value, Mapping) else value


def receiver_of(run: Run) -> str:
    return str(run.axes["receiver"])


def said(experiment: Experiment) -> str:
    return what_differs(experiment.runs, Variants([experiment]), receiver_of, "receiver", lambda run: run.algorithm)


def test_the_sentence_names_the_extremes_and_what_is_alike(tmp_path: Path) -> None:
    exits = {"linux": 1.28, "quick-ack": 1.27, "stretch-ack": 1.28}
    delay = {"linux": 4000.0, "quick-ack": 0.0, "stretch-ack": 40000.0}
    experiment = made(tmp_path, segments_per_ack=SEGMENTS, ack_delay_p95_us=delay, exit_cwnd_bdp=exits)
    assert said(experiment) == (
        "By receiver these differ: segments an ACK from 1 (quick-ack) to 7.5 (stretch-ack, at cubic); "
        "ACK delay 95 % from 0 (quick-ack) to 40 ms (stretch-ack, at cubic). Within 5 % are: window at the exit."
    )


def test_only_runs_that_differ_by_the_axis_alone_are_compared(tmp_path: Path) -> None:
    """Algorithms far apart do not make receivers differ, and the one under which they do is named."""
    exits = {name: {"cubic": 1.0, "reno": 4.0} for name in SEGMENTS}
    exits["quick-ack"] = {"cubic": 1.0, "reno": 3.0}
    segments = {name: {"cubic": 1.0, "reno": 2.0} for name in SEGMENTS}
    experiment = made(tmp_path, segments_per_ack=segments, exit_cwnd_bdp=exits)
    assert said(experiment) == (
        "By receiver these differ: window at the exit from 3 (quick-ack) to 4 BDP (stretch-ack, at reno). "
        "Within 5 % are: segments an ACK."
    )


def test_values_alike_are_said_to_be_alike(tmp_path: Path) -> None:
    experiment = made(tmp_path, segments_per_ack=dict.fromkeys(SEGMENTS, 2.0), exit_cwnd_bdp=dict.fromkeys(SEGMENTS, 1))
    assert said(experiment) == "By receiver, within 5 % are: segments an ACK; window at the exit."


def test_a_run_that_does_not_count_is_drawn_and_not_compared(tmp_path: Path) -> None:
    experiment = made(tmp_path, invalid=(("cubic", 0), ("reno", 0)), segments_per_ack=SEGMENTS)
    assert said(experiment) == ""
    (strip,) = receiver_strips(experiment.runs, Variants([experiment]), receiver_of)
    assert receiver_drawing(strip, 100, narrow=False).count(" invalid") == 6


def test_without_a_capture_nothing_is_shown(tmp_path: Path) -> None:
    experiment = made(tmp_path)
    assert said(experiment) == ""
    assert receiver_strips(experiment.runs, Variants([experiment]), receiver_of) == []


def test_a_measure_has_one_scale_whatever_axis_has_the_rows(tmp_path: Path) -> None:
    experiment = made(tmp_path, segments_per_ack=SEGMENTS)
    variants = Variants([experiment])
    places = []
    for rows in (receiver_of, variants.key):
        (strip,) = receiver_strips(experiment.runs, variants, rows)
        drawing = receiver_drawing(strip, 100, narrow=False)
        places.append(sorted(float(x) for x in re.findall(r'<circle cx="([\d.]+)"', drawing)))
    assert places[0] == places[1]
    assert len(places[0]) == 6
    assert abs(places[0][-1] - 100 - 1100 / 1.04) < 0.1
    assert abs((places[0][0] - 100) / (places[0][-1] - 100) - 1 / 7.5) < 1e-3


def test_the_report_shows_them_for_every_axis(tmp_path: Path) -> None:
    experiment = made(tmp_path, segments_per_ack=SEGMENTS)
    page = report(experiment.path, prometheus="off").read_text(encoding="utf-8")
    assert page.count("What the receivers did") == 2  # rows of algorithms and of receivers
    assert page.count(whole(said(experiment))) == 1
    assert "segments an ACK from 1 (quick-ack) to 7.5 (stretch-ack, at cubic)" in page
