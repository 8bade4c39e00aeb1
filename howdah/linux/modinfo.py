# SPDX-License-Identifier: Apache-2.0
"""What the section .modinfo of a built module (.ko) says: texts NAME=VALUE, a zero byte behind each."""

from __future__ import annotations

import re

_TEXT = re.compile(rb"(?<=\0)([a-z_]+)=([^\0]*)\0")


def module_information(content: bytes) -> dict[str, str]:
    """The first text of each name; ``content`` is the whole file's."""
    found: dict[str, str] = {}
    for match in _TEXT.finditer(content):
        found.setdefault(match[1].decode(), match[2].decode(errors="replace"))
    return found


def modules_needed(content: bytes) -> list[str]:
    """What a module depends on, as the kernel calls it."""
    listed = module_information(content).get("depends", "")
    return [name.replace("-", "_") for name in listed.split(",") if name]
