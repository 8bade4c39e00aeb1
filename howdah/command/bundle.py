# SPDX-License-Identifier: Apache-2.0
"""``howdah bundle``: write kernel, guest tree, modules and tools as one file, for machines that build nothing."""

from __future__ import annotations

import argparse
from pathlib import Path

from howdah.command.answer import answer
from howdah.command.common import add_json_option
from howdah.default import DEFAULT_KERNEL
from howdah.engine.uml.bundling import make_bundle
from howdah.layout import write_stdout
from howdah.number import size
from howdah.work.display import Display


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("bundle")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="a file, or a directory to fill"
    )
    parser.add_argument(
        "--kernel",
        action="append",
        metavar="NAME",
        help=f"debian-VERSION; may be given again (default: {DEFAULT_KERNEL})",
    )
    parser.add_argument(
        "--with",
        dest="traffic",
        default="",
        metavar="TRAFFIC",
        help="also the guest trees of this traffic: flent, quic, or both with a comma",
    )
    add_json_option(parser)
    parser.set_defaults(execute=execute, interrupted="what is built and packed is kept; the same command does the rest")


def execute(options: argparse.Namespace) -> int:
    traffic = [name for name in options.traffic.split(",") if name]
    with Display(quiet=options.json) as display:
        digest = make_bundle(options.output, options.kernel or [DEFAULT_KERNEL], traffic, display.build)
    files = [options.output] if options.output.is_file() else [f for f in options.output.rglob("*") if f.is_file()]
    written = sum(file.stat().st_size for file in files)
    if options.json:
        answer("bundle", {"bundle": str(options.output), "digest": digest, "bytes": written})
    else:
        write_stdout(f"{options.output}: {size(written)}\ndigest: {digest}\n")
    return 0
