# SPDX-License-Identifier: Apache-2.0
"""Checks of what the ``uml`` engine needs: no root, no KVM, but compilers, ptrace and executable memory."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from functools import cache as remembered
from pathlib import Path
from typing import Any

from howdah.build.cache import Cache
from howdah.build.guest_tree import tree_key
from howdah.build.kernel_source import find_source
from howdah.build.modules import modules_recipe, project_sources
from howdah.build.supply import is_in_bundle
from howdah.build.tools import tools_recipe
from howdah.build.uml_kernel import bundled_kernel, kernel_key
from howdah.default import DEFAULT_KERNEL
from howdah.distribution import install_command
from howdah.engine.ending import runtime_base
from howdah.engine.engine import MISSING, NOTE, OK, EngineCheck, Lack, Prerequisite, lacks_of, prerequisites
from howdah.engine.uml import memory
from howdah.errors import HowdahError
from howdah.place import OWN_PYTHON

_MEMORY_BYTES = 512 * 2**20  # memory of a small guest; each plan's own size is checked before it starts
_DISK_BYTES = 1200 * 2**20
_XSTATE_BYTES = 2696  # saved by user-mode Linux up to 6.12; the shim carries the rest
_ENGINE = "uml"
_UNTRACED = "Run without strace -f or a debugger that follows children."


def lacks(kernel: str = DEFAULT_KERNEL, *, compiles: bool = False) -> list[Lack]:
    """Return what prevents runs of this kernel; ``compiles``: they have modules of the user's that must be compiled."""
    # Finding out whether a kernel is built means reading its whole tree, which a machine that can build it need not do.
    return lacks_of(checks(kernel, can_build=True)) and lacks_of(checks(kernel, compiles=compiles))


def checks(
    kernel: str = DEFAULT_KERNEL, *, can_build: bool = False, compiles: bool = False, cache: Cache | None = None
) -> list[EngineCheck]:
    """Make every check, in the order in which to fix them; with ``can_build`` as if nothing were built yet."""
    cache = cache or Cache()
    machine = _machine()
    if machine.status == MISSING:
        return [machine]  # nothing that could be installed there would help
    there = _Available.nothing() if can_build else _Available.found(cache, kernel, compiles=compiles)
    found = [machine, _packages(there, kernel), *_trial(), _filter(), _memory(), _runtime(), _programs(cache)]
    if not (there.kernel and there.tree):
        found.append(_disk(cache))
    found.append(_built(f"kernel {kernel}", there.kernel))
    found.append(_built("guest tree", there.tree))
    return found


@dataclass(frozen=True)
class _Available:
    """Which parts need not be built, because the cache or a bundle has them."""

    kernel: bool
    tree: bool
    tools: bool
    modules: bool

    @staticmethod
    def nothing() -> _Available:
        return _Available(kernel=False, tree=False, tools=False, modules=False)

    @staticmethod
    def found(cache: Cache, kernel: str, *, compiles: bool) -> _Available:
        given = bundled_kernel(kernel, lambda _what, _done, _total: None, cache)
        modules = given is not None and is_in_bundle("module", modules_recipe(given, project_sources()), cache)
        return _Available(
            kernel=given is not None or _kernel_built(cache, kernel),
            tree=is_in_bundle("tree", tree_key(), cache) or cache.find("tree", tree_key()) is not None,
            tools=is_in_bundle("tool", tools_recipe(), cache),
            modules=modules and not compiles,
        )


def _machine() -> EngineCheck:
    name = platform.machine()
    if name == "x86_64" and sys.platform == "linux":
        return EngineCheck(_ENGINE, "machine", OK, "Linux, x86_64")
    return EngineCheck(
        _ENGINE, "machine", MISSING, f"{sys.platform}, {name}", "User-mode Linux needs an x86_64 machine with Linux."
    )


def _packages(there: _Available, kernel: str) -> EngineCheck:
    """Return one check with one remedy: install the ready-made bundle, or the packages needed to build."""
    needed = [item for item in prerequisites() if _is_needed(item, there, kernel)]
    absent = [item for item in needed if not item.there]
    if not absent:
        return EngineCheck(_ENGINE, "packages", OK, f"{len(needed)} there" if needed else "none is needed")
    purposes = dict.fromkeys(item.purpose for item in absent)
    missing = "; ".join(
        f"{', '.join(item.package for item in absent if item.purpose == purpose)} for: {purpose}"
        for purpose in purposes
    )
    ways = [install_command([item.package for item in absent])]
    if not (there.kernel and there.tree and there.tools) and kernel == DEFAULT_KERNEL:
        ways.insert(0, "pip install howdah-guest")
    remedy = ", or ".join(way for way in ways if way)
    return EngineCheck(_ENGINE, "packages", MISSING, f"missing: {missing}", remedy or "use a machine with Debian")


