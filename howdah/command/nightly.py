# SPDX-License-Identifier: Apache-2.0
"""``howdah nightly``: run a suite, compare every measure with the baseline, and report regressions."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from howdah.cluster.opened import executor_at
from howdah.command.answer import answer
from howdah.command.common import (
    add_cluster_options,
    add_jobs_option,
    add_json_option,
    add_runs_option,
    check_jobs,
    cores,
    workers_of,
)
from howdah.command.interruption import RUNS_KEPT
from howdah.command.shape import CommandAnswer
from howdah.default import DEFAULT_KERNEL
from howdah.errors import ExitCode, HowdahError, UsageError, nearest
from howdah.extension import extensions
from howdah.hooks import NameProfiles
from howdah.layout import fitted, terminal_width, write_stdout
from howdah.nightly.change import CellResult
from howdah.nightly.commits import CommitSpan, Range, check_engine, compare_commits
from howdah.nightly.comparison import compare_claims, compare_sheets, gone_cells, gone_claims
from howdah.nightly.night import Night, NightFile
from howdah.nightly.output import write_copies, write_night
from howdah.nightly.power import Power, check_provable, power_of
from howdah.nightly.sheet import Baseline, NightSheet
from howdah.nightly.suite import (
    Suite,
    SuiteExperiment,
    Wanted,
    chosen,
    chosen_items,
    read_suite,
    slugs_of,
    suite_of_claims,
)
from howdah.nightly.work import explain as explain_experiment
from howdah.nightly.work import make
from howdah.number import counted
from howdah.place import PROFILES
from howdah.record.model import FilePart
from howdah.record.provenance import now
from howdah.work.catalogue import find_profile
from howdah.work.display import Display

_SUITE = "nightly"


class ListedCell(FilePart):
    id: str
    experiment: str
    cell: str
    repetitions: int


class NightlyList(CommandAnswer, shape="nightly-list"):
    suite: str
    cells: list[ListedCell]


class NightlyAccept(CommandAnswer, shape="nightly-accept"):
    baseline: str
    experiments: list[str]
    not_built: list[str]
    runs_that_do_not_count: int


class NightlyPower(Power, CommandAnswer, shape="nightly-power"):
    pass


class Nightly(NightFile, CommandAnswer, shape="nightly"):
    night: str


def arguments(parser: argparse.ArgumentParser) -> None:
    _add_suite_arguments(parser)
    _add_commit_options(parser)
    parser.add_argument("--ktap", type=Path, metavar="FILE", help="also write the night as KTAP; - is standard output")
    parser.add_argument(
        "--mail", type=Path, metavar="FILE", help="also write the night as a mail; - is standard output"
    )
    _add_baseline_options(parser)
    add_jobs_option(parser)
    add_cluster_options(parser)
    parser.add_argument("--list", action="store_true", help="list the cells and do nothing")
    add_runs_option(parser)
    add_json_option(parser)
    parser.set_defaults(interrupted=RUNS_KEPT)


def _add_suite_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "suite", nargs="?", default=_SUITE, help="a suite file, or the name of one in profiles/suites (nightly)"
    )
    parser.add_argument(
        "--claims",
        action="append",
        default=[],
        metavar="PROFILE",
        help="in place of a suite: the claims of a profile (atlas/hystart-fig1) or of an atlas entry; may be repeated",
    )
    parser.add_argument(
        "--kernel", action="append", metavar="TREE", help="with --claims: a tree or debian-VERSION; may be repeated"
    )
    parser.add_argument(
        "--quick", action="store_true", help="with --claims: only the subset in the profiles' quick: sections"
    )


def _add_commit_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tree", type=Path, metavar="DIR", help="a kernel tree in git, with --range or --last")
    parser.add_argument(
        "--range", metavar="A..B", help="run the suite on each of these commits of --tree and compare them"
    )
    parser.add_argument(
        "--last", type=_count, metavar="N", help="the same for the last N commits of the current branch"
    )
    parser.add_argument(
        "--against",
        choices=("previous", "start"),
        default="previous",
        help="what a commit is compared with: the one before it (default), or the start of the range",
    )


def _add_baseline_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--accept", action="store_true", help="store the results as the baseline")
    parser.add_argument(
        "--baseline", type=Path, metavar="DIR", help="directory of the baseline (default: baselines/SUITE)"
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="an item, an experiment or a cell (EXPERIMENT/CELL); may be repeated",
    )
    parser.add_argument("--again", action="store_true", help="re-run finished runs")
    parser.add_argument(
        "--allow-unproven",
        action="store_true",
        help="do not fail on changes that have too few repetitions to be proven",
    )
    parser.add_argument("--require-baseline", action="store_true", help="fail cells that have no baseline")
    parser.add_argument(
        "--power", action="store_true", help="print which planted regressions the suite finds, and run nothing"
    )


def execute(options: argparse.Namespace) -> int:
    check_jobs(options)
    place = workers_of(options)
    suite = _suite(options)
    if options.range is not None or options.last is not None:
        return _run_range(suite, options)
    if options.tree is not None:
        raise UsageError("--tree needs a range of its commits", hint="Name it with --range A..B, or --last N.")
    wanted = chosen(suite, options.only)
    if options.list:
        _list(suite, wanted, as_json=options.json)
        return 0
    directory = options.baseline or Path("baselines") / suite.name
    if options.power:
        return _power(Baseline(directory), suite, wanted, options)
    check_provable(suite, wanted)
    begun, clock = now(), time.monotonic()
    night = Night(
        *(suite, begun),
        baseline=directory,
        runs=options.runs,
        allow_unproven=options.allow_unproven or suite.allow_unproven,
        require_baseline=options.require_baseline,
    )
    baseline = Baseline(night.baseline)
    with Display(quiet=options.json) as display:
        workers = options.jobs or cores()
        with executor_at(place, display.say, runs=options.runs, again=options.again) as executor:
            made = make(suite.series, wanted, options.runs, workers, options.again, display, executor)
        night.runs_made, night.runs_found, night.problems = made.made, made.found, made.problems
        if options.accept:
            return _accept(baseline, made.sheets, wanted, made.problems, options)
        for one in suite.series:
            if one.name in wanted:
                night.cells += _compare(baseline, made.sheets[one.name], one, wanted[one.name])
        night.problems += _missing_from_suite(baseline, suite, wanted)
        night.settle()
        _explain(night, display)
    night.ended, night.wall_s = now(), round(time.monotonic() - clock, 3)
    return _conclude(night, options)


def _explain(night: Night, display: Display) -> None:
    """Write a report of each experiment with a failing cell. A commit that shares another's kernel has no runs of its
    own."""
    for name in dict.fromkeys(
        cell.experiment for cell in night.failing if cell.problem is None and cell.state not in ("new", "gone")
    ):
        if not (night.runs / name).is_dir() and night.span is not None:
            continue
        display.build(f"report of {name}", 0, 0)
        problem = explain_experiment(night.runs / name)
        night.problems += [problem] if problem else []


def _conclude(night: Night, options: argparse.Namespace) -> int:
    place = write_night(night)
    write_copies(night, options.ktap, options.mail)
    if options.json:
        answer(Nightly.over(night.file(), night=str(place)))
    else:
        commits = night.span.text() if isinstance(night.span, CommitSpan) else ""
        write_stdout(fitted(f"{night.text()}{commits}page: {place / 'index.html'}\n", whole="again: "))
    if night.lacks_only_baselines:
        return ExitCode.NO_BASELINE
    return ExitCode.DIFFERS if night.failing else 0


def _run_range(suite: Suite, options: argparse.Namespace) -> int:
    """Compare every commit of a range with the one before it, or with the start of the range."""
    check_engine(suite)
    commits = Range(options.tree)
    span = commits.span(options.range, options.last, options.against)
    wanted = chosen_items(suite, options.only)
    if options.list:
        write_stdout(fitted("".join(f"{each.label}\n" for each in [span.start, *span.commits])))
        return 0
    by_item = {one.item: one for one in suite.series}
    check_provable(suite, {by_item[item].name: cells for item, cells in wanted.items()}, len(span.commits))
    begun, clock = now(), time.monotonic()
    night = Night(
        *(suite, begun),
        runs=options.runs,
        allow_unproven=options.allow_unproven or suite.allow_unproven,
        require_baseline=options.require_baseline,
        span=span,
    )
    with Display(quiet=options.json) as display:
        with executor_at(workers_of(options), display.say, runs=options.runs, again=options.again) as executor:
            compare_commits(night, span, commits, wanted, options.jobs or cores(), options.again, display, executor)
        night.settle()
        _explain(night, display)
    span.settle(night)
    night.ended, night.wall_s = now(), round(time.monotonic() - clock, 3)
    return _conclude(night, options)


def _suite(options: argparse.Namespace) -> Suite:
    """Read the suite's file, or make a suite of the claims that ``--claims`` names."""
    if not options.claims:
        if options.quick or options.kernel:
            raise UsageError("--quick and --kernel are for --claims", hint="A suite sets them for each item.")
        return read_suite(_find_suite(options.suite))
    if options.suite != _SUITE:
        raise UsageError("give a suite or --claims, not both", hint="An item of a suite may have claims: all.")
    kernels = options.kernel or [DEFAULT_KERNEL]
    kernels = [str(Path(each).resolve()) if Path(each).exists() else each for each in kernels]
    named = [word for name in options.claims for word in ("--claims", name)]
    named += [word for kernel in options.kernel or [] for word in ("--kernel", kernel)]
    named += ["--quick"] if options.quick else []
    return suite_of_claims(_profiles(options.claims), kernels, quick=options.quick, named=tuple(named))


