# SPDX-License-Identifier: Apache-2.0
"""``howdah run``: run every cell of a profile, judge the runs, and report them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field
from rich.console import Console

from howdah.cluster.opened import executor_at
from howdah.cluster.place import Place
from howdah.command import plan as plan_command
from howdah.command.answer import answer, print_event
from howdah.command.claims import print_claims
from howdah.command.common import (
    MAKING,
    RESULTS,
    add_cluster_options,
    add_jobs_option,
    add_json_option,
    add_profile_options,
    add_runs_option,
    check_jobs,
    cores,
    load_plans,
    workers_of,
)
from howdah.command.interruption import RUNS_KEPT
from howdah.command.parser import section
from howdah.command.shape import CommandAnswer
from howdah.command.twin import Twin, compare_with_recording
from howdah.errors import ExitCode, UsageError
from howdah.foreign import escape_controls
from howdah.layout import folded, terminal_width
from howdah.number import counted
from howdah.plan.caution import plan_cautions
from howdah.record.claims import ClaimRow, ClaimsFile, OpenRow
from howdah.record.directory import RunDirectory
from howdah.record.index import ExperimentIndex, read_index
from howdah.record.verdict import read_verdict
from howdah.work.batch import Events, Listener, Outcome
from howdah.work.display import Display
from howdah.work.experiment import ExperimentDirectory, set_latest
from howdah.work.planned import Prepared
from howdah.work.prepared import hold, make, prepare
from howdah.work.results import judged_claims

if TYPE_CHECKING:
    from howdah.record.result import Experiment

INDEXED_RUNS = 100  # the fewest runs whose rows are made as they end; fewer are read within a second


class _IndexJudged(ExperimentIndex):
    name: str
    claims: list[ClaimRow]
    unknown: OpenRow | None = Field(description="as in claims.json (docs/data-format.md)")


class RunMade(_IndexJudged, CommandAnswer, shape="run"):
    """The content of experiment.json, and the claims."""

    experiment: str
    report: str | None
    found: list[str] = Field(description="the findings, in the sentences at the top of the page")
    twin: Twin | None = Field(description="of a twin (docs/explain.md): its runs compared with the recording")


def arguments(parser: argparse.ArgumentParser) -> None:
    add_profile_options(parser)
    add_runs_option(parser)
    add_json_option(parser)
    add_jobs_option(parser)
    add_cluster_options(parser)
    section(parser, MAKING).add_argument("--again", action="store_true", help="re-run finished runs")
    section(parser, MAKING).add_argument(
        "--dry-run", action="store_true", help="print the plan and do nothing, as 'howdah plan' does"
    )
    section(parser, RESULTS).add_argument(
        "--json-events", action="store_true", help="print each event as a line of JSON, when it happens"
    )
    section(parser, RESULTS).add_argument("--no-report", action="store_true", help="make no HTML report")
    parser.set_defaults(interrupted=RUNS_KEPT, all=False)


def execute(options: argparse.Namespace) -> int:
    if options.dry_run:
        return plan_command.execute(options)
    check_jobs(options)
    if options.json and options.json_events:
        raise UsageError("--json prints one object at the end, --json-events a line per event: give only one of them")
    place = workers_of(options)
    profile, plans = load_plans(options)
    with ExitStack() as locks, _display(options) as display:
        experiment = hold(options.runs / profile.name, locks)
        prepared = prepare(experiment, profile, plans, display.build)
        if options.json_events:
            print_event({"event": "begin", "experiment": str(experiment.path), "runs": len(plans)})
        display.say(f"{profile.name}: {counted(len(plans), 'run')}, engine {', '.join(prepared.engines)}")
        for sentence in plan_cautions(list(plans.chosen.values())):
            display.say(f"! {sentence}")
        outcomes = _make_runs(prepared, options, place, display)
        index = read_index(experiment.index)
        claims = judged_claims(experiment.path)
        from howdah.report.results import read_shown  # loads pyarrow

        made = read_shown(experiment.path)
        page = None
        if not options.no_report:
            from howdah.report.build import report

            display.build("report", 0, 0)
            page = report(experiment.path, shown=made, tell=display.build)
        overlay = compare_with_recording(experiment.path, made, page=page is not None)
    claims = claims or ClaimsFile(unknown=None, claims=[])
    if options.json_events:
        code = _exit_code(index, claims, outcomes)
        print_event({"event": "end", "exit_code": code, "report": page and str(page)})
        return code
    return _conclude(options, experiment, made, index, claims, outcomes, page, overlay)


def _make_runs(
    prepared: Prepared, options: argparse.Namespace, place: Place, display: Display | Events
) -> list[Outcome]:
    """Make the missing runs and point ``latest`` at the experiment. Raise the error of the first run that has one."""
    workers = options.jobs or (cores() if prepared.parallel else 1)
    try:
        with (
            executor_at(place, display.say, runs=options.runs, again=options.again) as executor,
            _with_rows_made_early(display.batch, len(prepared.cells)) as listen,
        ):
            outcomes = make([prepared], workers, options.again, listen, tell=display.say, executor=executor)
    finally:
        set_latest(options.runs, prepared.experiment)
    for outcome in outcomes:
        if outcome.error is not None:
            raise outcome.error
    return outcomes


@contextmanager
def _display(options: argparse.Namespace) -> Iterator[Display | Events]:
    if options.json_events:
        yield Events(print_event)
        return
    with Display(quiet=options.json) as display:
        yield display


@contextmanager
def _with_rows_made_early(listen: Listener, runs: int) -> Iterator[Listener]:
    """For many runs, prepare the rows of ``howdah.load`` as the runs end."""
    if runs < INDEXED_RUNS:
        yield listen
        return
    from howdah.library.growing import IndexingListener  # loads all of pyarrow

    growing = IndexingListener(listen)
    with growing:
        yield growing


def _conclude(
    options: argparse.Namespace,
    experiment: ExperimentDirectory,
    made: Experiment,
    index: ExperimentIndex,
    claims: ClaimsFile,
    outcomes: list[Outcome],
    page: Path | None,
    overlay: tuple[list[str], Twin | None],
) -> int:
    from howdah.report.ending import ending, results  # loads pyarrow, but nothing that only pages need
    from howdah.report.findings import findings
    from howdah.report.source import TableSource

    shown = results([made], TableSource())
    if options.json:
        made_of = {"experiment": str(experiment.path), "report": page and str(page), "found": findings(shown)}
        answer(RunMade.over(index, **made_of, twin=overlay[1], claims=claims.claims, unknown=claims.unknown))
    else:
        console = Console(highlight=False, soft_wrap=True)
        invalid = {outcome.cell.directory_name for outcome in outcomes if outcome.verdict == "invalid"}
        console.print(escape_controls(ending(shown, terminal_width(), invalid)), markup=False)
        for why, names in _invalid_by_reason(experiment, outcomes).items():
            console.print(escape_controls(f"! {', '.join(names)}:"), markup=False)
            for text in why:
                for line in text.splitlines():
                    lines = folded(line, terminal_width(), "      ", "    ")
                    console.print(escape_controls("\n".join(lines)), markup=False)
        if claims.claims:
            print_claims(console, claims)
        for line in overlay[0]:
            console.print(escape_controls(line), markup=False)
        if page:
            console.print(escape_controls(f"report: {page}"), markup=False)
    return _exit_code(index, claims, outcomes)


def _exit_code(index: ExperimentIndex, claims: ClaimsFile, outcomes: list[Outcome]) -> int:
    statuses = {cell.status for cell in index.cells}
    verdicts = {outcome.verdict for outcome in outcomes}
    if "failed" in statuses:
        return ExitCode.RUN_FAILED
    if "invalid" in verdicts:
        return ExitCode.INVALID
    return ExitCode.DIFFERS if "fail" in {claim.verdict for claim in claims.claims} else 0


def _invalid_by_reason(experiment: ExperimentDirectory, outcomes: list[Outcome]) -> dict[tuple[str, ...], list[str]]:
    """Return why runs are invalid, or failed: the names of the runs by the reasons that they share."""
    found: dict[tuple[str, ...], list[str]] = {}
    for outcome in outcomes:
        if outcome.verdict != "invalid":
            continue
        name = outcome.cell.directory_name
        broken = read_verdict(RunDirectory(experiment.path / name)).broken
        why = tuple(check.message if outcome.failed else f"{check.name}: {check.message}" for check in broken)
        found.setdefault(why, []).append(f"{name} {'failed' if outcome.failed else 'is invalid'}")
    return found