def _is_needed(item: Prerequisite, there: _Available, kernel: str) -> bool:
    """Return whether a package is needed, considering the parts that need not be built."""
    if item.purpose == "Python environment":
        return False  # this very code runs in it
    if item.purpose == "guest tree":
        return not there.tree
    if item.purpose == "kernel source":
        # The source package itself is fetched where it is not installed (howdah/build/source_package.py).
        unpacks = item.package == "xz-utils" and "/" not in kernel
        return not there.kernel and (unpacks or (kernel == DEFAULT_KERNEL and shutil.which("apt-get") is None))
    if item.purpose == "kernels with patches":
        return "+" in kernel and not there.kernel
    if there.kernel and there.modules:
        return not there.tools and item.purpose == "kernel build, guest tools"
    return not there.kernel or item.purpose == "kernel build, guest tools" or item.evidence in ("make", "ld")


@remembered
def _try() -> dict[str, Any] | str:
    try:
        answer = subprocess.run(
            [*OWN_PYTHON, "-m", "howdah.engine.uml.trial"], capture_output=True, text=True, timeout=20, check=True
        )
        value: dict[str, Any] = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        return str(error)
    return value


def _trial() -> list[EngineCheck]:
    trial = _try()
    if isinstance(trial, str):
        return [EngineCheck(_ENGINE, "ptrace", NOTE, f"could not be tried: {trial}")]
    tracer = _tracer()
    found = [_ptrace(trial["ptrace"], tracer), _traced(tracer)]
    if trial["namespaces"]:
        found.append(
            EngineCheck(
                _ENGINE,
                "PID namespaces",
                NOTE,
                f"{trial['namespaces']}: guests are watched by a process instead",
                "sysctl -w kernel.unprivileged_userns_clone=1, or user.max_user_namespaces=10000, allows them.",
            )
        )
    else:
        found.append(EngineCheck(_ENGINE, "PID namespaces", OK, "a guest gets its own"))
    found += [_bound(trial.get(each.name), each) for each in _BOUNDS]
    size = trial["xstate_bytes"]
    if size is None:
        found.append(EngineCheck(_ENGINE, "processor state", NOTE, "no XSAVE area; the older register set is used"))
    elif size > _XSTATE_BYTES:
        found.append(
            EngineCheck(
                _ENGINE, "processor state", OK, f"{size} bytes; the kernel keeps {_XSTATE_BYTES}, the shim all of it"
            )
        )
    else:
        found.append(EngineCheck(_ENGINE, "processor state", OK, f"{size} bytes"))
    return found


@dataclass(frozen=True)
class _Bound:
    """A restriction that separates a guest from this machine, or makes runs equal, with its texts."""

    name: str
    title: str
    there: str
    missing: str
    remedy: str


_BOUNDS = (
    _Bound(
        "files",
        "guest's files",
        "Landlock: a guest reads and writes its own files alone",
        "a module or program in a guest, and what --trust builds, can read and write the files of this user",
        "Landlock is in Linux 5.13 and newer; boot with lsm=landlock,… Run modules and packs that you trust alone.",
    ),
    _Bound(
        "truncation",
        "guest's truncation",
        "a guest cuts no file short that it may not write",
        "a module in a guest, and what --trust builds, can cut files of this user short",
        "Linux 6.2 and newer keep it from that, or run modules and packs that you trust alone.",
    ),
    _Bound(
        "network",
        "guest's network",
        "a guest gets an empty network namespace",
        "a module in a guest, and what --trust builds, can use this machine's network",
        "sysctl -w user.max_net_namespaces=10000, or run modules and packs that you trust alone.",
    ),
    _Bound(
        "addresses",
        "guest's addresses",
        "the same in every run",
        "random: a guest's free memory differs between runs, and 'howdah rerun' finds it",
        "A container must allow personality(2), or prctl(2) with PR_SET_MM.",
    ),
)


def why_unconfined() -> str | None:
    """Return what prevents this machine from confining a guest; None if a guest's code cannot reach the user's data."""
    trial = _try()
    if isinstance(trial, str):
        return f"it could not be tried: {trial}"
    for name in ("namespaces", "files", "truncation", "network"):
        if (problem := trial.get(name, "not tried")) is not None:
            return f"{name}: {problem}"
    return None


