# SPDX-License-Identifier: Apache-2.0
"""Everything the ``uml`` engine builds, in one call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from howdah.engine import share
from howdah.engine.cache import Cache, Progress, content_key
from howdah.engine.supervise import run_logged
from howdah.engine.uml.guest_tree import GuestTree, build_tree, compile_command
from howdah.engine.uml.kernel import Kernel, build_kernel
from howdah.engine.uml.modules import Module, ModuleSet, provide_modules
from howdah.engine.uml.source import DEFAULT_KERNEL
from howdah.engine.uml.tools import Tools, build_tools


@dataclass(frozen=True)
class Built:
    """What a guest is made of. ``agent`` is a directory with the agent's sources and its byte code.

    ``modules`` are those that built, ``module_set`` also says why others did not.
    """

    tools: Tools
    kernel: Kernel
    tree: GuestTree
    module_set: ModuleSet
    agent: Path

    @property
    def modules(self) -> list[Module]:
        return list(self.module_set.built.values())


def build(
    kernel: str,
    modules: Iterable[str],
    progress: Progress,
    cache: Cache | None = None,
    wiring: str = "netlink",
    packages: tuple[str, ...] = (),
) -> Built:
    """Build what is not in the cache; the tree with ``packages`` beside the usual ones.

    Raises HowdahError saying what does not build and why; a module fails alone.
    """
    cache = cache or Cache()
    tools = build_tools(cache)
    tree = build_tree(progress, cache, packages)
    built = build_kernel(kernel, progress, cache)
    ready = provide_modules(built, modules, progress, cache)
    return Built(tools, built, tree, ready, build_agent(wiring, tree, tools, cache))


def build_agent(wiring: str, tree: GuestTree, tools: Tools, cache: Cache) -> Path:
    """A directory with the agent's sources and its byte code."""

    def compile_all(directory: Path, log: Path) -> None:
        share.copy_agent(directory, wiring)
        run_logged(compile_command(tree.root, [directory], directory, "/howdah/in"), log, launcher=tools.launch)

    return cache.build("agent", content_key(share.agent_key(wiring), tree.key), compile_all)


def build_all(kernel: str = DEFAULT_KERNEL, progress: Progress = lambda _what, _done, _total: None) -> dict[str, str]:
    """Build for ``howdah build``; say where each part is."""
    built = build(kernel, (), progress)
    return {
        f"kernel {built.kernel.release}": str(built.kernel.image),
        "guest tree": str(built.tree.root),
        "modules": " ".join(module.name for module in built.modules) or "none",
        **{f"module {name} does not build": str(error) for name, error in built.module_set.failed.items()},
        "tools": str(built.tools.directory),
    }
