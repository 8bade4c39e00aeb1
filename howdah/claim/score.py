# SPDX-License-Identifier: Apache-2.0
"""Scores of runs from 0 to 100, after transperf, with the thresholds of ``reports/scores.yaml``.

A run's score is that of its worst flow. The score of a variant (an algorithm at a point of a sweep) is the median over
the repetitions that count.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final, Literal, get_args

import numpy as np
from pydantic import Field, ValidationError

from howdah.errors import ProfileError
from howdah.measure.throughput import jain_index
from howdah.place import REPORTS
from howdah.plan.plan import Flow, Plan
from howdah.profile.field import Section
from howdah.profile.source import parse_yaml, read_text
from howdah.record.model import FilePart
from howdah.record.result import Experiment, Run
from howdah.record.sample import Series, sample_run

THRESHOLDS = REPORTS / "scores.yaml"
PASS: Final = "pass"
FAIL: Final = "fail"
UNKNOWN: Final = "unknown"
ScoreVerdict = Literal["pass", "fail", "unknown"]
Name = Literal["tput", "rtt_med", "lock_on_bw", "loss_avoid", "fairness", "convergence_fairness"]
_SHALLOW_PACKETS, _SHALLOW_BDP = 3, 0.1
_ROUNDING = 1e-9  # tolerance for rounding, so that 100 passes a threshold of 100
_BUCKET_MS = 1000


class ThresholdSection(Section):
    """Scores of at least ``least`` pass. ``source`` is its origin; ``flows`` and ``buffer`` are conditions."""

    least: Annotated[float, Field(strict=False, ge=0, le=100)]
    source: str = Field(min_length=1)
    flows: Literal["several"] | None = None
    buffer: Literal["shallow"] | None = None

    def holds(self, plan: Plan) -> bool:
        if self.flows == "several" and len(measured_flows(plan)) < 2:
            return False
        return self.buffer != "shallow" or is_shallow(plan)


class ScoreSection(Section):
    """A score and its thresholds. The last threshold whose conditions hold applies."""

    score: Name
    meaning: str
    thresholds: list[ThresholdSection] = Field(min_length=1)

    def threshold(self, plan: Plan) -> ThresholdSection | None:
        return next((each for each in reversed(self.thresholds) if each.holds(plan)), None)


class ThresholdFile(Section):
    convergence_s: Annotated[float, Field(strict=False, ge=0)]
    scores: list[ScoreSection] = Field(min_length=1)


class Score(FilePart):
    """A score of a variant. ``values`` are the scores of its repetitions; ``why`` is the reason for no verdict."""

    experiment: str
    kernel: str
    algorithm: str
    point: str
    score: str
    value: float | None
    values: list[float]
    least: float | None
    source: str
    verdict: ScoreVerdict
    why: str


def read_thresholds(file: Path = THRESHOLDS) -> ThresholdFile:
    """Read a file of thresholds. Raises ProfileError, which names file and line."""
    data, places = parse_yaml(read_text(file, "file of thresholds"), str(file))
    try:
        return ThresholdFile.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = tuple(first["loc"])
        where = next((places[path[:end]] for end in range(len(path), 0, -1) if path[:end] in places), str(file))
        said = filter(None, (".".join(map(str, path)), first["msg"].lower()))
        raise ProfileError(": ".join(said), where=where) from None


def measured_flows(plan: Plan) -> list[Flow]:
    """The flows that the experiment is about: neither background nor part of a group."""
    return [flow for flow in plan.flows if flow.role == "measured" and flow.group is None]


def is_shallow(plan: Plan) -> bool:
    path = plan.path
    return path.buffer_bytes < max(_SHALLOW_PACKETS * path.frame_bytes, _SHALLOW_BDP * path.bdp_bytes)


def scores_of(experiment: Experiment, thresholds: ThresholdFile) -> list[Score]:
    """Every score of every variant, in the order of the experiment and of the file."""
    variants: dict[tuple[str, str, str], list[Run]] = {}
    for run in experiment.runs:
        if run.plan is not None and "control" not in run.axes:
            variants.setdefault((run.kernel, run.algorithm, run.point), []).append(run)
    found = []
    for (kernel, algorithm, point), runs in variants.items():
        counting = [run for run in runs if run.counts]
        of_runs = [run_scores(run, thresholds.convergence_s) for run in counting]
        for section in thresholds.scores:
            values = [value for each in of_runs if (value := each.get(section.score)) is not None]
            plan = runs[0].plan
            assert plan is not None
            threshold = section.threshold(plan)
            value = statistics.median(values) if values else None
            least = threshold.least if threshold is not None else None
            verdict, why = _judged(value, least, len(runs), len(counting))
            found.append(
                Score(
                    experiment=experiment.name,
                    kernel=kernel,
                    algorithm=algorithm,
                    point=point,
                    score=section.score,
                    value=value,
                    values=values,
                    least=least,
                    source=threshold.source if threshold is not None else "",
                    verdict=verdict,
                    why=why,
                )
            )
    return found


def _judged(value: float | None, least: float | None, runs: int, counting: int) -> tuple[ScoreVerdict, str]:
    if value is None:
        return UNKNOWN, f"none of {runs} runs counts" if not counting else "the runs have no data for it"
    if least is None:
        return UNKNOWN, "it has no threshold here"
    return (PASS if value >= least - _ROUNDING else FAIL), ""


def run_scores(run: Run, convergence_s: float) -> dict[str, float]:
    """The scores for which the run has data, by name."""
    plan = run.plan
    if plan is None:
        return {}
    flows = measured_flows(plan)
    series: dict[str, dict[int, Series]] = {}
    for each in sample_run(run):
        if each.metric in ("howdah_flow_srtt_seconds", "howdah_flow_acked_bytes_total"):
            series.setdefault(each.metric, {})[int(each.label("flow"))] = each
    acked = series.get("howdah_flow_acked_bytes_total", {})
    rtts = series.get("howdah_flow_srtt_seconds", {})
    found: dict[str, float | None] = {
        "tput": _scaled(_metric(run, "utilisation", None)),
        "rtt_med": _worst(flows, lambda flow: _rtt_score(run, flow, rtts.get(flow.id))),
        "lock_on_bw": _worst(
            flows, lambda flow: _scaled(_metric(run, "exit_delivery_share", flow.id), 100.0 * len(flows))
        ),
        "loss_avoid": _worst(flows, lambda flow: _loss_score(run, plan, flow, acked.get(flow.id))),
    }
    jain = list(_fairness(flows, acked, convergence_s))
    if jain:
        found["fairness"] = 100 * statistics.fmean(jain)
        found["convergence_fairness"] = 100 * min(jain)
    assert found.keys() <= set(get_args(Name))
    return {name: value for name, value in found.items() if value is not None}


def _metric(run: Run, name: str, flow: int | None) -> float | None:
    for row in run.metrics:
        if row.metric == name and row.flow == flow and not row.group:
            return None if row.number is None else float(row.number)
    return None


def _scaled(value: float | None, factor: float = 100.0) -> float | None:
    return None if value is None else factor * value


def _worst(flows: Iterable[Flow], score: Callable[[Flow], float | None]) -> float | None:
    """The lowest score of all flows; None if any flow has none, because that one may be the worst."""
    values = [score(flow) for flow in flows]
    known = [value for value in values if value is not None]
    return min(known) if known and len(known) == len(values) else None


def _rtt_score(run: Run, flow: Flow, series: Series | None) -> float | None:
    if series is None or not len(series.value):
        return None
    least_us = _metric(run, "min_rtt_us", flow.id)
    least_s = float(series.value.min()) if least_us is None else least_us / 1e6
    return min(100.0, 100 * least_s / float(np.median(series.value)))


def _loss_score(run: Run, plan: Plan, flow: Flow, series: Series | None) -> float | None:
    again = _metric(run, "retransmitted_packets", flow.id)
    if again is None or series is None or not len(series.value):
        return None
    delivered = float(series.value[-1]) / plan.path.mss_bytes
    return 100 * delivered / (delivered + again) if delivered else 0.0


def _fairness(flows: list[Flow], acked: dict[int, Series], convergence_s: float) -> Iterator[float]:
    """Jain's index in each second in which all flows are active, beginning ``convergence_s`` after the last start."""
    if not flows or any(flow.id not in acked for flow in flows):
        return
    begin = max(flow.start_us for flow in flows) // 1000 + round(convergence_s * 1000)
    end = min(min(flow.stop_us // 1000, int(acked[flow.id].time_ms[-1])) for flow in flows)
    edges = np.arange(begin, end + 1, _BUCKET_MS)
    if len(edges) < 2:
        return
    got = [np.diff(np.interp(edges, acked[flow.id].time_ms, acked[flow.id].value)) for flow in flows]
    for rates in np.array(got).T:
        index = jain_index([float(rate) for rate in rates]) if len(flows) > 1 else 1.0
        if index is not None:
            yield index
