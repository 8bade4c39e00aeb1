# SPDX-License-Identifier: Apache-2.0
"""``howdah softirqs RUN``: the counts of a run, by kind."""

from __future__ import annotations

import argparse
from typing import Any

from howdah.hooks import CommandEntry


def add_parser(commands: argparse._SubParsersAction[Any]) -> None:
    from howdah.command.common import add_runs_option

    parser = commands.add_parser("softirqs")
    parser.add_argument("run", nargs="?", default="latest", help="a run or an experiment (default: latest)")
    add_runs_option(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """What the command works with is imported here: ``howdah --help`` loads this module."""
    from howdah.layout import write_stdout
    from howdah.library.data import Data
    from howdah.work.experiment import find

    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for row in Data([find(options.runs, options.run)]).table("softirq").to_pylist():
        first.setdefault(row["kind"], row["count"])
        last[row["kind"]] = row["count"]
    write_stdout("".join(f"{kind:<9} {last[kind] - count}\n" for kind, count in first.items()))
    return 0


COMMAND = CommandEntry("print how many software interrupts a run took, by kind", add_parser)
