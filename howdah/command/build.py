# SPDX-License-Identifier: Apache-2.0
"""``howdah build``: build what the default engine needs, so that the first run starts at once."""

from __future__ import annotations

import argparse
import json
import sys

from howdah.command.common import add_json_option
from howdah.command.progress import Display
from howdah.engine.uml.build import build_all


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("build", help="build the kernel, the guest tree and the modules, once")
    parser.add_argument(
        "--kernel", default="debian-6.12", metavar="TREE", help="a kernel source tree, debian-VERSION or debian-newest"
    )
    add_json_option(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    with Display(quiet=options.json) as display:
        built = build_all(options.kernel, display.build)
    if options.json:
        sys.stdout.write(json.dumps(built) + "\n")
    else:
        for what, where in built.items():
            sys.stdout.write(f"{what}: {where}\n")
    return 0
