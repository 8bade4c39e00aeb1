# SPDX-License-Identifier: Apache-2.0
"""One run in a process of its own: ``python -m howdah.run.worker DIRECTORY``.

Progress goes to standard output as one JSON object a line; the last one is ``{"verdict": …}`` or ``{"error": …}``.
The process dies with the one that started it, and the guest dies with this process, so a ``kill -9`` of the command
leaves nothing behind.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path

from howdah.errors import HowdahError, explain
from howdah.run.directory import RunDirectory
from howdah.run.parent import die_with_parent
from howdah.run.stage import execute


def _say(**message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main() -> int:
    directory, parent = RunDirectory(Path(sys.argv[1])), int(sys.argv[2])
    die_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent hears Ctrl-C and ends its workers in order
    try:
        verdict = execute(directory, lambda phase, done, total: _say(phase=phase, done_us=done, of_us=total))
    except HowdahError as error:
        _say(error=error.what, where=error.where, hint=error.hint, exit_code=error.exit_code)
        return 1
    except OSError as error:
        _say(error=explain(error), where=error.filename and str(error.filename), hint=None, exit_code=1)
        return 1
    _say(verdict=verdict)
    return 0


if __name__ == "__main__":
    sys.exit(main())
