# SPDX-License-Identifier: Apache-2.0
"""The options of the user-mode kernel: what is wanted, and what a tree made of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FRAGMENT = Path(__file__).with_name("kernel.config")


@dataclass(frozen=True)
class Wanted:
    """Option names without ``CONFIG_``; every one is wanted as ``y``."""

    required: tuple[str, ...]
    optional: tuple[str, ...]


def read_wanted(fragment: Path = FRAGMENT) -> Wanted:
    """Read kernel.config; its text says what the sections mean."""
    sections: dict[str, list[str]] = {"required": [], "optional": []}
    section = "required"
    for number, line in enumerate(fragment.read_text(encoding="utf-8").splitlines(), 1):
        line = line.strip()
        if line.startswith("# [") and line.endswith("]"):
            section = line[3:-1]
            if section not in sections:
                raise ValueError(f"{fragment}:{number}: no section {section!r}")
        elif line.startswith("CONFIG_") and line.endswith("=y"):
            sections[section].append(line.removeprefix("CONFIG_").removesuffix("=y"))
        elif line and not line.startswith("#"):
            raise ValueError(f"{fragment}:{number}: neither a comment nor CONFIG_…=y")
    return Wanted(tuple(sections["required"]), tuple(sections["optional"]))


def taken(configuration: Path) -> set[str]:
    """Names of the options a .config has as ``y`` or ``m``."""
    found = set()
    for line in configuration.read_text(encoding="utf-8").splitlines():
        name, separator, value = line.partition("=")
        if separator and value in ("y", "m"):
            found.add(name.removeprefix("CONFIG_"))
    return found
