# SPDX-License-Identifier: Apache-2.0
"""Builds everything the ``uml`` engine needs, in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from howdah.build.cache import Cache, Progress
from howdah.build.guest_tree import GuestTree, build_tree, image_of_tree
from howdah.build.kernel_build import KbuildError
from howdah.build.module_sources import Extras
from howdah.build.modules import Module, ModuleSet, modules_recipe, project_sources, provide_modules
from howdah.build.supply import is_in_bundle
from howdah.build.tools import Tools, build_tools
from howdah.build.uml_kernel import (
    Kernel,
    build_kernel,
    kernel_recipe,
    prepared_kernel,
    remember_failure,
    remember_kernel,
    with_headers,
)
from howdah.default import DEFAULT_KERNEL
from howdah.engine.share import build_agent


@dataclass(frozen=True)
class Built:
    """The parts of a guest. ``agent`` is a directory with the agent's sources and byte code.

    ``started`` is the kernel's image, modified to start with the tree's C library; None if the machine's own will do.

    ``modules`` are those that built; ``module_set`` also says why others did not.
    """

    tools: Tools
    kernel: Kernel
    tree: GuestTree
    module_set: ModuleSet
    agent: Path
    started: Path | None = None

    @property
    def modules(self) -> list[Module]:
        return list(self.module_set.built.values())


def build(
    kernel: str,
    modules: Sequence[str],
    progress: Progress,
    cache: Cache | None = None,
    wiring: str = "netlink",
    packages: tuple[str, ...] = (),
    extras: Mapping[str, Extras] = MappingProxyType({}),
) -> Built:
    """Build whatever the cache lacks; the tree with ``packages`` in addition to the usual ones.

    A kernel that this command has already prepared is used as it was then, and one that failed to compile is not
    compiled again (uml_kernel.py).

    Raises HowdahError, which says what does not build and why; a module that fails does not fail the others.
    """
    cache = cache or Cache()
    tools = build_tools(cache)
    tree = build_tree(progress, cache, packages)
    built = prepared_kernel(kernel, cache)
    if built is None:
        try:
            built = build_kernel(kernel, progress, cache)
        except KbuildError as error:
            remember_failure(kernel, cache, error)
            raise
        remember_kernel(kernel, built)
    compiles = any(not item.endswith(".ko") for item in modules)
    if kernel_recipe(kernel) and (
        compiles or not is_in_bundle("module", modules_recipe(built, project_sources()), cache)
    ):
        built = with_headers(built, cache)
    ready = provide_modules(built, modules, progress, cache, extras)
    started = image_of_tree(built.image, built.image_sha256, tools, tree, cache)
    return Built(tools, built, tree, ready, build_agent(wiring, tree, tools, cache), started)


def build_all(kernel: str = DEFAULT_KERNEL, progress: Progress = lambda _what, _done, _total: None) -> dict[str, str]:
    """Build for ``howdah build``; return the location of each part."""
    built = build(kernel, (), progress)
    return {
        f"kernel {built.kernel.release}": str(built.kernel.image),
        "guest tree": str(built.tree.root),
        "modules": " ".join(module.name for module in built.modules) or "none",
        **{f"module {name} does not build": str(error) for name, error in built.module_set.failed.items()},
        "tools": str(built.tools.directory),
    }
