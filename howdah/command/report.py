# SPDX-License-Identifier: Apache-2.0
"""``howdah report``: make the HTML report of an experiment again, from its directory alone."""

from __future__ import annotations

import argparse
import json
import sys

from howdah.claim.claims import judge_claims
from howdah.command.common import add_json_option, add_runs_option
from howdah.errors import HowdahError
from howdah.report import report
from howdah.run.directory import RunDirectory, read_json
from howdah.run.experiment import find
from howdah.run.stage import outdated, refresh


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("report", help="make the HTML report of an experiment again; needs no kernel")
    parser.add_argument("experiment", nargs="?", default="latest", help="directory or name (default: latest)")
    parser.add_argument("--reanalyse", action="store_true", help="make tables, metrics and verdicts again first")
    parser.add_argument("--without-prometheus", action="store_true", help="draw from the Parquet tables")
    add_runs_option(parser)
    add_json_option(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    path = find(options.runs, options.experiment)
    if (path / "plan.json").exists():
        path = path.parent
    if not (path / "experiment.json").exists():
        raise HowdahError("this is not an experiment: it has no experiment.json", where=str(path))
    old = 0
    for cell in read_json(path / "experiment.json")["cells"]:
        directory = RunDirectory(path / cell["run"])
        if directory.provenance.exists():
            refresh(directory, force=options.reanalyse)
            old += outdated(directory)
    if old:
        sys.stderr.write(
            f"howdah: {old} runs were analysed by an earlier version, and their data were not kept (keep: first); "
            "'howdah run --again' makes them anew\n"
        )
    judge_claims(path)
    page = report(path, prometheus="off" if options.without_prometheus else "auto")
    sys.stdout.write(json.dumps({"report": str(page)}) + "\n" if options.json else f"{page}\n")
    return 0
