# SPDX-License-Identifier: Apache-2.0
"""The published claims of the repository's atlas, read once, for tests."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from howdah.atlas.chapter import published_of, read_chapters
from howdah.atlas.published import rows_of
from howdah.place import PROFILES
from howdah.record.claims import ClaimRow


@cache
def shipped_rows() -> dict[str, ClaimRow]:
    """By ``profile/claim``."""
    return rows_of(published_of(read_chapters(PROFILES / "atlas", Path("no-runs"), quick=False)))
