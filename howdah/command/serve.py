# SPDX-License-Identifier: Apache-2.0
"""``howdah serve``: serve all runs through one Prometheus on loopback."""

from __future__ import annotations

import argparse

from howdah.command.common import add_runs_option
from howdah.errors import UsageError
from howdah.publish.serve import serve


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=9090, help="port on 127.0.0.1 (default: 9090)")
    parser.add_argument(
        "--live", action="store_true", help="also scrape runs while they are made, and show a page of them"
    )
    parser.add_argument(
        "--target",
        action="append",
        default=[],
        metavar="ADDRESS:PORT",
        help="with --live: an exporter to scrape as well, e.g. 'howdah exporter' of a host; may be repeated",
    )
    add_runs_option(parser)


def execute(options: argparse.Namespace) -> int:
    if options.target and not options.live:
        raise UsageError("--target has no meaning without --live", hint="Add --live.")
    serve(options.runs, port=options.port, live=options.live, targets=tuple(options.target))
    return 0
