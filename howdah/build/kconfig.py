# SPDX-License-Identifier: Apache-2.0
"""The options of the user-mode kernel: what is wanted, and what a tree made of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

FRAGMENT = Path(__file__).with_name("kernel.config")
_SECTION = re.compile(r"# \[(?P<name>required|optional|modules)(?: (?P<side>before|from) (?P<release>\d+\.\d+))?\]")


@dataclass(frozen=True)
class Wanted:
    """Option names without ``CONFIG_``; ``modules`` are wanted as ``m``, the others as ``y``."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    modules: tuple[str, ...] = ()

    def fragment(self) -> str:
        """Lines for KCONFIG_ALLCONFIG."""
        built_in = "".join(f"CONFIG_{option}=y\n" for option in self.required + self.optional)
        return built_in + "".join(f"CONFIG_{option}=m\n" for option in self.modules)

    def ingredients(self) -> list[str]:
        """All of it, as a part of a kernel's key."""
        return ["required", *self.required, "optional", *self.optional, "modules", *self.modules]


def read_wanted(release: tuple[int, ...] = (), fragment: Path | None = None) -> Wanted:
    """What a kernel of this release is asked for: (6, 12); empty counts as newer than all.

    kernel.config says what its sections mean. Raises ValueError naming a line it cannot read.
    """
    file = fragment or FRAGMENT
    sections: dict[str, list[str]] = {"required": [], "optional": [], "modules": []}
    section, applies = "required", True
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        line = line.strip()
        if line.startswith("# ["):
            match = _SECTION.fullmatch(line)
            if not match:
                raise ValueError(f"{file}:{number}: no section {line[2:]!r}")
            section = match["name"]
            applies = match["release"] is None or _older(release, match["release"]) == (match["side"] == "before")
        elif line.startswith("CONFIG_") and line.endswith(value := "=m" if section == "modules" else "=y"):
            if applies:
                sections[section].append(line.removeprefix("CONFIG_").removesuffix(value))
        elif line and not line.startswith("#"):
            raise ValueError(f"{file}:{number}: neither a comment nor CONFIG_…=y, or =m of a module")
    return Wanted(*(tuple(sections[name]) for name in ("required", "optional", "modules")))


def _older(release: tuple[int, ...], than: str) -> bool:
    return () < release < tuple(map(int, than.split(".")))


def taken(configuration: Path) -> set[str]:
    """Names of the options a .config has as ``y`` or ``m``."""
    found = set()
    for line in configuration.read_text(encoding="utf-8").splitlines():
        name, separator, value = line.partition("=")
        if separator and value in ("y", "m"):
            found.add(name.removeprefix("CONFIG_"))
    return found
