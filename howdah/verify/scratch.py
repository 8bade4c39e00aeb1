# SPDX-License-Identifier: Apache-2.0
"""Where a verification unpacks and computes: one directory a command, of which nothing stays, however it ends."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from howdah.record.directory import is_abandoned
from howdah.scratch import scratch

PREFIX = "howdah-verify-"


@contextmanager
def scratch_place() -> Iterator[Path]:
    """The directory; those of commands that were killed go first. Processes that end early leave theirs in it."""
    base = Path(tempfile.gettempdir())
    for left in base.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if not left.is_symlink() and left.stat().st_uid == os.geteuid() and is_abandoned(left):
                shutil.rmtree(left, ignore_errors=True)
    with scratch(PREFIX, base) as made:
        yield made
