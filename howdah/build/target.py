# SPDX-License-Identifier: Apache-2.0
"""What modules are built for: a user-mode kernel or a distribution's."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class Target(Protocol):
    """``key`` names it in the cache; ``make(...)`` is a command that builds modules for it.

    ``interface`` names all that modules are built against; None where only the kernel itself stands for it. It is in
    ``places``.
    """

    @property
    def key(self) -> str: ...

    @property
    def interface(self) -> str | None: ...

    @property
    def release(self) -> str: ...

    @property
    def image(self) -> Path: ...

    @property
    def image_sha256(self) -> str: ...

    @property
    def vermagic(self) -> str: ...

    @property
    def source_dir(self) -> Path: ...

    @property
    def build_dir(self) -> Path: ...

    @property
    def places(self) -> tuple[Path, ...]: ...

    def make(self, *arguments: str) -> list[str]: ...
