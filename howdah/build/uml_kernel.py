# SPDX-License-Identifier: Apache-2.0
"""The user-mode kernel: configured, compiled and cached with all that is needed to build modules against it."""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass
from pathlib import Path

from howdah.build.archive import release_order
from howdah.build.build_tree import TreeChangedError
from howdah.build.cache import Cache, Progress, content_key
from howdah.build.kernel_build import RECORD, BuiltKernel, KbuildError, KernelBuild
from howdah.build.kernel_make import IMAGE_FLAGS, make_command, read_wanted
from howdah.build.kernel_source import KernelSource, provide_source, release_of
from howdah.build.supply import entry_from_bundle
from howdah.build.tools import build_tools, compiler_version, linker_version
from howdah.errors import HowdahError

_SPACE_BYTES = 900 * 2**20
# Part of every key: raise it when the files of an entry change.
_LAYOUT, _LAYOUT_OF_A_TREE = "1", "tree 1"
_ATTEMPTS = 3  # at copying a tree that changes meanwhile


@dataclass(frozen=True, kw_only=True)
class Kernel(BuiltKernel):
    """A built kernel. ``source_dir`` and ``build_dir`` are for ``make M=``."""

    directory: Path
    image: Path
    build_dir: Path
    source_dir: Path

    @property
    def key(self) -> str:
        return self.directory.name

    @property
    def places(self) -> tuple[Path, ...]:
        return self.source_dir, self.build_dir

    def make(self, *arguments: str) -> list[str]:
        """Return the ``make`` command for modules of this kernel."""
        return make_command(self.source_dir, self.build_dir, *arguments)


def kernel_key(source: KernelSource) -> str:
    options = read_wanted(source.release).ingredients()
    if source.tree:
        return content_key(_LAYOUT_OF_A_TREE, IMAGE_FLAGS, source.key, *options, compiler_version(), linker_version())
    return content_key(_LAYOUT, IMAGE_FLAGS, source.key, *options, compiler_version())


def kernel_recipe(kernel: str) -> str | None:
    """Return a key of a Debian kernel's configuration, independent of its source's update and the compiler.

    None for other kernels, which are identified by their source.
    """
    named = release_of(kernel)
    if named is None:
        return None
    release, patches = named
    options = read_wanted(release_order(release)).ingredients()
    return content_key(_LAYOUT, IMAGE_FLAGS, release, patches.key if patches else "", *options)


def headers_recipe(kernel: Kernel) -> str:
    """Return a key of what modules of a kernel are built against."""
    return content_key(_LAYOUT, "headers", kernel.image_sha256)


def with_headers(kernel: Kernel, cache: Cache) -> Kernel:
    """Return the kernel with the files that modules are built against, which bundles carry separately.

    Raises HowdahError if they are not available.
    """
    if kernel.source_dir.is_dir():
        return kernel
    entry = entry_from_bundle("headers", headers_recipe(kernel), cache)
    if entry is None:
        raise HowdahError(
            f"modules cannot be built here for the kernel {kernel.release}: the bundle that it comes from lacks what "
            "they are built against",
            where=kernel.name,
            hint="Set HOWDAH_BUNDLE=none to build the kernel here, or take a newer bundle.",
        )
    return dataclasses.replace(kernel, build_dir=entry / "build", source_dir=entry / "source")


def bundled_kernel(kernel: str, progress: Progress, cache: Cache) -> Kernel | None:
    """Return the kernel from a bundle; None if no bundle has it."""
    recipe = kernel_recipe(kernel)
    if recipe is None:
        return None
    entry = entry_from_bundle(
        "kernel", recipe, cache, lambda: progress("kernel (unpacked by another howdah, waiting)", 0, 0)
    )
    return load_kernel(entry) if entry else None


def build_kernel(kernel: str, progress: Progress, cache: Cache | None = None) -> Kernel:
    """Return ``debian-VERSION[+PATCHES]``, ``debian-newest`` or the tree at a path, from a bundle, the cache or built.

    The objects of a tree are kept (see build_tree.py), so its next state compiles only what has changed.

    Raises HowdahError that names an unavailable package, a wrong tree, the options that a tree lacks, or the file and
    line that does not compile.
    """
    cache = cache or Cache()
    given = bundled_kernel(kernel, progress, cache)
    if given is not None:
        return given
    for _attempt in range(_ATTEMPTS):
        source = provide_source(kernel, progress, cache)
        key = kernel_key(source)
        try:
            if cache.find("kernel", key) is None:
                _build(source, key, progress, cache)
        except TreeChangedError:
            continue
        # The same content may have been built from another directory, or before it was committed.
        return dataclasses.replace(load_kernel(cache.path("kernel", key)), name=source.name, source=source.description)
    raise HowdahError("the files of this kernel tree keep changing while they are read", where=kernel)


def _build(source: KernelSource, key: str, progress: Progress, cache: Cache) -> None:
    tools = build_tools(cache)
    cache.build(
        "kernel",
        key,
        lambda directory, log: KernelBuild(source, tools, cache, directory, log, progress).run(),
        needs_bytes=_SPACE_BYTES,
        waiting=lambda: progress("kernel (built by another howdah, waiting)", 0, 0),
        goes_on=source.content is None,  # a tree's objects stay in its build tree
        sealed=("linux", RECORD),  # the files that run; building modules writes to build/
    )


def load_kernel(directory: Path, **known: str) -> Kernel:
    """Read an entry of the cache; ``known`` overrides fields of its record. Raises HowdahError if it is damaged."""
    try:
        record = {**json.loads((directory / RECORD).read_text()), **known}
        record["options_not_taken"] = tuple(record["options_not_taken"])
        kernel = Kernel(
            directory=directory,
            image=directory / "linux",
            build_dir=directory / "build",
            source_dir=directory / "source",
            **record,
        )
        if kernel.image.is_file():
            return kernel
    except (OSError, ValueError, TypeError, KeyError):
        pass
    raise HowdahError(
        "this built kernel is damaged", where=str(directory), hint=f"Remove it ('rm -r {directory}') to build it again."
    )


# A command's runs use the kernels that it prepared, even if a tree is edited meanwhile. Each run is a separate process
# that reads this variable. Otherwise each would read the whole tree again, and one started after an edit would measure
# another kernel than its key says.
_VARIABLE = "HOWDAH_PREPARED_KERNELS"  # internal; JSON, {plan's name of a kernel: [directory, name, source]}

# Failed compilations, so that no other item of the command waits for the same failure.
_refused: dict[tuple[Path, str], KbuildError] = {}  # by cache, and the plan's name of the kernel


def forget_kernels() -> None:
    """Forget prepared kernels, so that the next build reads trees again and uses their current state."""
    os.environ.pop(_VARIABLE, None)
    _refused.clear()


def remember_failure(named: str, cache: Cache, error: KbuildError) -> None:
    _refused[cache.root, named] = error


def remember_kernel(named: str, kernel: Kernel) -> None:
    os.environ[_VARIABLE] = json.dumps({**_known(), named: [str(kernel.directory), kernel.name, kernel.source]})


def prepared_kernel(named: str, cache: Cache) -> Kernel | None:
    """Return the kernel that this command has prepared; None if it has not.

    Raises HowdahError if it has been removed since, and KbuildError if it did not compile.
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
