# SPDX-License-Identifier: Apache-2.0
"""The first file system of a virtual machine: the guest tree, or the part of it that the agent uses, as a cpio archive.

The kernel unpacks it on the emulated processor at every boot. If the plan needs nothing else, it therefore has only the
programs that the agent starts, their libraries (as listed by the tree's own loader), and Python's library. Init creates
``modprobe`` when the kernel is up: the kernel would otherwise start it for dozens of optional parts during the boot.
"""

from __future__ import annotations

import fnmatch
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from howdah.build.cache import Cache, Progress, content_key
from howdah.build.cpio import Writer
from howdah.build.guest_tree import MOUNT_POINTS, GuestTree
from howdah.errors import HowdahError
from howdah.plan.plan import Plan

LIBRARIES = "usr/lib/x86_64-linux-gnu"
_LOADER = "lib64/ld-linux-x86-64.so.2"
_LISTED = re.compile(r"=> (?P<file>/\S+)")
_LAYOUT = "2"  # part of every key: raise it when the files of an entry change
_PROGRAMS = (
    "usr/bin/python3.13",
    "usr/bin/dash",
    "usr/bin/env",
    "usr/bin/ip",
    "usr/bin/iperf3",
    "usr/bin/kmod",
    "usr/bin/ss",
    "usr/bin/tcpdump",
    "usr/sbin/ethtool",
    "usr/sbin/tc",
)
_LINKS = ("bin", "lib", "lib64", "sbin", "usr/bin/python3", "usr/bin/sh", "usr/sbin/ip")
_PYTHON = "usr/lib/python3.13"
# Parts of Python's library that a program without a person and a display does not load.
_NOT_LOADED = (
    "*/config-3.13-*",
    "*/ensurepip/*",
    "*/idlelib/*",
    "*/lib2to3/*",
    "*/pydoc_data/*",
    "*/test/*",
    "*/tkinter/*",
    "*/turtledemo/*",
    "*/turtle.py",
    "*/unittest/*",
    "*/venv/*",
    "*/lib-dynload/_sqlite3.*",
    "*/lib-dynload/_test*",
    "*/lib-dynload/xxlimited*",
    "*/lib-dynload/_codecs_*",
)
# What the agent itself loads: congestion controls in BPF.
_LOADED = (f"{LIBRARIES}/libbpf.so.1",)
_FILES = (
    f"{LIBRARIES}/ld-linux-x86-64.so.2",
    f"{LIBRARIES}/libgcc_s.so.1",  # which the C library loads when a thread is cancelled
    "etc/group",
    "etc/hosts",
    "etc/ld.so.cache",
    "etc/nsswitch.conf",
    "etc/passwd",
    "usr/lib64/ld-linux-x86-64.so.2",
)
_DIRECTORIES = ("etc/iproute2", "etc/modprobe.d", "usr/lib/modprobe.d", "usr/share/iproute2", "usr/lib/locale")
_MODPROBE = "usr/sbin/modprobe"


def needs_whole_tree(plan: Plan) -> bool:
    """Return whether the plan runs programs other than the agent's: web servers and clients, flent, perf."""
    ends = [kind for flow in plan.flows for kind in (flow.kind, flow.sink_kind)]
    return not all(kind.in_small_tree for kind in ends) or plan.collect.cpu


def tree_archive(tree: GuestTree, cache: Cache, progress: Progress, *, whole: bool = True) -> Path:
    """Return the guest tree as a cpio archive, made once; unless ``whole``, only what the agent uses.

    Raises HowdahError if the tree lacks a program that the agent runs.
    """

    def pack(directory: Path, _log: Path) -> None:
        progress("pack the guest tree", 0, 0)
        chosen = None if whole else _chosen(tree.root)
        with (directory / "tree.cpio").open("wb") as file:
            archive = Writer(file)
            archive.tree(tree.root, wanted=_wanted(chosen))
            archive.close()

    key = content_key(_LAYOUT, tree.key, "whole" if whole else Path(__file__).read_bytes())
    return cache.build("tree-archive", key, pack, needs_bytes=300 * 2**20) / "tree.cpio"


def _wanted(chosen: set[str] | None) -> Callable[[str], bool]:
    return lambda name: name != _MODPROBE and (chosen is None or name in chosen)


def _chosen(root: Path) -> set[str]:
    library = [file for file in (root / _PYTHON).rglob("*") if not file.is_dir()]
    names = {str(file.relative_to(root)) for file in library}
    names = {name for name in names if not any(fnmatch.fnmatch(name, pattern) for pattern in _NOT_LOADED)}
    loaded = [*_PROGRAMS, *_LOADED, *sorted(name for name in names if "/lib-dynload/" in name)]
    names |= {*_PROGRAMS, *_LOADED, *_libraries(root, loaded)}
    names |= {name for name in (*_LINKS, *_FILES) if (root / name).is_symlink() or (root / name).exists()}
    for directory in _DIRECTORIES:
        names |= {str(file.relative_to(root)) for file in (root / directory).rglob("*")}
    names |= set(MOUNT_POINTS)
    return names | {str(parent) for name in names for parent in Path(name).parents}


def _libraries(root: Path, programs: list[str]) -> set[str]:
    """Return the libraries of the programs, as the tree's own loader lists them: links and the files they lead to."""
    found: set[str] = set()
    waiting: list[Path] = []
    for program in programs:
        if not (root / program).is_file():
            raise HowdahError(f"the guest tree has no {program}", where=str(root))
        answer = list_libraries(root, program)
        if answer.returncode:
            raise HowdahError(f"what {program} loads is incomplete: {answer.stderr.strip()}", where=str(root))
        waiting += listed_files(answer)
    while waiting:
        file = waiting.pop()
        if not file.is_relative_to(root):
            file = root / file.relative_to("/")
        name = str(file.relative_to(root))
        if name in found:
            continue
        found.add(name)
        if file.is_symlink():
            waiting.append(file.parent / file.readlink())
    return {name.replace("lib64/", "usr/lib64/", 1) if name.startswith("lib64/") else name for name in found}


def list_libraries(root: Path, program: str) -> subprocess.CompletedProcess[str]:
    """Run the tree's loader to list libraries; ``program`` is relative to the tree."""
    command = [str(root / _LOADER), "--library-path", str(root / LIBRARIES), "--list", str(root / program)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def listed_files(answer: subprocess.CompletedProcess[str]) -> list[Path]:
    """Return the files named in the loader's output."""
    return [Path(match["file"]) for match in _LISTED.finditer(answer.stdout)]
