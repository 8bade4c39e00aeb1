# SPDX-License-Identifier: Apache-2.0
"""What a built module says of itself."""

from __future__ import annotations

import re
from pathlib import Path


def module_information(module: Path) -> dict[str, str]:
    """The ``.modinfo`` strings of a .ko (name=value, zero-terminated); the first of each name."""
    found: dict[str, str] = {}
    for match in re.finditer(rb"(?<=\0)([a-z_]+)=([^\0]*)\0", module.read_bytes()):
        found.setdefault(match[1].decode(), match[2].decode(errors="replace"))
    return found
