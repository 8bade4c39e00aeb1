# SPDX-License-Identifier: Apache-2.0
"""``howdah sign``: sign runs or experiments with an ssh or a minisign key."""

from __future__ import annotations

import argparse
from pathlib import Path

from howdah.command.answer import answer
from howdah.command.common import add_json_option, add_runs_option
from howdah.command.shape import CommandAnswer
from howdah.layout import write_stderr, write_stdout
from howdah.record.digest import mismatch_error, mismatches
from howdah.record.run import read_record
from howdah.verify.experiment import runs_below
from howdah.verify.signature import sign
from howdah.work.experiment import find


class Sign(CommandAnswer, shape="sign"):
    signatures: list[str]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="+", help="runs or experiments")
    parser.add_argument("--key", type=Path, required=True, metavar="FILE", help="an ssh key, or a minisign secret key")
    add_runs_option(parser)
    add_json_option(parser)


def execute(options: argparse.Namespace) -> int:
    """Sign runs or experiments. Raise HowdahError if a file differs from its recorded digest."""
    written = []
    for path in [find(options.runs, name) for name in options.what]:
        for run in runs_below(path):
            record = read_record(run)
            wrong = mismatches(run, record)
            if wrong:
                raise mismatch_error(run, wrong[0])
            if record.digests is None:
                write_stderr(f"howdah: {run.name} has no digests: its files are signed as they are now\n")
        written.append(sign(path, options.key))
    if options.json:
        answer(Sign(signatures=[str(file) for file in written]))
    else:
        write_stdout("".join(f"{file}\n" for file in written))
    return 0