def _bound(problem: str | None, bound: _Bound) -> EngineCheck:
    if problem is None:
        return EngineCheck(_ENGINE, bound.title, OK, bound.there)
    return EngineCheck(_ENGINE, bound.title, NOTE, f"{problem}: {bound.missing}", bound.remedy)


def _ptrace(problem: str | None, tracer: str | None) -> EngineCheck:
    if problem is None:
        return EngineCheck(_ENGINE, "ptrace", OK, "tried: a child can be traced, its system calls taken over")
    if tracer is not None:
        return EngineCheck(_ENGINE, "ptrace", MISSING, f"process {tracer} traces this one already", _UNTRACED)
    scope = Path("/proc/sys/kernel/yama/ptrace_scope")
    hint = "sysctl -w kernel.yama.ptrace_scope=1" if scope.exists() and scope.read_text().strip() == "3" else None
    return EngineCheck(
        _ENGINE, "ptrace", MISSING, problem, hint or "A container must allow ptrace (--cap-add SYS_PTRACE)."
    )


def _tracer() -> str | None:
    match = re.search(r"^TracerPid:\s*(\d+)$", Path("/proc/self/status").read_text(), re.MULTILINE)
    return match[1] if match and match[1] != "0" else None


def _traced(tracer: str | None) -> EngineCheck:
    if tracer is None:
        return EngineCheck(_ENGINE, "debugger", OK, "none attached")
    return EngineCheck(_ENGINE, "debugger", NOTE, f"process {tracer}: a guest cannot be traced twice", _UNTRACED)


def _memory() -> EngineCheck:
    tried = [memory.examine(path, _MEMORY_BYTES) for path in memory.candidates()]
    good = next((item for item in tried if item.problem is None), None)
    if good:
        others = "".join(f"; {item.path}: {item.problem}" for item in tried if item.problem)
        return EngineCheck(
            _ENGINE, "guest memory", OK, f"{good.path}, {good.free_bytes >> 20} MiB free, executable{others}"
        )
    problems = "; ".join(f"{item.path}: {item.problem}" for item in tried)
    return EngineCheck(
        _ENGINE,
        "guest memory",
        MISSING,
        problems,
        "mount -o remount,exec,size=2G /dev/shm, or name a directory in HOWDAH_MEMORY_DIR.",
    )


def _runtime() -> EngineCheck:
    try:
        return EngineCheck(_ENGINE, "control files", OK, str(runtime_base()))
    except HowdahError as error:
        return EngineCheck(_ENGINE, "control files", MISSING, error.what, error.hint)


def _filter() -> EngineCheck:
    """Report a seccomp filter, as containers have. Whatever it forbids shows up in the other checks."""
    status = Path("/proc/self/status").read_text()
    mode = re.search(r"^Seccomp:\s*(\d)$", status, re.MULTILINE)
    privileges = re.search(r"^NoNewPrivs:\s*1$", status, re.MULTILINE)
    said = "a filter is in force, as in a container" if mode and mode[1] != "0" else "no filter"
    return EngineCheck(_ENGINE, "seccomp", OK, said + ("; no new privileges" if privileges else ""))


def _programs(cache: Cache) -> EngineCheck:
    """Check that the cache is not mounted noexec: built programs are started from it."""
    place = cache.root
    while not place.exists():
        place = place.parent
    if os.statvfs(place).f_flag & os.ST_NOEXEC:
        return EngineCheck(
            _ENGINE,
            "programs",
            MISSING,
            f"{place} is mounted noexec, and the cache is there",
            "Set HOWDAH_CACHE to a directory that is not.",
        )
    return EngineCheck(_ENGINE, "programs", OK, f"may be started from {cache.root}")


def _disk(cache: Cache) -> EngineCheck:
    place = cache.root
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free
    if free >= _DISK_BYTES:
        return EngineCheck(_ENGINE, "disk", OK, f"{free >> 20} MiB free for the cache at {cache.root}")
    return EngineCheck(
        _ENGINE,
        "disk",
        MISSING,
        f"{free >> 20} MiB free at {place}, {_DISK_BYTES >> 20} MiB needed to build the kernel",
        "Free some space, or set HOWDAH_CACHE to a directory on another disk.",
    )


def _kernel_built(cache: Cache, kernel: str) -> bool:
    try:
        return cache.find("kernel", kernel_key(find_source(kernel))) is not None
    except HowdahError:
        return False


def _built(what: str, there: bool) -> EngineCheck:
    if there:
        return EngineCheck(_ENGINE, what, OK, "built")
    return EngineCheck(_ENGINE, what, NOTE, "not built yet", "'howdah build', or the first run, builds it.")
