# SPDX-License-Identifier: Apache-2.0
"""``howdah plan``: print in order everything that a run would do, without doing it."""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

from pydantic import Field

from howdah.codec import encoded
from howdah.command.answer import answer
from howdah.command.common import add_json_option, add_profile_options, load_plans
from howdah.command.shape import CommandAnswer
from howdah.layout import fitted, write_stdout
from howdah.number import counted
from howdah.plan.caution import plan_cautions
from howdah.plan.plan import Plan
from howdah.plan.text import render
from howdah.profile import Profile, load
from howdah.work.catalogue import expected_s, profile_core_s
from howdah.work.experiment import from_here


class PlanOf(CommandAnswer, shape="plan"):
    runs: int = Field(description="number of the profile's runs; 'plans' has the first one, or all with --all")
    plans: list[dict[str, Any]] = Field(description="each as in plan.json")
    cautions: list[str] = Field(description="limits of what the runs can show")


def arguments(parser: argparse.ArgumentParser) -> None:
    add_profile_options(parser)
    add_json_option(parser)
    parser.add_argument("--all", action="store_true", help="every run of the profile (default: the first one)")


def execute(options: argparse.Namespace) -> int:
    profile, plans = load_plans(options)
    shown = plans if options.all else plans[:1]
    cautions = plan_cautions(list(plans.chosen.values()))
    if options.json:
        answer(PlanOf(runs=len(plans), plans=[_plain(plan) for plan in shown], cautions=cautions))
        return 0
    for plan in shown:
        numbers, head, commands = render(plan).partition("\noperations:\n")
        write_stdout(f"{fitted(numbers)}{head}{commands}\n")
    if len(shown) < len(plans):
        more = len(plans) - len(shown)
        write_stdout(f"# and {more} more {'run; --all prints it' if more == 1 else 'runs; --all prints them'}\n")
    write_stdout("".join(fitted(f"# {sentence}\n") for sentence in cautions))
    if profile.unknown is not None and not profile.is_quick:
        write_stdout(fitted(_cost(profile, options.overrides)))
    return 0


def _plain(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON, with the paths of parameters as in run.json."""
    places = {name: from_here(place) for name, place in plan.parameter_places.items()}
    steps = {"operations": encoded(plan.operations), "timeline": encoded(plan.timeline)}
    plain = dataclasses.asdict(dataclasses.replace(plan, operations=[], timeline=[]))
    return {**plain, **steps, "sender": encoded(plan.sender), "parameter_places": places}


def _cost(profile: Profile, overrides: list[str]) -> str:
    """Return the expected cost of the runs as written, and that of the grid of unknown values."""
    written = profile if not profile.with_unknowns else load(profile.path, overrides)
    whole = profile if profile.with_unknowns else load(profile.path, overrides, unknowns=True)
    cost, most = profile_core_s(written), profile_core_s(whole)
    return (
        f"# as written: {counted(len(written.cells()), 'run')}, about {expected_s(cost)} on one core\n"
        f"# the grid of what is unknown (--unknowns): {counted(len(profile.grid), 'point')}, "
        f"{counted(len(whole.cells()) - len(written.cells()), 'run')}, about {expected_s(most - cost)} on one core\n"
    )
