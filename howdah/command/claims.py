# SPDX-License-Identifier: Apache-2.0
"""``howdah claims``: judge an experiment's claims again, from its directory alone."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console

from howdah.claim.finding import DEPENDS, DIFFERS, FAIL, IMPLEMENTED, INVALID, PASS, UNSUPPORTED
from howdah.command.answer import answer
from howdah.command.common import add_json_option, add_runs_option
from howdah.errors import ExitCode, HowdahError
from howdah.foreign import visible
from howdah.layout import folded, terminal_width
from howdah.place import written
from howdah.work.experiment import find, from_here
from howdah.work.judged import judged_claims

_SIGNS = {PASS: "✓", IMPLEMENTED: "✓", FAIL: "✕", DIFFERS: "≠", DEPENDS: "≈", UNSUPPORTED: "–", INVALID: "?"}


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("claims")
    parser.add_argument("experiment", nargs="?", default="latest", help="directory or name (default: latest)")
    parser.add_argument(
        "--profile",
        type=Path,
        default=None,
        metavar="FILE",
        help="judge the claims of this profile (default: those with which the experiment was run)",
    )
    add_runs_option(parser)
    add_json_option(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    path = find(options.runs, options.experiment)
    if (path / "plan.json").exists():
        path = path.parent
    found = judged_claims(path, options.profile)
    if found is None:
        raise HowdahError("the profile of this experiment makes no claims", where=str(path))
    if options.json:
        answer("claims", {**found, "profile": _source(found["profile"], options.profile)})
    else:
        print_claims(Console(highlight=False, soft_wrap=True), found["claims"], found["unknown"])
    return ExitCode.DIFFERS if FAIL in {claim["verdict"] for claim in found["claims"]} else 0


def _source(source: dict[str, Any] | None, given: Path | None) -> dict[str, Any] | None:
    """The profile of the claims by the path that was given; claims.json has where it lies, to judge them again."""
    if source is None:
        return None
    return {**source, "file": written(given) if given is not None else from_here(source["file"])}


def print_claims(console: Console, claims: list[dict[str, Any]], unknown: dict[str, Any] | None = None) -> None:
    """Every claim in two lines or three: verdict and words; expected and measured; why, unless it passes.

    ``unknown`` is what claims.json says of the grid of what is left open.
    """
    if not claims:
        return
    verdicts = [claim["verdict"] for claim in claims]
    counts = ", ".join(f"{verdicts.count(word)} {word}" for word in _SIGNS if word in verdicts)
    console.print(visible(f"claims: {counts}"), markup=False)
    width = terminal_width()

    def say(text: str, indent: str, first: str) -> None:
        console.print(visible("\n".join(folded(text, width, indent, first))), markup=False)

    for claim in claims:
        verdict = claim["verdict"]
        say(f"{claim['id']}: {claim['says']}", "    ", f"{_SIGNS[verdict]} {verdict:<11} ")
        if claim["measured"] is not None:
            against = f", against {claim['than']['text']}" if claim["than"] else ""
            text = f"expected {claim['expected']['text']}; measured {claim['measured']['text']}{against}"
            say(text, "      ", "    ")
        if claim["why"] and verdict != PASS:
            say(claim["why"], "      ", "    ")
        if claim.get("chosen_after"):
            say(f"chosen after a result was known: {claim['chosen_after']}", "      ", "    ")
        control = claim["control"]
        if control is not None:
            measured = f", {control['measured']['text']}" if control["measured"] else ""
            say(f"control {control['name']}: {control['verdict']}{measured}", "      ", "    ")
        if claim.get("unknown"):
            say(f"unknown: {claim['unknown']['text']}", "      ", "    ")
    if unknown is not None and unknown["text"]:
        say(unknown["text"], "    ", "unknown: ")
