# SPDX-License-Identifier: Apache-2.0
"""``howdah bisect``: find the commit of a kernel tree that broke a claim."""

from __future__ import annotations

import argparse
from pathlib import Path

from howdah.bisect.session import KernelTrial, Question, Session, Step, chosen_claims
from howdah.bisect.worktree import Found, find_repository
from howdah.command.answer import answer
from howdah.command.common import add_jobs_option, add_json_option, add_runs_option, add_set_option, check_jobs, cores
from howdah.command.shape import CommandAnswer
from howdah.errors import ExitCode, UsageError
from howdah.layout import fitted, write_stdout
from howdah.profile import load
from howdah.record.directory import write_json
from howdah.record.provenance import sha256_text
from howdah.work.catalogue import find_profile
from howdah.work.display import Display

FORMAT = 1


class Bisect(CommandAnswer, shape="bisect"):
    first_bad: str | None
    candidates: list[str]
    steps: list[Step]
    log: str


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tree", type=Path, default=Path(), metavar="DIR", help="a kernel tree in git (default: here)")
    parser.add_argument("--good", metavar="REVISION", help="a commit on which the claim passes")
    parser.add_argument("--bad", metavar="REVISION", help="a commit on which it fails")
    parser.add_argument("--profile", metavar="PROFILE", help="a profile file, or the name of one in profiles/")
    parser.add_argument("--claim", metavar="ID", help="the claim to test (default: all claims of the profile)")
    add_set_option(parser, "override a field of the profile; may be repeated")
    parser.add_argument("--quick", action="store_true", help="only the subset in the profile's quick: section")
    add_jobs_option(parser)
    parser.add_argument("--abandon", action="store_true", help="drop the interrupted bisection of this tree")
    add_runs_option(parser)
    add_json_option(parser)
    parser.set_defaults(
        interrupted="the commits that were tried are kept; the same command continues, --abandon drops them",
    )


def execute(options: argparse.Namespace) -> int:
    session = Session(find_repository(options.tree))
    if options.abandon:
        with session.locked():
            session.close()
        return 0
    for name in ("good", "bad", "profile"):
        if getattr(options, name) is None:
            raise UsageError(f"--{name} is missing", hint="howdah bisect --good A --bad B --profile P --claim C")
    check_jobs(options)
    profile = load(find_profile(options.profile), options.overrides, quick=options.quick)
    claims = chosen_claims(profile, options.claim)
    tree = session.worktree
    question = Question(
        tree.resolve(options.good),
        tree.resolve(options.bad),
        str(profile.path.resolve()),
        sha256_text(profile.text),
        claims,
        options.overrides,
    )
    with session.locked():
        with Display(quiet=options.json) as display:
            workers = options.jobs or cores()
            trial = KernelTrial(profile, claims, options.runs, workers, display.build, display.batch)
            session.open(question, display.say)
            found = session.find(question, trial, display.say)
        commits = [found.first_bad] if found.first_bad else found.candidates
        descriptions = {commit: tree.describe(commit) for commit in commits}
        result = _write_result(trial.experiment.path, session, question, found)
        if options.json:
            answer(result)
        else:
            write_stdout(fitted(_text(result, descriptions)))
        with Display(quiet=options.json) as display:  # removal may take minutes
            display.build("remove the work tree and its objects", 0, 0)
            session.close()
    return 0 if found.first_bad else ExitCode.INVALID


def _write_result(directory: Path, session: Session, question: Question, found: Found) -> Bisect:
    log = directory / "bisect.log"
    log.write_text(session.log(), encoding="utf-8")
    result = Bisect(first_bad=found.first_bad, candidates=found.candidates, steps=session.steps, log=str(log))
    write_json(directory / "bisect.json", {"format": FORMAT, "question": vars(question), **result.plain()})
    return result


def _text(found: Bisect, descriptions: dict[str, str]) -> str:
    lines = []
    if found.first_bad:
        lines.append(f"{found.first_bad} is the first bad commit\n\n{descriptions[found.first_bad]}\n")
    else:
        lines.append("the revisions that would decide were skipped; the first bad commit is one of")
        lines += [f"  {descriptions[each].splitlines()[0]}" for each in found.candidates]
    skipped = sum(step.verdict == "skip" for step in found.steps)
    skipped_text = f", {skipped} of them skipped" if skipped else ""
    lines.append(f"{len(found.steps)} revisions tried{skipped_text}; log: {found.log}")
    return "\n".join(lines) + "\n"
