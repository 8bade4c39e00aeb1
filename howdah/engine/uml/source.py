# SPDX-License-Identifier: Apache-2.0
"""Where a kernel's source comes from: a Debian ``linux-source-X`` package, or any tree the user names."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from howdah.engine.cache import Cache, Progress, content_key, file_sha256
from howdah.engine.uml.archive import release_order
from howdah.engine.uml.package import (
    SourcePackage,
    find_package,
    newest_release,
    provide_newest,
    provide_package,
)
from howdah.errors import HowdahError

DEFAULT_KERNEL = "debian-6.12"
_DEBIAN = re.compile(r"(?:debian-|linux-source-)?(\d+\.\d+|newest)")
_NEWEST = "newest"
_TREE_FILES = ("Makefile", "Kconfig", "arch/um/Makefile", "net/ipv4/tcp.c")

# tar patterns, one a line. A user-mode kernel has no hardware: of most drivers and of other machines' code only the
# Kconfig files and Makefiles, which the rest of the tree includes, are unpacked. It saves a gigabyte of disk.
LEFT_PACKED = Path(__file__).with_name("left-packed.txt")


@dataclass(frozen=True)
class KernelSource:
    """A source that exists. ``key`` changes when its content does; ``description`` goes into run.json.

    Exactly one of ``archive`` (a .tar.xz of a package) and ``tree`` is set. ``release`` is the kernel's version as
    numbers, (6, 12); empty where the tree does not tell, which counts as newer than all.
    """

    name: str
    description: str
    key: str
    archive: Path | None = None
    tree: Path | None = None
    release: tuple[int, ...] = ()


def find_source(kernel: str, cache: Cache | None = None) -> KernelSource:
    """Resolve ``debian-6.12`` (also ``6.12``, ``linux-source-6.12``), ``debian-newest`` or the path of a kernel tree.

    Only what is on this machine is found. Raises HowdahError naming what is wrong with it.
    """
    match = _DEBIAN.fullmatch(kernel)
    if not match:
        return _tree(Path(kernel).expanduser())
    cache = cache or Cache()
    release = newest_release(cache) if match[1] == _NEWEST else match[1]
    package = find_package(release, cache) if release else None
    if package is None:
        raise HowdahError(
            f"the source of {kernel} is not here",
            hint=f"'howdah build --kernel {kernel}' fetches it; so does apt install linux-source-{release or 'X'}.",
        )
    return _of_package(package)


def provide_source(kernel: str, progress: Progress, cache: Cache) -> KernelSource:
    """The same, with a Debian package fetched when it is not here.

    Raises UnsupportedKernelError when no suite offers it, HowdahError when it cannot be fetched.
    """
    match = _DEBIAN.fullmatch(kernel)
    if not match:
        return _tree(Path(kernel).expanduser())
    release = provide_newest(cache, progress) if match[1] == _NEWEST else match[1]
    return _of_package(provide_package(release, cache, progress))


def _of_package(package: SourcePackage) -> KernelSource:
    # Not where it lies or whence it came: the same package, installed or fetched, is the same kernel.
    key = content_key(package.name, package.version, str(package.archive.stat().st_size))
    description = f"{package.name} {package.version}"
    release = release_order(package.release)
    return KernelSource(f"debian-{package.release}", description, key, archive=package.archive, release=release)


def _tree(tree: Path) -> KernelSource:
    if not tree.is_dir():
        known = "a directory that is not there" if not tree.exists() else "a file"
        raise HowdahError(
            f"the kernel is neither debian-VERSION nor a source tree: {known}",
            where=str(tree),
            hint=f"Name a kernel source tree, {DEFAULT_KERNEL} or debian-newest.",
        )
    tree = tree.resolve()
    missing = [name for name in _TREE_FILES if not (tree / name).exists()]
    if missing:
        raise HowdahError(f"this is not a Linux source tree: it has no {missing[0]}", where=str(tree))
    for trace in (".config", "include/config", "arch/um/include/generated", "arch/x86/include/generated"):
        if (tree / trace).exists():
            raise HowdahError(
                f"a kernel was configured or built inside this tree (it has {trace}), so none can be built beside it",
                where=str(tree),
                hint=f"Clean it with 'make -C {tree} mrproper' (this removes its .config), or name a fresh checkout: "
                f"'git -C {tree} worktree add ../linux-howdah'.",
            )
    if any(character in str(tree) for character in " :"):
        raise HowdahError(
            "the kernel's own build cannot work in a directory with spaces or colons in its name", where=str(tree)
        )
    revision, key = _revision(tree)
    version = _version(tree)
    numbers = re.match(r"\d+\.\d+", version)
    release = release_order(numbers[0]) if numbers else ()
    return KernelSource(str(tree), f"{tree} {version} {revision}".strip(), key, tree=tree, release=release)


def _version(tree: Path) -> str:
    text = (tree / "Makefile").read_text(errors="replace")
    found: dict[str, str] = dict(
        re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(\S*)$", text, re.MULTILINE)
    )
    numbers = ".".join(found[name] for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL") if found.get(name))
    return numbers + found.get("EXTRAVERSION", "")


def _revision(tree: Path) -> tuple[str, str]:
    """Revision in words, and the key of the tree's content."""
    revision = _git(tree, "rev-parse", "HEAD")
    if revision is None or not (tree / ".git").exists():
        key = _files_key(tree)
        return f"(no git, files {key[:12]})", key
    changes = _git(tree, "diff", "HEAD") or ""
    untracked = (_git(tree, "ls-files", "--others", "--exclude-standard", "-z") or "").split("\0")
    contents = [name + file_sha256(tree / name) for name in sorted(untracked) if name and (tree / name).is_file()]
    words = f"git {revision[:12]}"
    if changes or contents:
        words += f" modified {content_key(changes, *contents)[:12]}"
    return words, content_key(str(tree), revision, changes, *contents)


def _git(tree: Path, *arguments: str) -> str | None:
    try:
        answer = subprocess.run(
            ["git", "-C", str(tree), *arguments], capture_output=True, text=True, errors="replace", check=False
        )
    except FileNotFoundError:
        return None
    return answer.stdout.strip("\n") if answer.returncode == 0 else None


def _files_key(tree: Path) -> str:
    """Hash of every file's name, size and time of change."""
    digest = hashlib.sha256(str(tree).encode())
    for directory, subdirectories, files in os.walk(tree):
        subdirectories.sort()
        for name in sorted(files):
            path = os.path.join(directory, name)  # noqa: PTH118 - 80 000 files: Path objects double the time
            status = os.lstat(path)
            digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:20]


def unpack_command(archive: Path, into: Path) -> list[str]:
    """The command that unpacks a package's archive without what a user-mode kernel never compiles."""
    options = ["--strip-components=1", "--no-same-owner", f"--exclude-from={LEFT_PACKED}"]
    return ["tar", "-xJf", str(archive), "-C", str(into), *options]
