# SPDX-License-Identifier: Apache-2.0
"""What the tests of build trees edit and build."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from howdah.build.build_tree import BuildTree
from howdah.build.cache import Cache
from howdah.build.uml_kernel import Kernel, build_kernel
from tests.unit.kernel_tree import write_tree


class Bench:
    """A kernel tree, a cache and its build tree."""

    def __init__(self, root: Path) -> None:
        self.tree = write_tree(root / "my linux")  # with a space: make sees its copy alone
        self.cache = Cache(root / "cache")
        self.build_tree = BuildTree(self.tree, self.cache)
        self.hold = root / "hold"

    def edit(self, name: str, text: str) -> Path:
        file = self.tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")
        return file

    def build(self) -> Kernel:
        return build_kernel(str(self.tree), lambda _what, _done, _total: None, self.cache)

    def compiled(self, kernel: Kernel) -> list[str]:
        """What the build of a kernel compiled, by its log."""
        log = self.cache.log("kernel", kernel.key).read_text()
        return sorted(line.split("/")[-1] for line in log.splitlines() if line.startswith("  CC"))


def until(there: Callable[[], bool]) -> None:
    for _ in range(3000):
        try:
            if there():
                return
        except OSError:
            pass
        time.sleep(0.01)
    raise AssertionError("it did not come")
