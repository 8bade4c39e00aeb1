# SPDX-License-Identifier: Apache-2.0
"""A kernel tree of one's own: built once, and again after an edit. Minutes of work, so only when asked for.

Also says whether what was built step by step is what a build from nothing gives.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from howdah.build.build_tree import BuildTree
from howdah.build.cache import Cache
from howdah.build.kernel_source import find_source, provide_source
from howdah.build.uml_kernel import build_kernel, kernel_key
from tests.bench.figure import Figure
from tests.bench.simulation import ROOT

PROFILE = """\
# SPDX-License-Identifier: Apache-2.0
howdah: 1
name: kernel-tree
path: {rate: 20 Mbit/s, rtt: 60 ms, buffer: 2 bdp}
algorithm: cubic
duration: 3 s
"""
EDITS = (
    ("one file of net/ipv4", "net/ipv4/tcp_input.c", "<= 20"),
    ("a header of it", "include/net/tcp.h", ""),
)


def kernel_tree(place: Path) -> Iterator[Figure]:
    """Debian's 6.12 as a tree. Raises RuntimeError if a kernel that grew by edits is not what one from nothing is."""
    place.mkdir(parents=True)
    tree, profile = place / "linux", place / "tree.yaml"
    cache = Cache()
    archive = provide_source("debian-6.12", _ignore, cache).archive
    assert archive is not None
    tree.mkdir()
    subprocess.run(["tar", "-xJf", archive, "-C", tree, "--strip-components=1", "--no-same-owner"], check=True)
    profile.write_text(PROFILE, encoding="utf-8")
    made: set[Path] = set()
    _edit(tree / EDITS[0][1])  # else the cache may have it
    try:
        yield from _run(profile, tree, place, "first build", "")
        made.add(_entry(tree, cache))
        yield from _run(profile, tree, place, "nothing edited", "")
        for what, name, target in EDITS:
            _edit(tree / name)
            yield from _run(profile, tree, place, f"{what} edited", target)
            made.add(_entry(tree, cache))
        grown = build_kernel(str(tree), _ignore, cache)
        BuildTree(tree, cache).remove()
        shutil.rmtree(grown.directory)
        anew = build_kernel(str(tree), _ignore, cache)
        if (grown.image_sha256, grown.interface) != (anew.image_sha256, anew.interface):
            raise RuntimeError("the kernel that was built step by step is not that of a build from nothing")
    finally:
        BuildTree(tree, cache).remove()
        for entry in made:
            shutil.rmtree(entry, ignore_errors=True)


def _run(profile: Path, tree: Path, place: Path, what: str, target: str) -> Iterator[Figure]:
    """From the command to the report."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    command = [sys.executable, "-m", "howdah.command.main", "run", str(profile), "--again", "--kernel", str(tree)]
    with (place / "kernel-tree.log").open("ab") as log:
        subprocess.run([*command, "--runs", str(place / "runs")], cwd=ROOT, check=True, stdout=log, stderr=log)
    wall_s, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    processor_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    cores = len(os.sched_getaffinity(0))
    yield Figure(f"kernel tree: {what}", wall_s, "s", target, f"a run of 3 s and its report too; {cores} cores")
    yield Figure(f"kernel tree: {what}, processor time", processor_s, "s")


def _edit(file: Path) -> None:
    with file.open("a", encoding="utf-8") as opened:
        opened.write(f"\nextern int howdah_edited_{time.time_ns()};\n")


def _entry(tree: Path, cache: Cache) -> Path:
    return cache.path("kernel", kernel_key(find_source(str(tree))))


def _ignore(_what: str, _done: int, _total: int) -> None:
    """No progress display."""
