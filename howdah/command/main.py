# SPDX-License-Identifier: Apache-2.0
# PYTHON_ARGCOMPLETE_OK
"""The ``howdah`` command: parse, dispatch, and turn errors into one clear message and an exit code.

``EXIT_CODES`` of howdah/command/parser.py has the codes.
"""

from __future__ import annotations

import argparse
import io
import os
import signal
import sys
from types import FrameType

from howdah import __version__
from howdah.command import (
    atlas,
    bisect,
    build,
    claims,
    clean,
    cluster,
    compare,
    completing,
    completion,
    doctor,
    export,
    exporter,
    figure,
    listing,
    machines,
    new,
    nightly,
    pack,
    plan,
    report,
    rerun,
    run,
    schema,
    score,
    serve,
    sign,
    validate,
    verify,
)
from howdah.command.answer import answer
from howdah.command.parser import TopParser, describe, exit_codes
from howdah.errors import HowdahError, explain

INTERRUPTED = 130

_HOW = """\
Start with:
  howdah doctor                    what is missing here
  howdah run quick                 a first experiment
  howdah new mine && howdah run mine.yaml
  howdah COMMAND --help            what a command takes
"""


def build_parser() -> argparse.ArgumentParser:
    parser = TopParser(
        prog="howdah",
        usage="howdah COMMAND ...",
        description="Measure how TCP starts up on long fat paths, on real kernels in virtual time.",
        epilog=f"{_HOW}\nExit codes:\n{exit_codes()}",
    )
    parser.add_argument("--version", action="version", version=f"howdah {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, prog="howdah")
    for module in (
        new,
        build,
        run,
        plan,
        report,
        figure,
        claims,
        atlas,
        compare,
        score,
        rerun,
        verify,
        sign,
        nightly,
        bisect,
        validate,
        listing,
        export,
        pack,
        serve,
        exporter,
        machines,
        cluster,
        doctor,
        clean,
        completion,
        schema,
    ):
        module.add_parser(commands)
    describe(parser)
    return parser


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="surrogateescape")  # a file's name may be any bytes; they are printed as they are
    parser = build_parser()
    if completing.REQUESTED:
        completing.complete(parser)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(signal.SIGHUP, _terminated)
    try:
        code: int = options.execute(options)
        sys.stdout.flush()
        return code
    except HowdahError as error:
        if getattr(options, "json", False):
            answer("error", {"error": {"what": error.what, "where": error.where, "hint": error.hint}})
        sys.stderr.write(f"howdah: {error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        kept = getattr(options, "interrupted", "finished runs are kept, unfinished ones were removed")
        sys.stderr.write(f"howdah: interrupted; {kept}\n")
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader left: nothing more to say
        return 0
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        sys.stderr.write(f"howdah: {place}{explain(error)}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
