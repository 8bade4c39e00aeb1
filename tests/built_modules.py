# SPDX-License-Identifier: Apache-2.0
"""Modules for tests that need every one of them."""

from __future__ import annotations

from collections.abc import Sequence

from howdah.build.cache import Cache, Progress
from howdah.build.module_build import Target
from howdah.build.modules import Module, provide_modules


def build_modules(
    kernel: Target, wanted: Sequence[str], progress: Progress, cache: Cache | None = None
) -> list[Module]:
    """Raises the HowdahError of the first that does not build."""
    found = provide_modules(kernel, wanted, progress, cache)
    for error in found.failed.values():
        raise error
    return list(found.built.values())
