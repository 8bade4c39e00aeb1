# SPDX-License-Identifier: Apache-2.0
"""That a check has found nothing wrong, remembered from one session of tests to the next. Faults never are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from howdah.build.cache import Cache


def once(kind: str, key: str, check: Callable[[], None], *, says: str, cache: Cache | None = None) -> bool:
    """Call ``check`` unless it has returned before; whether it was called. Raises what ``check`` raises.

    ``key`` is of all that decides what it finds. ``says`` is kept for who looks into the cache.
    """
    called = False

    def build(directory: Path, _log: Path) -> None:
        nonlocal called
        called = True
        check()
        (directory / "passed").write_text(f"{says}\n", encoding="utf-8")

    (cache or Cache()).build(kind, key, build)
    return called
