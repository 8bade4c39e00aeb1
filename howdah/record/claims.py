# SPDX-License-Identifier: Apache-2.0
"""claims.json as others read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from howdah.record.directory import read_json

CLAIMS_FORMAT = 1
CLAIMS_NAME = "claims.json"


def read_claims(directory: Path) -> list[dict[str, Any]]:
    """The claims of claims.json; none if there is no such file, or it is of another format."""
    try:
        found = read_json(directory / CLAIMS_NAME)
    except (OSError, ValueError):
        return []
    if not isinstance(found, dict) or found.get("format") != CLAIMS_FORMAT:
        return []
    return list(found.get("claims", []))
