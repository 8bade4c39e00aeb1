# SPDX-License-Identifier: Apache-2.0
"""Long lives, and those drawn from a fixed seed, remembered by contents: the same program lives the same lives again.

What decides them is the compiled program, the code that asks for them, and the versions of what draws and compares. A
life that breaks a rule is never remembered. ``make fuzz`` draws other lives each time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from howdah.build.cache import content_key
from tests import remembered
from tests.decision.build import HERE, objects_of


def once(plug_in: Path, what: str, live: Callable[[], None], *, fuzzer: str | None = None) -> bool:
    """Call ``live`` for a plug-in's source unless it has returned before; whether it was called.

    ``what`` names the lives. Raises what ``live`` raises.
    """
    own = [path for path in sorted(HERE.rglob("*")) if path.suffix == ".py" or path.parent.name == "corpus"]
    versions = [sys.version, version("hypothesis"), version("pytest")]
    objects = [directory.name for directory in objects_of(plug_in, fuzzer)]
    names = [str(path.relative_to(HERE)) for path in own]
    key = content_key(what, *versions, *objects, *names, *(path.read_bytes() for path in own))
    return remembered.once("lived", key, live, says=f"{what} of {plug_in.stem}")
