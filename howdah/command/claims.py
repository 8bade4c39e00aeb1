# SPDX-License-Identifier: Apache-2.0
"""``howdah claims``: judge an experiment's claims again, using only its directory."""

from __future__ import annotations

import argparse
from pathlib import Path

from pydantic import Field
from rich.console import Console

from howdah.claim.finding import DEPENDS, DIFFERS, FAIL, IMPLEMENTED, INVALID, PASS, UNSUPPORTED
from howdah.command.answer import answer
from howdah.command.common import add_json_option, add_runs_option
from howdah.command.shape import CommandAnswer
from howdah.errors import ExitCode, HowdahError
from howdah.foreign import escape_controls
from howdah.layout import folded, terminal_width
from howdah.place import recorded_name
from howdah.record.claims import ClaimsFile, OpenRow
from howdah.record.index import ProfileSource
from howdah.work.experiment import find, from_here
from howdah.work.results import judged_claims

_SIGNS = {PASS: "✓", IMPLEMENTED: "✓", FAIL: "✕", DIFFERS: "≠", DEPENDS: "≈", UNSUPPORTED: "–", INVALID: "?"}


class ClaimsJudged(ClaimsFile, CommandAnswer, shape="claims"):
    """The whole content of claims.json."""

    quick: bool
    profile: ProfileSource | None
    unknown: OpenRow | None = Field(description="what the source does not specify (docs/data-format.md)")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", nargs="?", default="latest", help="directory or name (default: latest)")
    parser.add_argument(
        "--profile",
        type=Path,
        metavar="FILE",
        help="judge the claims of this profile (default: the profile that the experiment was run with)",
    )
    add_runs_option(parser)
    add_json_option(parser)


def execute(options: argparse.Namespace) -> int:
    path = find(options.runs, options.experiment)
    if (path / "plan.json").exists():
        path = path.parent
    found = judged_claims(path, options.profile)
    if found is None:
        raise HowdahError("the profile of this experiment makes no claims", where=str(path))
    if options.json:
        if found.profile is not None:  # claims.json has the full path, to judge them again
            given = options.profile
            found.profile.file = recorded_name(given) if given is not None else from_here(found.profile.file)
        answer(ClaimsJudged.over(found))
    else:
        print_claims(Console(highlight=False, soft_wrap=True), found)
    return ExitCode.DIFFERS if FAIL in {claim.verdict for claim in found.claims} else 0


def print_claims(console: Console, found: ClaimsFile) -> None:
    """Print each claim on two or three lines: verdict and text; expected and measured value; why it did not pass."""
    verdicts = [claim.verdict for claim in found.claims]
    counts = ", ".join(f"{verdicts.count(word)} {word}" for word in _SIGNS if word in verdicts)
    console.print(escape_controls(f"claims: {counts}"), markup=False)
    width = terminal_width()

    def say(text: str, indent: str, first: str) -> None:
        console.print(escape_controls("\n".join(folded(text, width, indent, first))), markup=False)

    for claim in found.claims:
        say(f"{claim.id}: {claim.says}", "    ", f"{_SIGNS[claim.verdict]} {claim.verdict:<11} ")
        if claim.measured is not None:
            against = f", against {claim.than.text}" if claim.than else ""
            say(f"expected {claim.expected.text}; measured {claim.measured.text}{against}", "      ", "    ")
        if claim.why and claim.verdict != PASS:
            say(claim.why, "      ", "    ")
        if claim.chosen_after:
            say(f"chosen after a result was known: {claim.chosen_after}", "      ", "    ")
        if claim.control is not None:
            measured = f", {claim.control.measured.text}" if claim.control.measured else ""
            say(f"control {claim.control.name}: {claim.control.verdict}{measured}", "      ", "    ")
        if claim.unknown is not None:
            say(f"unknown: {claim.unknown.text}", "      ", "    ")
    if found.unknown is not None and found.unknown.text:
        say(found.unknown.text, "    ", "unknown: ")
