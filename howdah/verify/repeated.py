# SPDX-License-Identifier: Apache-2.0
"""Names that a JSON file gives twice: one reader takes the first value, another one the last."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from howdah.errors import RecordError
from howdah.foreign import read_foreign, too_dense


def repeated_names(path: Path) -> list[str]:
    """Each such name once; nothing of a file that cannot be read, which others tell."""
    found: dict[str, None] = {}

    def take(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                found[name] = None
            seen.add(name)

    try:
        content = read_foreign(path)
        if not too_dense(content):
            json.loads(content, object_pairs_hook=take)
    except (OSError, ValueError, RecordError, RecursionError):
        return []
    return list(found)