def _profiles(names: list[str]) -> dict[str, Path]:
    """Find the profiles of these names. The name of a set, such as an atlas entry, means several profiles."""
    found: dict[str, Path] = {}
    sets: dict[str, list[str]] = {}
    for each in extensions("sets").values():
        name_profiles: NameProfiles = each.load()
        sets |= each.guarded(name_profiles)
    for name in names:
        for profile in sets.get(name) or [name]:
            file = find_profile(profile)
            found[file.stem] = file
    return found


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def _find_suite(name: str) -> Path:
    given = Path(name)
    if given.exists() or given.suffix in (".yaml", ".yml") or "/" in name:
        return given
    shipped = {file.stem: file for file in sorted((PROFILES / "suites").glob("*.yaml"))}
    if name not in shipped:
        close = nearest(name, shipped)
        hint = f"{f'Did you mean {close}? ' if close else ''}Shipped suites: {', '.join(shipped)}. Or give a file."
        raise UsageError(f"there is no suite '{name}'", hint=hint)
    return shipped[name]


def _compare(
    baseline: Baseline, sheet: NightSheet, series: SuiteExperiment, wanted: set[str] | None
) -> list[CellResult]:
    before = baseline.read(series.name)
    slugs = [slug for slug in slugs_of(series) if wanted is None or slug in wanted]
    if series.claims is not None:
        gone = gone_claims(before, series.claims) if before is not None and wanted is None else []
        return compare_claims(before, sheet, slugs) + gone
    found = compare_sheets(before, sheet, list(dict.fromkeys(slugs)), series.measures)
    if before is not None and wanted is None:
        found += gone_cells(before, slugs_of(series))
    return found


