# SPDX-License-Identifier: Apache-2.0
"""``howdah compare``: algorithms, kernels, experiments or runs side by side."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from howdah.command.common import add_json_option, add_runs_option
from howdah.report.compare import compare
from howdah.run.experiment import find


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("compare", help="put algorithms, kernels, experiments or runs side by side")
    parser.add_argument("what", nargs="*", default=["latest"], help="experiments or runs (default: latest)")
    parser.add_argument("--algorithm", action="append", metavar="NAME", help="only this one; may be repeated")
    parser.add_argument("--output", type=Path, metavar="FILE", help="the page (default: compare-….html in --runs)")
    parser.add_argument("--without-prometheus", action="store_true", help="draw from the Parquet tables")
    add_runs_option(parser)
    add_json_option(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    paths = [find(options.runs, name) for name in options.what]
    target = options.output or options.runs / f"compare-{'-'.join(dict.fromkeys(path.name for path in paths))}.html"
    prometheus = "off" if options.without_prometheus else "auto"
    comparison = compare(paths, target, prometheus, options.algorithm)
    if options.json:
        sys.stdout.write(json.dumps({"report": str(comparison.page), "table": comparison.text}) + "\n")
    else:
        sys.stdout.write(f"{comparison.text}\nreport: {comparison.page}\n")
    return 0
