# SPDX-License-Identifier: Apache-2.0
"""``howdah export``: a run, or every run of an experiment, in the format of another tool."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from howdah.command.common import add_json_option, add_runs_option
from howdah.errors import HowdahError
from howdah.export.flent import SUFFIX, write_flent
from howdah.publish.experiment import load_experiment
from howdah.run.experiment import find


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("export", help="write a run's data for another tool; needs no kernel")
    parser.add_argument("run", nargs="?", default="latest", help="a run or an experiment (default: latest)")
    parser.add_argument("--format", choices=["flent"], default="flent", help="flent: a data file flent plots (default)")
    parser.add_argument(
        "--output", type=Path, default=None, metavar="DIR", help="directory to write to (default: that of each run)"
    )
    add_runs_option(parser)
    add_json_option(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Write what can be written, say what cannot; an error when that is everything."""
    if options.output is not None:
        options.output.mkdir(parents=True, exist_ok=True)
    path = find(options.runs, options.run)
    written: list[Path] = []
    refused: list[HowdahError] = []
    for run in load_experiment(path).runs:
        target = None if options.output is None else options.output / f"{run.experiment}-{run.name}{SUFFIX}"
        try:
            written.append(write_flent(run, target))
        except HowdahError as error:
            refused.append(error)
    if not written:
        raise refused[0] if refused else HowdahError("the experiment has no runs", where=str(path))
    if options.json:
        passed_over = [{"what": error.what, "where": error.where} for error in refused]
        sys.stdout.write(json.dumps({"written": [str(file) for file in written], "passed_over": passed_over}) + "\n")
        return 0
    sys.stdout.write("".join(f"{file}\n" for file in written))
    sys.stderr.write("".join(f"howdah: passed over: {error}\n" for error in refused))
    return 0
