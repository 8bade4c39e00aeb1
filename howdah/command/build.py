# SPDX-License-Identifier: Apache-2.0
"""``howdah build``: build what the default engine needs, so that the first run starts at once."""

from __future__ import annotations

import argparse

from howdah.command.answer import answer
from howdah.command.common import add_json_option
from howdah.default import DEFAULT_KERNEL
from howdah.engine.uml.build import build_all
from howdah.layout import write_stdout
from howdah.work.display import Display


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("build")
    parser.add_argument(
        "--kernel", default=DEFAULT_KERNEL, metavar="TREE", help="a kernel source tree, debian-VERSION or debian-newest"
    )
    add_json_option(parser)
    parser.set_defaults(execute=execute, interrupted="what is built is kept; the same command builds the rest")


def execute(options: argparse.Namespace) -> int:
    with Display(quiet=options.json) as display:
        built = build_all(options.kernel, display.build)
    if options.json:
        answer("build", {"built": {what: str(where) for what, where in built.items()}})
    else:
        for what, where in built.items():
            write_stdout(f"{what}: {where}\n")
    return 0
