# SPDX-License-Identifier: Apache-2.0
"""An experiment whose metrics are written by hand, for claims to be judged over: no kernel, no tables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from howdah.claim.claims import judge_claims
from howdah.plan.compile import compile_plan
from howdah.plan.plan import Plan
from howdah.profile import load
from howdah.record.directory import write_json
from howdah.record.provenance import analysis_sha256
from howdah.work.experiment import ExperimentDirectory, PlannedRun

HEAD = """\
howdah: 1
name: made
path: {{rate: 10 Mbit/s, rtt: {rtt}, buffer: 1 bdp}}
algorithm: [cubic, reno]
duration: 10 s
repetitions: {repetitions}
"""

Row = dict[str, Any]
Measured = Callable[[Plan], Iterable[Row]]
Verdict = Callable[[Plan], str]

RTTS = "[20 ms, 40 ms]"
CONTROLS = "controls:\n  without: {what: off, set: {host.sysctls.net.ipv4.tcp_recovery: 0}, at: {path.rtt: 40 ms}}\n"
VALUE = "value: {metric: utilisation, at: {algorithm: cubic}}"
GOOD = f"  - {{id: it, says: so, {VALUE}, expect: {{above: 50 %}}, each: path.rtt}}\n"


def row(metric: str, value: float | str | None, unit: str = "", flow: int | None = None, **more: Any) -> Row:
    """One row of metrics.json, without what all rows of a run share."""
    found = {"flow": flow, "metric": metric, "value": value, "unit": unit, **more}
    return found if value is not None else {"why": "there was none", **found}


def write_profile(
    directory: Path, claims: str, *, rtt: str = "40 ms", repetitions: int = 3, extra: str = "", head: str | None = None
) -> Path:
    """A profile of two algorithms on a short path; ``claims`` are the YAML items of its claims."""
    file = directory / "made.yaml"
    text = (head or HEAD).format(rtt=rtt, repetitions=repetitions) + extra
    file.write_text(f"{text}claims:\n{claims}" if claims else text, encoding="utf-8")
    return file


def make_runs(
    directory: Path,
    profile: Path,
    measured: Measured,
    *,
    quick: bool = False,
    unknowns: bool = False,
    overrides: Iterable[str] = (),
    verdict: Verdict = lambda _plan: "pass",
) -> Path:
    """The experiment of a profile with these metrics in every run; a run whose verdict is ``pending`` is not there."""
    loaded = load(profile, overrides, quick=quick, unknowns=unknowns)
    experiment = ExperimentDirectory(directory / "runs" / loaded.name)
    experiment.create()
    cells = []
    for each in loaded.cells():
        plan = compile_plan(each)
        text = plan.to_json()
        cell = PlannedRun(plan, hashlib.sha256(text.encode()).hexdigest())
        cells.append(cell)
        if verdict(plan) != "pending":
            _make_run(experiment.path / cell.directory_name, plan, text, list(measured(plan)), verdict(plan))
    (experiment.path / "profile.yaml").write_text(loaded.text, encoding="utf-8")
    rows = experiment.indexed(cells)
    experiment.write_index(loaded.text, str(profile), "", rows, quick=loaded.is_quick, axes=loaded.axes)
    return experiment.path


def _make_run(path: Path, plan: Plan, text: str, rows: list[Row], verdict: str) -> None:
    path.mkdir(parents=True)
    common = {"run": plan.run, "algorithm": plan.algorithm, "repetition": plan.repetition, "axes": plan.axes}
    (path / "plan.json").write_text(text, encoding="utf-8")
    status = "failed" if verdict == "failed" else "finished"
    write_json(path / "run.json", {"format": 1, "status": status, "analysis_sha256": analysis_sha256()})
    write_json(
        path / "verdict.json", {"format": 1, "verdict": "invalid" if verdict == "failed" else verdict, "checks": []}
    )
    write_json(path / "metrics.json", {"format": 1, "rows": [{**common, **each} for each in rows], "cross_checks": []})


def judged(experiment: Path) -> dict[str, Any]:
    """The claims of an experiment by their ids, as claims.json has them."""
    assert judge_claims(experiment) is not None
    written = json.loads((experiment / "claims.json").read_text(encoding="utf-8"))
    return {claim["id"]: claim for claim in written["claims"]}
