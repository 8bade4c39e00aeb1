# SPDX-License-Identifier: Apache-2.0
"""The kernels a command has prepared: its runs take those, whatever is done to a tree while they are made.

What did not compile is known as well: another item of the command that asks for it need not wait for it again.

A run is made by a process of its own, which reads its environment. Without that, each run would read the whole
tree again, and one that begins after an edit would measure another kernel than its key says.
"""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

from howdah.build.cache import Cache
from howdah.build.kernel_build import KbuildError
from howdah.build.uml_kernel import Kernel, load_kernel
from howdah.errors import HowdahError

_VARIABLE = "HOWDAH_PREPARED_KERNELS"  # not for people: JSON, what a plan calls a kernel: [directory, name, source]

_refused: dict[tuple[Path, str], KbuildError] = {}  # by cache, and what a plan calls the kernel


def forget_kernels() -> None:
    """Forget the trees that were read: the next one may be another state of a tree that was prepared."""
    os.environ.pop(_VARIABLE, None)
    _refused.clear()


def remember_refusal(named: str, cache: Cache, error: KbuildError) -> None:
    _refused[cache.root, named] = error


def remember_kernel(named: str, kernel: Kernel) -> None:
    os.environ[_VARIABLE] = json.dumps({**_known(), named: [str(kernel.directory), kernel.name, kernel.source]})


def prepared_kernel(named: str, cache: Cache) -> Kernel | None:
    """The kernel that this command prepared, None if it did not.

    Raises HowdahError if it was removed since, and KbuildError if it did not compile.
    """
    if (refused := _refused.get((cache.root, named))) is not None:
        raise KbuildError(refused.what, where=refused.where, hint=refused.hint)
    known = _known().get(named)
    if known is None or not Path(known[0]).is_relative_to(cache.root):
        return None
    directory, name, source = Path(known[0]), known[1], known[2]
    if not directory.is_dir():
        raise HowdahError(
            "the kernel that was prepared for this run is no longer in the cache",
            where=str(directory),
            hint="Run the command again.",
        )
    return dataclasses.replace(load_kernel(directory), name=name, source=source)


def _known() -> dict[str, list[str]]:
    known: dict[str, list[str]] = json.loads(os.environ.get(_VARIABLE, "{}"))
    return known
