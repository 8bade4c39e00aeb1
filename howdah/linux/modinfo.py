# SPDX-License-Identifier: Apache-2.0
"""The section .modinfo of a built module (.ko): strings NAME=VALUE, each ending with a zero byte."""

from __future__ import annotations

import re

_TEXT = re.compile(rb"(?<=\0)([a-z_]+)=([^\0]*)\0")


def module_information(content: bytes) -> dict[str, str]:
    """Return the first value of each name; ``content`` is the whole file."""
    found: dict[str, str] = {}
    for match in _TEXT.finditer(content):
        found.setdefault(match[1].decode(), match[2].decode(errors="replace"))
    return found


def modules_needed(content: bytes) -> list[str]:
    """Return the kernel's names of the modules that this one depends on."""
    listed = module_information(content).get("depends", "")
    return [name.replace("-", "_") for name in listed.split(",") if name]
