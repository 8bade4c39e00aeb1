# SPDX-License-Identifier: Apache-2.0
"""Patches of our own for a Debian kernel's source: ``debian-6.12+of-2007`` is debian-6.12 with those of one directory.

A directory of ``patches/`` is a set. Its ``about.txt`` names the release that the patches are written for and says in a
line what they do; ``*.patch`` are applied in the order of their names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from howdah.build.cache import content_key, file_sha256
from howdah.errors import HowdahError

PATCHES = Path(__file__).with_name("patches")
_ABOUT = "about.txt"
_LINE = re.compile(r"(?P<release>\d+\.\d+)\s+(?P<what>\S.*)")


@dataclass(frozen=True)
class PatchSet:
    """``release`` is what the patches were written for, ``files`` are in the order in which they are applied."""

    name: str
    release: str
    what: str
    files: tuple[Path, ...]

    @property
    def kernel(self) -> str:
        """The kernel's name in a profile."""
        return f"debian-{self.release}+{self.name}"

    @property
    def key(self) -> str:
        """Changes when the patches do, and with their order."""
        return content_key(self.name, *(file_sha256(file) for file in self.files))


def patch_sets(directory: Path = PATCHES) -> dict[str, PatchSet]:
    """Every set by its name."""
    return {about.parent.name: _read(about) for about in sorted(directory.glob(f"*/{_ABOUT}"))}


def find_patches(name: str, release: str, kernel: str, directory: Path = PATCHES) -> PatchSet:
    """The set called ``name`` for ``release`` of Debian's source. Raises HowdahError naming the kernels there are."""
    known = patch_sets(directory)
    found = known.get(name)
    hint = f"the kernels with patches: {', '.join(each.kernel for each in known.values())}"
    if found is None:
        raise HowdahError(f"there is no set of patches called {name!r}", where=kernel, hint=hint)
    if found.release != release:
        what = f"the patches {name} are written for {found.release} and not for {release}"
        raise HowdahError(what, where=kernel, hint=hint)
    return found


def _read(about: Path) -> PatchSet:
    lines = [line for line in about.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    match = _LINE.fullmatch(" ".join(lines))
    files = tuple(sorted(about.parent.glob("*.patch")))
    if match is None or not files:
        raise HowdahError(
            "this is not a set of patches: it needs a release, what it does, and *.patch files", where=str(about)
        )
    return PatchSet(about.parent.name, match["release"], match["what"], files)
