# SPDX-License-Identifier: Apache-2.0
"""The kernel of the revision that is checked out, or why it does not build, in words about the tree itself."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from howdah.build.cache import Cache, Progress
from howdah.build.uml_kernel import Kernel, build_kernel
from howdah.errors import EngineUnavailableError, HowdahError

_LEAST_FREE_BYTES = 1 << 30


@dataclass(frozen=True)
class Unbuilt:
    """``why`` names the tree's file and line, relative to the tree."""

    why: str


def build_revision(tree: Path, progress: Progress, cache: Cache) -> Kernel | Unbuilt:
    """Build what is checked out in a work tree.

    Raises EngineUnavailableError, and HowdahError on a full disk: they say nothing of the revision.
    """
    try:
        return build_kernel(str(tree), progress, cache)
    except EngineUnavailableError:
        raise
    except HowdahError as error:
        if shutil.disk_usage(cache.root).free < _LEAST_FREE_BYTES:
            raise
        where = f"{error.where}: " if error.where and error.where != str(tree) else ""
        return Unbuilt(within(tree, f"it does not build: {where}{error.what}"))


def within(tree: Path, text: str) -> str:
    """A text that names the tree's files as the repository does: the work tree is howdah's own and goes away."""
    return text.replace(f"{tree}/", "").replace(str(tree), "the tree")
