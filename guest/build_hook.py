# SPDX-License-Identifier: Apache-2.0
"""Sets the wheel's platform tag, and checks that its content exists."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_MANIFEST = "src/howdah_guest/bundle/bundle.json"


class GuestHook(BuildHookInterface):  # type: ignore[type-arg]
    """Tags the wheel. Its programs are for x86-64 and need no C library of the machine, so musl will do, too."""

    def initialize(self, _version: str, build_data: dict[str, Any]) -> None:
        if not (Path(self.root) / _MANIFEST).is_file():
            raise SystemExit(f"{_MANIFEST} is not there: 'make bundle' fills it and builds the wheel")
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-manylinux_2_17_x86_64.musllinux_1_1_x86_64"
