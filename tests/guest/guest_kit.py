# SPDX-License-Identifier: Apache-2.0
"""What tests of the guest share: everything built, and a guest that runs a shell script."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from howdah.build.modules import Module
from howdah.default import DEFAULT_KERNEL
from howdah.engine.ending import Ending
from howdah.engine.uml.build import Built, build
from howdah.engine.uml.guest import Guest, boot
from howdah.engine.uml.needs import lacks
from howdah.place import PROJECT
from howdah.plan.plan import Plan
from tests.unit.plan_factory import on_engine


def build_or_skip() -> Built:
    """The default kernel and all else, from the cache if it is there; skips where this machine cannot run a guest."""
    missing = lacks()
    if missing:
        pytest.skip(f"the uml engine cannot run here: {missing[0]}")
    return build(DEFAULT_KERNEL, (), lambda _what, _done, _total: None)


def make_guest(built: Built, directory: Path, script: str, **changes: object) -> Guest:
    """A guest in ``directory`` (made) that runs a shell script; /howdah/in is its share/, /howdah/out its raw/."""
    share, raw = directory / "share", directory / "raw"
    share.mkdir(parents=True, exist_ok=True)
    raw.mkdir(exist_ok=True)
    (share / "script.sh").write_text(script)
    values: dict[str, object] = {
        "kernel": built.kernel.image,
        "tree": built.tree.root,
        "tools": built.tools,
        "share": share,
        "raw": raw,
        "console": raw / "console.log",
        "command": ("/bin/sh", "/howdah/in/script.sh"),
        "memory_bytes": 256 * 2**20,
        "wall_clock_limit_s": 120.0,
        "clock_limit_s": 1000,
        **changes,
    }
    return Guest(**values)  # type: ignore[arg-type]


def give_modules(share: Path, modules: Iterable[Module]) -> None:
    """Into share/modules, and their names into share/order: the first is loaded first."""
    (share / "modules").mkdir(parents=True)
    names = []
    for module in modules:
        shutil.copyfile(module.file, share / "modules" / f"{module.name}.ko")
        names.append(f"{module.name}\n")
    (share / "order").write_text("".join(names))


def host_guest(built: Built, directory: Path, plan: Plan, script: str) -> Guest:
    """A guest with the whole of howdah that runs a script of Python, for which it is a machine with root, netem and
    Mininet: /howdah/in/plan.json is the plan for the host engine."""
    host_plan = on_engine(plan, "host", kernel_parameters={}, wall_clock_limit_s=3600.0)
    command = ("/usr/bin/python3", "/howdah/in/try.py")
    memory_bytes = plan.guest_memory_bytes
    guest = make_guest(built, directory, "", command=command, clock_limit_s=4000, memory_bytes=memory_bytes)
    for name in ("howdah", "collectors", "topologies"):
        shutil.copytree(PROJECT / name, guest.share / name, ignore=shutil.ignore_patterns("__pycache__"))
    (guest.share / "try.py").write_text(script)
    (guest.share / "plan.json").write_text(host_plan.to_json())
    return guest


def run_script(built: Built, directory: Path, script: str, **changes: object) -> tuple[Ending, str]:
    """Boot it; how it ended, and what it said on its console."""
    guest = make_guest(built, directory, script, **changes)
    ending = boot(guest, lambda _phase, _done, _total: None)
    return ending, guest.console.read_text()