def _missing_from_suite(baseline: Baseline, suite: Suite, wanted: Wanted) -> list[str]:
    """Name the experiments that only the baseline has, because a suite that lost experiments should not pass."""
    if any(slugs is not None for slugs in wanted.values()) or len(wanted) < len(suite.series):
        return []
    known = {one.name for one in suite.series}
    return [
        f"the baseline has {name}, which the suite no longer has"
        for name in baseline.experiments()
        if name not in known
    ]


def _accept(
    baseline: Baseline, sheets: dict[str, NightSheet], wanted: Wanted, problems: list[str], options: argparse.Namespace
) -> int:
    """Store the sheets as the baseline. Runs that do not count are stored as such and reported, since they cannot
    regress. Raise HowdahError if no run counts at all: the baseline would be empty.
    """
    uncounted = 0
    runs = [each for sheet in sheets.values() for cell in sheet.cells.values() for each in cell.repetitions.values()]
    claims = [claim for sheet in sheets.values() for claim in sheet.claims]
    if not any(each.counts for each in runs) and not claims:
        first = next((sheet.problem for sheet in sheets.values() if sheet.problem), None) or next(iter(problems), None)
        raise HowdahError(f"there is nothing to accept: none of {len(runs)} runs counts", hint=first)
    for name, sheet in sheets.items():
        uncounted += sum(not each.counts for cell in sheet.cells.values() for each in cell.repetitions.values())
        baseline.accept(sheet, part=wanted[name] is not None)
    unbuilt = [name for name, sheet in sheets.items() if sheet.problem is not None]
    if options.json:
        answer(
            NightlyAccept(
                baseline=str(baseline.directory),
                experiments=sorted(sheets),
                not_built=unbuilt,
                runs_that_do_not_count=uncounted,
            )
        )
        return 0
    for name in unbuilt:
        write_stdout(fitted(f"? {name}  cannot be run: {sheets[name].problem}\n"))
    for problem in problems:
        write_stdout(fitted(f"! {problem}\n"))
    if uncounted:
        write_stdout(f"! {uncounted} runs do not count: the baseline is without them\n")
    write_stdout(f"baseline of {counted(len(sheets), 'experiment')}: {baseline.directory}\n")
    return 0


def _power(baseline: Baseline, suite: Suite, wanted: Wanted, options: argparse.Namespace) -> int:
    """Print the table of regressions that the suite finds. Raise HowdahError if no cell has a baseline to take spread
    from."""
    power = power_of(baseline, suite, wanted)
    if options.json:
        answer(NightlyPower.over(power))
    else:
        write_stdout(power.text() if terminal_width() is None else fitted(power.table()))
    return 0


def _list(suite: Suite, wanted: Wanted, *, as_json: bool) -> None:
    cells = [
        ListedCell(id=f"{one.name}/{slug}", experiment=one.name, cell=slug, repetitions=one.profile.repetitions)
        for one in suite.series
        if one.name in wanted
        for slug in dict.fromkeys(slugs_of(one))
        if (slugs := wanted[one.name]) is None or slug in slugs
    ]
    if as_json:
        answer(NightlyList(suite=suite.name, cells=cells))
        return
    for cell in cells:
        write_stdout(f"{cell.id}  {cell.repetitions} repetitions\n")
