# SPDX-License-Identifier: Apache-2.0
"""``howdah plan``: print everything a run would do, in order, and do nothing."""

from __future__ import annotations

import argparse
import dataclasses
import sys

from howdah.command.answer import answer
from howdah.command.common import add_json_option, add_profile_options, load_plans
from howdah.plan.text import render


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("plan", help="print every operation of a profile's runs, without running anything")
    add_profile_options(parser)
    add_json_option(parser)
    parser.add_argument("--all", action="store_true", help="every run of the profile (default: the first one)")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    _, plans = load_plans(options)
    shown = plans if options.all else plans[:1]
    if options.json:
        answer("plan", {"runs": len(plans), "plans": [dataclasses.asdict(plan) for plan in shown]})
        return 0
    for plan in shown:
        sys.stdout.write(render(plan) + "\n")
    if len(shown) < len(plans):
        more = len(plans) - len(shown)
        sys.stdout.write(f"# and {more} more {'run; --all prints it' if more == 1 else 'runs; --all prints them'}\n")
    return 0
