# SPDX-License-Identifier: Apache-2.0
"""``howdah serve``: one Prometheus on loopback over all runs."""

from __future__ import annotations

import argparse

from howdah.command.common import add_runs_option
from howdah.publish.serve import serve


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("serve", help="keep a Prometheus running on loopback over all runs")
    parser.add_argument("--port", type=int, default=9090, help="port on 127.0.0.1 (default: 9090)")
    add_runs_option(parser)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    serve(options.runs, port=options.port)
    return 0
