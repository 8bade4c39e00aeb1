# SPDX-License-Identifier: Apache-2.0
"""The ``howdah`` command: parse, dispatch, and turn errors into one clear message and an exit code.

Exit codes: 0 done; 1 an error; 2 a wrong profile or command line; 3 the engine cannot run here; 4 a run failed;
5 a run is invalid; 6 a claim failed or reruns differ; 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
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
    compare,
    doctor,
    export,
    exporter,
    lab,
    listing,
    nightly,
    plan,
    report,
    rerun,
    run,
    serve,
    validate,
)
from howdah.errors import HowdahError, explain

INTERRUPTED = 130


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="howdah",
        description="Measure how TCP starts up on long fat paths, on real kernels in virtual time.",
        epilog="Exit codes: 0 done, 1 error, 2 wrong profile or usage, 3 engine cannot run here, 4 a run failed, "
        "5 a run is invalid, 6 a claim failed or results differ, 130 interrupted.",
    )
    parser.add_argument("--version", action="version", version=f"howdah {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for module in (
        build,
        run,
        plan,
        report,
        claims,
        atlas,
        compare,
        rerun,
        nightly,
        bisect,
        validate,
        listing,
        export,
        serve,
        exporter,
        lab,
        doctor,
        clean,
    ):
        module.add_parser(commands)
    return parser


def _terminated(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main(arguments: list[str] | None = None) -> int:
    options = build_parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(signal.SIGHUP, _terminated)
    try:
        code: int = options.execute(options)
        sys.stdout.flush()
        return code
    except HowdahError as error:
        if getattr(options, "json", False):
            sys.stdout.write(
                json.dumps({"error": {"what": error.what, "where": error.where, "hint": error.hint}}) + "\n"
            )
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
