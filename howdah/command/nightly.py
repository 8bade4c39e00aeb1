# SPDX-License-Identifier: Apache-2.0
"""``howdah nightly``: run a suite, compare every measure with the baseline, say what has become worse."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from howdah.command.common import PROFILES, add_jobs_option, add_json_option, add_runs_option, check_jobs, cores
from howdah.command.progress import Display
from howdah.errors import HowdahError, explain
from howdah.nightly.baseline import Baseline
from howdah.nightly.comparison import CellResult, compare_sheets, gone_cells
from howdah.nightly.junit import junit
from howdah.nightly.night import Night
from howdah.nightly.page import write_page
from howdah.nightly.series import families
from howdah.nightly.sheet import Sheet
from howdah.nightly.suite import Series, Suite, chosen, read_suite, slugs_of
from howdah.nightly.work import Wanted, make
from howdah.nightly.work import explain as explain_experiment
from howdah.publish.nights import SAMPLES, SUFFIX
from howdah.publish.openmetrics import openmetrics
from howdah.run.directory import write_json
from howdah.run.provenance import now

REGRESSION = 6


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("nightly", help="run a suite and compare every measure with the stored baseline")
    parser.add_argument(
        "suite", nargs="?", default="nightly", help="a suite file, or the name of one in profiles/suites (nightly)"
    )
    parser.add_argument("--accept", action="store_true", help="store the results as the baseline")
    parser.add_argument("--baseline", type=Path, metavar="DIR", help="where it lies (default: baselines/SUITE)")
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="an item, an experiment or a cell (EXPERIMENT/CELL); may be repeated",
    )
    parser.add_argument("--again", action="store_true", help="make runs again that are already there")
    add_jobs_option(parser)
    parser.add_argument("--list", action="store_true", help="list the cells and do nothing")
    add_runs_option(parser)
    add_json_option(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    check_jobs(options)
    suite = read_suite(_find(options.suite))
    wanted = chosen(suite, options.only)
    if options.list:
        _list(suite, wanted)
        return 0
    begun, clock = now(), time.monotonic()
    night = Night(suite, begun, baseline=options.baseline or Path("baselines") / suite.name, runs=options.runs)
    baseline = Baseline(night.baseline)
    with Display(quiet=options.json) as display:
        workers = options.jobs or cores()
        made = make(suite.series, wanted, options.runs, workers, options.again, display)
        night.runs_made, night.runs_found, night.problems = made.made, made.found, made.problems
        if options.accept:
            return _accept(baseline, made.sheets, wanted, made.problems, options)
        for one in suite.series:
            if one.name in wanted:
                night.cells += _compare(baseline, made.sheets[one.name], one, wanted[one.name])
        night.problems += _forgotten(baseline, suite, wanted)
        night.settle()
        for name in dict.fromkeys(cell.experiment for cell in night.failing if cell.problem is None):
            display.build(f"report of {name}", 0, 0)
            problem = explain_experiment(options.runs / name)
            night.problems += [problem] if problem else []
    night.ended, night.wall_s = now(), round(time.monotonic() - clock, 3)
    place = _write(night)
    if options.json:
        sys.stdout.write(json.dumps({"night": str(place), **night.to_json()}) + "\n")
    else:
        sys.stdout.write(f"{night.text()}page: {place / 'index.html'}\n")
    return REGRESSION if night.failing else 0


def _find(name: str) -> Path:
    """A path as given, or a shipped suite by its name without ``.yaml``."""
    given = Path(name)
    if given.exists() or given.suffix in (".yaml", ".yml") or "/" in name:
        return given
    return PROFILES / "suites" / f"{name}.yaml"


def _compare(baseline: Baseline, sheet: Sheet, series: Series, wanted: set[str] | None) -> list[CellResult]:
    before = baseline.read(series.name)
    slugs = [slug for slug in slugs_of(series) if wanted is None or slug in wanted]
    found = compare_sheets(before, sheet, list(dict.fromkeys(slugs)))
    if before is not None and wanted is None:
        found += gone_cells(before, slugs_of(series))
    return found


def _forgotten(baseline: Baseline, suite: Suite, wanted: Wanted) -> list[str]:
    """Experiments that the baseline has and the suite has not: a suite that has shrunk should not look green."""
    if any(slugs is not None for slugs in wanted.values()) or len(wanted) < len(suite.series):
        return []
    known = {one.name for one in suite.series}
    return [
        f"the baseline has {name}, which the suite does not ask for any more"
        for name in baseline.experiments()
        if name not in known
    ]


def _accept(
    baseline: Baseline, sheets: dict[str, Sheet], wanted: Wanted, problems: list[str], options: argparse.Namespace
) -> int:
    """Store the sheets. A run that does not count is stored as such: it can regress no further, and this says so."""
    uncounted = 0
    for name, sheet in sheets.items():
        uncounted += sum(not each.counts for cell in sheet.cells.values() for each in cell.repetitions.values())
        baseline.accept(sheet, part=wanted[name] is not None)
    unbuilt = [name for name, sheet in sheets.items() if sheet.problem is not None]
    if options.json:
        answer = {"baseline": str(baseline.directory), "experiments": sorted(sheets), "not_built": unbuilt}
        sys.stdout.write(json.dumps({**answer, "runs_that_do_not_count": uncounted}) + "\n")
        return 0
    for name in unbuilt:
        sys.stdout.write(f"? {name}  cannot be run: {sheets[name].problem}\n")
    for problem in problems:
        sys.stdout.write(f"! {problem}\n")
    if uncounted:
        sys.stdout.write(f"! {uncounted} runs do not count: the baseline is without them\n")
    sys.stdout.write(f"baseline of {len(sheets)} experiments: {baseline.directory}\n")
    return 0


def _write(night: Night) -> Path:
    """The night's directory, whole or not there, and a link ``latest`` to it."""
    root = night.runs / f"{night.suite.name}{SUFFIX}"
    name = datetime.now(UTC).strftime("%Y%m%dT%H%M%S.%f")[:-3]
    place, partial = root / name, root / f".partial-{name}"
    try:
        partial.mkdir(parents=True)
        write_json(partial / "night.json", night.to_json())
        (partial / "junit.xml").write_text(junit(night), encoding="utf-8")
        with (partial / SAMPLES).open("w", encoding="utf-8") as file:
            file.writelines(openmetrics(families(night)))
        write_page(night, partial / "index.html")
        partial.rename(place)
        link = root / f".latest-{os.getpid()}"
        link.unlink(missing_ok=True)
        link.symlink_to(name)
        link.replace(root / "latest")
    except OSError as error:
        raise HowdahError(f"the night cannot be written: {explain(error)}", where=str(root)) from error
    return place


def _list(suite: Suite, wanted: Wanted) -> None:
    for one in suite.series:
        if one.name not in wanted:
            continue
        slugs = wanted[one.name]
        for slug in dict.fromkeys(slugs_of(one)):
            if slugs is None or slug in slugs:
                sys.stdout.write(f"{one.name}/{slug}  {one.profile.repetitions} repetitions\n")
