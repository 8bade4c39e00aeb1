# SPDX-License-Identifier: Apache-2.0
"""Sends the parts of a guest to a machine that builds nothing, as a bundle, and restores them there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from howdah.build.cache import Cache, file_sha256
from howdah.build.guest_tree import image_of_tree, load_tree
from howdah.build.kernel_build import RECORD
from howdah.build.modules import Module, ModuleSet
from howdah.build.packed_piece import Piece
from howdah.build.tools import load_tools
from howdah.build.uml_kernel import load_kernel
from howdah.engine.engine_bundle import EngineBundle, SentBundle
from howdah.engine.uml.build import Built
from howdah.errors import HowdahError

_KERNEL_FILES = (RECORD, "linux", "build/modules.builtin", "build/modules.builtin.modinfo")
_PROGRAMS = {"kernel": ("linux",), "tool": ("shim.so",)}  # files by kind that the machine's own C library starts


def part_name(kernel: str, modules: tuple[str, ...], packages: tuple[str, ...], wiring: str) -> str:
    """Return the key by which a plan finds its parts in the bundle."""
    return json.dumps([kernel, modules, packages, wiring])


def add_part(bundle: EngineBundle, name: str, built: Built, cache: Cache) -> None:
    """Add the parts in ``built`` to the bundle."""
    kernel = built.kernel
    programs: Mapping[str, tuple[str, ...]] = {} if built.started is not None else _PROGRAMS
    entries = {
        "tools": _piece(bundle, built.tools.directory, programs=programs),
        "kernel": _piece(bundle, kernel.directory, _KERNEL_FILES, programs),
        "tree": _piece(bundle, built.tree.root.parent),
        "agent": _piece(bundle, built.agent),
    }
    modules = [_module(bundle, module, cache) for module in built.module_set.built.values()]
    of_kernel = [_module(bundle, module, cache, keep=True) for module in built.module_set.of_kernel.values()]
    failed = {name: [error.what, error.where, error.hint] for name, error in built.module_set.failed.items()}
    about = {"kernel_name": kernel.name, "kernel_source": kernel.source}
    bundle.content[name] = {**entries, **about, "modules": modules, "of_kernel": of_kernel, "failed": failed}


def add_failure(bundle: EngineBundle, name: str, error: HowdahError) -> None:
    """Record in the bundle why these parts do not build."""
    bundle.content[name] = {"not_built": [error.what, error.where, error.hint]}


def _piece(
    bundle: EngineBundle,
    directory: Path,
    files: tuple[str, ...] | None = None,
    programs: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> str:
    kind = directory.parent.name
    there = None if files is None else tuple(name for name in files if (directory / name).is_file())
    return bundle.add(Piece(f"{kind}/{directory.name}", directory, there, programs.get(kind, ())))


def _module(bundle: EngineBundle, module: Module, cache: Cache, *, keep: bool = False) -> dict[str, Any]:
    """Add a module to the bundle and describe it. ``keep``: copy it, because its directory has other files."""
    directory = module.file.parent
    if keep or not directory.is_relative_to(cache.root):  # a user's .ko file
        directory = _kept(module.file, cache)
    about = {"name": module.name, "srcversion": module.srcversion, "source": module.source}
    more = {"depends": module.depends, "loaded_as": module.loaded_as}
    return {**about, **more, "piece": _piece(bundle, directory), "file": module.file.name}


def _kept(file: Path, cache: Cache) -> Path:
    def copy(directory: Path, _log: Path) -> None:
        shutil.copyfile(file, directory / file.name)

    return cache.build("ready", file_sha256(file)[:20], copy)


def built_of(sent: SentBundle, name: str) -> Built:
    """Restore the parts with this key.

    Raises HowdahError if the bundle lacks them, if they are damaged, or if they did not build.
    """
    part = sent.content.get(name)
    if part is None:
        raise HowdahError(f"what this run is made of was not sent here: {name}")
    if "not_built" in part:
        what, where, hint = part["not_built"]
        raise HowdahError(what, where=where, hint=hint)
    kernel = load_kernel(sent.place(part["kernel"]), name=part["kernel_name"], source=part["kernel_source"])
    modules, of_kernel = (
        {
            each["name"]: Module(
                each["name"],
                sent.place(each["piece"]) / each["file"],
                each["srcversion"],
                each["source"],
                tuple(each["depends"]),
                each["loaded_as"],
            )
            for each in part[kind]
        }
        for kind in ("modules", "of_kernel")
    )
    failed = {name: HowdahError(what, where=where, hint=hint) for name, (what, where, hint) in part["failed"].items()}
    tools, tree = load_tools(sent.place(part["tools"])), load_tree(sent.place(part["tree"]))
    return Built(
        tools,
        kernel,
        tree,
        ModuleSet(modules, failed, of_kernel),
        sent.place(part["agent"]),
        image_of_tree(kernel.image, kernel.image_sha256, tools, tree, Cache()),
    )
