# SPDX-License-Identifier: Apache-2.0
"""Which libraries a program of a guest tree loads, as the tree's own loader finds them."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

LIBRARIES = "usr/lib/x86_64-linux-gnu"
_LOADER = "lib64/ld-linux-x86-64.so.2"
_LISTED = re.compile(r"=> (?P<file>/\S+)")


def list_libraries(root: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Ask the loader; ``program`` is relative to the tree."""
    command = [str(root / _LOADER), "--library-path", str(root / LIBRARIES), "--list", str(root / program)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def listed_files(answer: subprocess.CompletedProcess[str]) -> list[Path]:
    """The files that an answer of the loader names."""
    return [Path(match["file"]) for match in _LISTED.finditer(answer.stdout)]
