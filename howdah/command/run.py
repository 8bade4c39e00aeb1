# SPDX-License-Identifier: Apache-2.0
"""``howdah run``: run every cell of a profile, judge it, and report it."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from howdah.claim.claims import judge_claims
from howdah.claim.result import CLAIMS_NAME
from howdah.command import plan as plan_command
from howdah.command.claims import CLAIM_FAILED, print_claims
from howdah.command.common import (
    add_jobs_option,
    add_json_option,
    add_profile_options,
    add_runs_option,
    check_jobs,
    cores,
    load_plans,
)
from howdah.command.progress import Display
from howdah.engine.engine import engine as find_engine
from howdah.publish.experiment import load_experiment
from howdah.report import report
from howdah.report.build import source_for
from howdah.report.compare import results, text_table
from howdah.run.batch import Job, Outcome, run_cells
from howdah.run.experiment import Cell, Experiment, set_latest
from howdah.run.provenance import run_key
from howdah.run.retention import keeps_data

FAILED, INVALID = 4, 5


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("run", help="run a profile and report it")
    add_profile_options(parser)
    add_runs_option(parser)
    add_json_option(parser)
    add_jobs_option(parser)
    parser.add_argument("--again", action="store_true", help="make runs again that are already there")
    parser.add_argument("--dry-run", action="store_true", help="print the plan and do nothing, as 'howdah plan' does")
    parser.add_argument("--no-report", action="store_true", help="leave the HTML report out")
    parser.set_defaults(execute=execute, all=False)


def execute(options: argparse.Namespace) -> int:
    if options.dry_run:
        return plan_command.execute(options)
    check_jobs(options)
    profile, plans = load_plans(options)
    engine = find_engine(plans[0].engine)
    experiment = Experiment(options.runs / profile.name)
    experiment.create()
    with experiment.locked(), Display(quiet=options.json) as display:
        experiment.sweep_partial()
        identity = engine.prepare(plans, display.build)
        cells = [
            Cell(plan, run_key(plan.to_json(), identity), keeps_data(profile.keep, plan.repetition)) for plan in plans
        ]
        (experiment.path / "profile.yaml").write_text(profile.text, encoding="utf-8")
        (experiment.path / CLAIMS_NAME).unlink(missing_ok=True)  # of earlier runs; an interrupted one has none
        display.say(f"{profile.name}: {len(cells)} runs, engine {engine.name}")
        workers = options.jobs or (cores() if engine.parallel else 1)
        try:
            jobs = [Job(experiment, cell) for cell in cells]
            outcomes = run_cells(jobs, workers, options.again, display.batch)
        finally:
            about = (profile.text, str(options.profile), profile.description)
            index = experiment.write_index(*about, cells, quick=profile.is_quick, axes=profile.axes)
            set_latest(options.runs, experiment)
        errors = [outcome.error for outcome in outcomes if outcome.error is not None]
        if errors:
            raise errors[0]
        claims = judge_claims(experiment.path)
        page = None
        if not options.no_report:
            display.build("report", 0, 0)
            page = report(experiment.path)
    return _conclude(options, experiment, {**index, "claims": claims["claims"] if claims else []}, outcomes, page)


def _conclude(
    options: argparse.Namespace,
    experiment: Experiment,
    index: dict[str, Any],
    outcomes: list[Outcome],
    page: Path | None,
) -> int:
    if options.json:
        sys.stdout.write(json.dumps({"experiment": str(experiment.path), "report": page and str(page), **index}) + "\n")
    else:
        console = Console(highlight=False, soft_wrap=True)
        loaded = [load_experiment(experiment.path)]
        with source_for(loaded, "off") as (source, _):
            console.print(text_table(results(loaded, source)), markup=False)
        for outcome in outcomes:
            _explain(console, experiment, outcome)
        print_claims(console, index["claims"])
        if page:
            console.print(f"report: {page}", markup=False)
    statuses = {cell["status"] for cell in index["cells"]}
    verdicts = {outcome.verdict for outcome in outcomes}
    if "failed" in statuses:
        return FAILED
    if "invalid" in verdicts:
        return INVALID
    return CLAIM_FAILED if "fail" in {claim["verdict"] for claim in index["claims"]} else 0


def _explain(console: Console, experiment: Experiment, outcome: Outcome) -> None:
    """Say why a run is invalid, where the person looks first."""
    if outcome.verdict != "invalid":
        return
    verdict = json.loads((experiment.path / outcome.cell.directory_name / "verdict.json").read_text())
    console.print(f"! {outcome.cell.directory_name} is invalid:", markup=False)
    for check in verdict["checks"]:
        if check["ok"] is False:
            console.print(f"    {check['name']}: {check['message']}", markup=False)
