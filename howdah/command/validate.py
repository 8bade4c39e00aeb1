# SPDX-License-Identifier: Apache-2.0
"""``howdah validate``: check that two engines give the same results for the same plans."""

from __future__ import annotations

import argparse
from pathlib import Path

from howdah.cluster.opened import executor_at
from howdah.command.answer import answer
from howdah.command.common import (
    add_cluster_options,
    add_jobs_option,
    add_json_option,
    add_machines_option,
    add_runs_option,
    add_set_option,
    check_jobs,
    cores,
    use_machines,
    workers_of,
)
from howdah.command.interruption import RUNS_KEPT
from howdah.command.shape import CommandAnswer
from howdah.errors import ExitCode, ProfileError, UsageError
from howdah.layout import fitted, headed, write_stdout
from howdah.profile import load
from howdah.record.directory import write_json
from howdah.trait import engines, known_engines
from howdah.validate.comparison import (
    Candidate,
    ComparedRun,
    Validation,
    agree,
    markdown,
    rows,
    times,
    validate,
    validation,
)
from howdah.work.catalogue import find_profile
from howdah.work.display import Display

_NAME = "validation"


class Validate(Validation, CommandAnswer, shape="validate"):
    """The table of the validation (docs/validate.md)."""

    validation: str


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("profile", nargs="?", default="validate", help="a profile (default: profiles/validate.yaml)")
    parser.add_argument("--engines", default="uml,vm", metavar="A,B", help="the two engines (default: uml,vm)")
    add_machines_option(parser)
    parser.add_argument("--kernel", metavar="NAME", help="kernel of both engines: debian-VERSION or debian-newest")
    add_set_option(parser, "override a field on both engines")
    parser.add_argument(
        "--plant",
        action="append",
        default=[],
        metavar="ENGINE:FIELD=VALUE",
        help="override a field on one side alone: a planted difference, which must be found",
    )
    parser.add_argument("--quick", action="store_true", help="only the subset in the profile's quick: section")
    parser.add_argument("--again", action="store_true", help="re-run finished runs")
    add_jobs_option(parser)
    add_cluster_options(parser)
    add_runs_option(parser)
    add_json_option(parser)
    parser.set_defaults(interrupted=RUNS_KEPT)


def execute(options: argparse.Namespace) -> int:
    check_jobs(options)
    use_machines(options)
    engines = _engines(options.engines)
    planted = _planted(options.plant, engines)
    file = find_profile(options.profile)
    first, second = (
        Candidate(engine, load(file, [*options.overrides, *planted[engine]], quick=options.quick)) for engine in engines
    )
    place = workers_of(options)
    with (
        Display(quiet=options.json) as display,
        executor_at(place, display.say, runs=options.runs, again=options.again) as executor,
    ):
        points = validate(
            (first, second),
            options.runs,
            display,
            kernel=options.kernel,
            jobs=options.jobs or cores(),
            again=options.again,
            executor=executor,
        )
    written = options.runs / f"{first.profile.name}-{_NAME}"
    record = validation(first.profile.name, engines, options.plant, points)
    write_json(written.with_suffix(".json"), record.plain())
    written.with_suffix(".md").write_text(markdown(points), encoding="utf-8")
    if options.json:
        answer(Validate.over(record, validation=str(written.with_suffix(".json"))))
    else:
        _print(points, written)
    if any(point.problems for point in points):
        return ExitCode.INVALID
    return 0 if agree(points) else ExitCode.DIFFERS


def _engines(text: str) -> tuple[str, str]:
    names = [name.strip() for name in text.split(",")]
    if len(names) != 2 or names[0] == names[1]:
        raise UsageError(f"--engines takes two names, not {text!r}", hint=f"The engines are {known_engines()}.")
    for name in names:
        if name not in engines():
            raise UsageError(f"there is no engine called {name!r}", hint=f"The engines are {known_engines(name)}.")
    return names[0], names[1]


def _planted(given: list[str], engines: tuple[str, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {engine: [] for engine in engines}
    for text in given:
        engine, colon, override = text.partition(":")
        if engine not in found or not colon:
            raise ProfileError(
                f"--plant takes ENGINE:FIELD=VALUE, not {text!r}", hint=f"The engines are {' and '.join(engines)}."
            )
        found[engine].append(override)
    return found


def _print(points: list[ComparedRun], place: Path) -> None:
    lines = headed(rows(points), labels=3, right=(4, 5, 6))
    lines += times(points)
    lines.append("the engines agree" if agree(points) else "the engines do not agree")
    lines.append(f"table: {place.with_suffix('.md')}")
    write_stdout(fitted("\n".join(lines) + "\n"))
