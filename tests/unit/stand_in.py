# SPDX-License-Identifier: Apache-2.0
"""A worker that takes the place of the real one (howdah/work/worker.py) and makes no run."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

_LOOP = """
import json, sys
class Ended(Exception): pass
_, parent = sys.argv
for _line in iter(sys.stdin.readline, ""):
    sys.argv[1:] = [json.loads(_line)["run"], parent]
    try:
        exec(compile(BODY, __file__, "exec"), {"__name__": "__main__", "__file__": __file__, "Ended": Ended})
    except Ended:
        pass
    sys.stdout.flush()
"""


def stand_in(script: Path, body: str) -> tuple[str, ...]:
    """The command of a worker that does ``body`` for each run: ``sys.argv[1]`` is its directory, [2] the parent.

    ``raise Ended`` leaves the body; any other exception, and SystemExit, ends the worker.
    """
    script.write_text(_LOOP.replace("BODY", repr(textwrap.dedent(body))))
    return sys.executable, str(script)
