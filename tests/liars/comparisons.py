# SPDX-License-Identifier: Apache-2.0
"""Lies of comparisons: two engines that do not agree, and claims over runs that do not bear them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from howdah.plan.plan import Plan
from howdah.validate.comparison import Side, Value, agree, compare
from tests.claim_factory import Row, judged, make_runs, row, write_profile
from tests.liars.bench import Bench
from tests.liars.liar import Catch, ToldLiar

Told = Callable[[Bench, Path], list[Catch]]

MEASURES: dict[str, Value] = {
    "exit_cause": "ack-train",
    "exit_cwnd_packets": 400.0,
    "retransmitted_packets": 10.0,
    "goodput_bits_per_second": 40e6,
}
CLAIM = "{id: it, says: so, value: {metric: utilisation, at: {algorithm: cubic}}, expect: {above: 10 %}}"


def _side(engine: str, **changed: Value) -> Side:
    measures = {("flow1", metric): value for metric, value in {**MEASURES, **changed}.items()}
    return Side(engine, "pass", "6.12.117", 3.0, measures)


def _engines(other: Side) -> Told:
    def told(_bench: Bench, _path: Path) -> list[Catch]:
        point = compare("cubic-r0", "cubic", "a path", _side("uml"), other)
        if agree([point]):
            return []
        what = [*point.problems, *(f"{pair.metric} differs" for pair in point.measures if not pair.agrees)]
        return [Catch("state", "disagreement", "; ".join(what) or "nothing was compared")]

    return told


def _nothing_compared(_bench: Bench, _path: Path) -> list[Catch]:
    empty = replace(_side("uml"), measures={})
    if agree([compare("cubic-r0", "cubic", "a path", empty, replace(empty, engine="vm"))]) or agree([]):
        return []
    return [Catch("state", "disagreement", "nothing was compared")]


def _claim(values: list[float | None], verdicts: dict[int, str] | None = None) -> Told:
    """A claim that CUBIC uses more than 10 % of the path, over runs with these values."""

    def told(_bench: Bench, path: Path) -> list[Catch]:
        path.mkdir()

        def rows(plan: Plan) -> list[Row]:
            return [row("utilisation", values[plan.repetition], "ratio")]

        def verdict(plan: Plan) -> str:
            return (verdicts or {}).get(plan.repetition, "pass")

        profile = write_profile(path, f"  - {CLAIM}\n", repetitions=len(values))
        found: dict[str, Any] = judged(make_runs(path, profile, rows, verdict=verdict))["it"]
        return [] if found["verdict"] == "pass" else [Catch("state", found["verdict"], str(found["why"]))]

    return told


_AGREE, _HOLDS = "two engines that agree", "a claim that holds"

HONEST_COMPARISONS: dict[str, Told] = {_AGREE: _engines(_side("vm")), _HOLDS: _claim([0.8, 0.8, 0.8, 0.8])}


def _disagreement(name: str, lie: str, words: str, told: Told) -> ToldLiar:
    return ToldLiar(name, "comparison", lie, Catch("state", "disagreement", words), _AGREE, told)


COMPARISONS = [
    _disagreement(
        "engines-that-differ",
        "Slow start ends at a window that is a quarter larger on another engine.",
        "exit_cwnd_packets differs",
        _engines(_side("vm", exit_cwnd_packets=500.0)),
    ),
    _disagreement(
        "engine-with-an-invalid-run",
        "The run of another engine is invalid, and its measures are equal.",
        "invalid: the rate is too low",
        _engines(replace(_side("vm"), verdict="invalid", problem="invalid: the rate is too low")),
    ),
    _disagreement(
        "engines-with-different-kernels",
        "The other engine ran another kernel.",
        "uml ran Linux 6.12.117, vm 6.1.192",
        _engines(replace(_side("vm"), kernel="6.1.192")),
    ),
    _disagreement(
        "nothing-compared",
        "Neither engine has a measure, so that none differs.",
        "nothing was compared",
        _nothing_compared,
    ),
    ToldLiar(
        "claim-without-a-value",
        "comparison",
        "A claim holds in all runs that have the measure; one valid run has none.",
        Catch("state", "fail", "1 of 4 runs have none"),
        _HOLDS,
        _claim([0.8, 0.8, 0.8, None]),
    ),
    ToldLiar(
        "claim-over-invalid-runs",
        "comparison",
        "A claim holds in the one run of four that is valid.",
        Catch("state", "invalid", "3 of 4 runs left out: 3 invalid"),
        _HOLDS,
        _claim([0.8, 0.8, 0.8, 0.8], {0: "invalid", 1: "invalid", 2: "invalid"}),
    ),
    ToldLiar(
        "claim-over-runs-that-are-not-there",
        "comparison",
        "A claim holds in the one run of four that was made.",
        Catch("state", "invalid", "3 of 4 runs left out: 3 not made"),
        _HOLDS,
        _claim([0.8, 0.8, 0.8, 0.8], {0: "pending", 1: "pending", 2: "pending"}),
    ),
]
