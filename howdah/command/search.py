# SPDX-License-Identifier: Apache-2.0
"""``howdah search``: find the smallest candidate of a profile's ``search:`` section on which a claim fails."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import get_args

from pydantic import Field

from howdah.cluster.opened import executor_at
from howdah.command.answer import answer
from howdah.command.common import (
    MAKING,
    RESULTS,
    add_cluster_options,
    add_jobs_option,
    add_json_option,
    add_runs_option,
    add_set_option,
    check_jobs,
    cores,
    workers_of,
)
from howdah.command.interruption import RUNS_KEPT
from howdah.command.parser import section
from howdah.command.shape import CommandAnswer
from howdah.counterexample.goal import read_goal
from howdah.counterexample.page import write_page
from howdah.counterexample.sampler import Kind
from howdah.counterexample.session import (
    COUNTEREXAMPLE_NAME,
    CRASH_NAME,
    SearchFile,
    SearchResult,
    SearchSession,
    search_file,
)
from howdah.counterexample.space import read_space, words
from howdah.counterexample.trial import Trials
from howdah.errors import ExitCode, HowdahError, ProfileError, explain
from howdah.layout import fitted, write_stdout
from howdah.number import counted, significant
from howdah.profile import load
from howdah.work.catalogue import find_profile
from howdah.work.display import Display
from howdah.work.prepared import hold


class Search(SearchFile, CommandAnswer, shape="search"):
    """A search (docs/search.md)."""

    directory: str
    page: str
    corpus: str | None = Field(description="where --corpus keeps the profile")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", help="a profile file with a section search:, or the name of one")
    add_set_option(parser, "override a field, e.g. --set search.budget.candidates=400; may be repeated")
    add_runs_option(parser)
    add_json_option(parser)
    add_jobs_option(parser)
    add_cluster_options(parser)
    section(parser, MAKING).add_argument(
        "--sampler",
        choices=get_args(Kind),
        default="tpe",
        help="what chooses candidates (default: tpe)",
    )
    section(parser, RESULTS).add_argument(
        "--corpus", type=Path, metavar="DIR", help="keep the counterexample in this directory as well"
    )
    parser.set_defaults(interrupted=RUNS_KEPT)


def execute(options: argparse.Namespace) -> int:
    check_jobs(options)
    place = workers_of(options)
    file = find_profile(options.profile)
    profile = load(file, options.overrides)
    if profile.search is None:
        hint = "docs/search.md says what it has."
        raise ProfileError("this profile has no section search:", where=str(file), hint=hint)
    space = read_space(file, options.overrides, profile.search)
    goal = read_goal(profile.search, profile.claims)
    _check_corpus(options.corpus)
    with ExitStack() as locks, Display(quiet=options.json) as display:
        directory = hold(options.runs / f"{profile.name}-search", locks).path
        display.say(f"{profile.name}: looking for {goal.says}; {significant(space.size, 3)} candidates")
        executor = locks.enter_context(executor_at(place, display.say, runs=options.runs, again=False))
        trials = Trials(
            space, goal, directory, options.jobs or cores(), display.build, lambda *_: None, display.say, executor
        )
        found = SearchSession(space, goal, trials, display.say, _explain).run(options.sampler)
        lines = _summary(found, goal.says)
        page = write_page(found, space, goal.says, lines, directory)
    kept = _keep(options.corpus, directory, profile.name, found)
    if options.json:
        whole = search_file(found, goal.says, space.fingerprint)
        answer(Search.over(whole, directory=str(directory), page=str(page), corpus=kept and str(kept)))
    else:
        if found.proven is not None:
            lines.append(f"profile: {kept or directory / COUNTEREXAMPLE_NAME}")
        if found.crash is not None:
            crash = (
                directory / CRASH_NAME if options.corpus is None else options.corpus / f"{profile.name}-{CRASH_NAME}"
            )
            lines.append(f"profile of the crash: {crash}")
        write_stdout(fitted("\n".join([*lines, f"page: {page}"]) + "\n"))
    return 0 if found.simplest is not None or found.crash is not None else ExitCode.INVALID


def _check_corpus(corpus: Path | None) -> None:
    """Raise HowdahError unless files can be written to the directory, before the search rather than at its end."""
    if corpus is None:
        return
    try:
        corpus.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=corpus):
            pass
    except OSError as error:
        raise HowdahError(
            f"no counterexample can be kept there: {explain(error)}",
            where=str(corpus),
            hint="Name another directory with --corpus DIR.",
        ) from error


def _keep(corpus: Path | None, directory: Path, name: str, found: SearchResult) -> Path | None:
    if corpus is not None and found.crash is not None:
        shutil.copyfile(directory / CRASH_NAME, corpus / f"{name}-{CRASH_NAME}")
    if corpus is None or found.proven is None:
        return None
    target = corpus / f"{name}-{found.proven.directory.removeprefix('c-').partition('-')[0]}.yaml"
    shutil.copyfile(directory / COUNTEREXAMPLE_NAME, target)
    return target


def _explain(experiment: Path) -> list[str]:
    from howdah.report.ending import results
    from howdah.report.findings import findings
    from howdah.report.results import read_shown
    from howdah.report.source import TableSource

    return findings(results([read_shown(experiment)], TableSource()))


def _summary(found: SearchResult, says: str) -> list[str]:
    return [*_result_lines(found, says), *_crash_lines(found)]


def _crash_lines(found: SearchResult) -> list[str]:
    if not found.crashed:
        return []
    lines = [f"The guest's kernel crashed on {counted(len(found.crashed), 'candidate')}."]
    if found.crash is not None:
        simplest, tried = found.crash
        values = {**simplest.candidate, **simplest.more}
        lines += ["The simplest of them:", *(f"  {name}: {value}" for name, value in values.items()), tried.failure]
    return lines


def _result_lines(found: SearchResult, says: str) -> list[str]:
    seen = len(found.tried) / found.size
    share = "less than a millionth" if seen < 1e-6 else f"{significant(seen * 100, 2)} %"
    if found.simplest is None or found.proven is None:
        best = found.best
        lines = [f"Nothing was found in {counted(len(found.tried), 'candidate')}, {share} of the space."]
        if best is not None:
            lines.append(f"Nearest: {best.score.text} at {words(best.candidate)}.")
        return [*lines, *(f"Not proven: {each}" for each in found.dropped)]
    lines = [f"{says[:1].upper()}{says[1:]}: {found.proven.score.text}"]
    lines += [f"  {name}: {value}" for name, value in {**found.simplest.candidate, **found.simplest.more}.items()]
    lines += found.why
    lines += _neighbour_lines(found)
    lines.append(
        f"{counted(len(found.tried), 'candidate')} tried ({share} of the space): {found.count('failed')} show it, "
        f"{found.count('held')} do not, {found.count('none')} have no value; "
        f"{counted(found.shrunk_runs, 'further candidate')} to make it simple."
    )
    important = sorted(found.importances.items(), key=lambda each: -each[1])[:3]
    if important:
        shown = ", ".join(f"{name} {significant(v * 100, 2)} %" for name, v in important)
        lines.append(f"What matters most: {shown}.")
    return lines


def _neighbour_lines(found: SearchResult) -> list[str]:
    scored = [(name, each.score) for name, each in found.neighbours if each.score.value is not None]
    if not scored:
        return []
    near = sum(score.found for _, score in scored)
    worst = min(scored, key=lambda each: each[1].value or 0.0)
    return [f"Of {len(scored)} neighbours {near} show it too; the weakest: {worst[0]}, {worst[1].text}."]
