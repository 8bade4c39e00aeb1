# SPDX-License-Identifier: Apache-2.0
"""Where a kernel's source comes from: a Debian ``linux-source-X`` package, with or without howdah's patches, or any
tree the user names."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from howdah.build.archive import release_order
from howdah.build.cache import Cache, Progress, content_key, file_sha256
from howdah.build.source_package import SourcePackage, find_package, newest_release, provide_newest, provide_package
from howdah.build.source_tree import LEFT_PACKED, TreeContent, read_tree
from howdah.default import DEFAULT_KERNEL
from howdah.errors import HowdahError

PATCHES = Path(__file__).with_name("patches")
_ABOUT = "about.txt"
_LINE = re.compile(r"(?P<release>\d+\.\d+)\s+(?P<what>\S.*)")


@dataclass(frozen=True)
class PatchSet:
    """Patches of our own for a Debian kernel's source: ``debian-6.12+of-2007`` is debian-6.12 with those of one
    directory of ``patches/``. Its ``about.txt`` names the release and says in a line what they do.

    ``release`` is what the patches were written for, ``files`` are in the order in which they are applied: that of
    their names.
    """

    name: str
    release: str
    what: str
    files: tuple[Path, ...]

    @property
    def kernel(self) -> str:
        """The kernel's name in a profile."""
        return f"debian-{self.release}+{self.name}"

    @property
    def key(self) -> str:
        """Changes when the patches do, and with their order."""
        return content_key(self.name, *(file_sha256(file) for file in self.files))


def patch_sets(directory: Path = PATCHES) -> dict[str, PatchSet]:
    """Every set by its name."""
    return {about.parent.name: _read(about) for about in sorted(directory.glob(f"*/{_ABOUT}"))}


def find_patches(name: str, release: str, kernel: str, directory: Path = PATCHES) -> PatchSet:
    """The set called ``name`` for ``release`` of Debian's source. Raises HowdahError naming the kernels there are."""
    known = patch_sets(directory)
    found = known.get(name)
    hint = f"the kernels with patches: {', '.join(each.kernel for each in known.values())}"
    if found is None:
        raise HowdahError(f"there is no set of patches called {name!r}", where=kernel, hint=hint)
    if found.release != release:
        what = f"the patches {name} are written for {found.release} and not for {release}"
        raise HowdahError(what, where=kernel, hint=hint)
    return found


def _read(about: Path) -> PatchSet:
    lines = [line for line in about.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    match = _LINE.fullmatch(" ".join(lines))
    files = tuple(sorted(about.parent.glob("*.patch")))
    if match is None or not files:
        raise HowdahError(
            "this is not a set of patches: it needs a release, what it does, and *.patch files", where=str(about)
        )
    return PatchSet(about.parent.name, match["release"], match["what"], files)


_DEBIAN = re.compile(r"(?:debian-|linux-source-)?(\d+\.\d+|newest)(?:\+([a-z0-9.-]+))?")
_NEWEST = "newest"
_OF_A_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX")
_TREE_FILES = ("Makefile", "Kconfig", "arch/um/Makefile", "net/ipv4/tcp.c")


@dataclass(frozen=True)
class KernelSource:
    """A source that exists. ``key`` changes when its content does; ``description`` goes into run.json.

    It is either an ``archive`` (a .tar.xz of a package), to which ``patches`` belong, or a ``tree`` with its
    ``content``. ``release`` is the kernel's
    version as numbers, (6, 12); empty where the tree does not tell, which counts as newer than all.
    """

    name: str
    description: str
    key: str
    archive: Path | None = None
    tree: Path | None = None
    content: TreeContent | None = None
    release: tuple[int, ...] = ()
    patches: PatchSet | None = None


def release_of(kernel: str) -> tuple[str, PatchSet | None] | None:
    """Release and patches of a kernel that has a name of its own, as ``("6.12", None)`` for debian-6.12.

    None for a tree, and for debian-newest, which is another one each month.
    """
    match = _DEBIAN.fullmatch(kernel)
    if not match or match[1] == _NEWEST:
        return None
    return match[1], None if match[2] is None else find_patches(match[2], match[1], kernel)


def find_source(kernel: str, cache: Cache | None = None) -> KernelSource:
    """Resolve ``debian-6.12`` (also ``6.12``, ``linux-source-6.12``), the same with a set of patches
    (``debian-6.12+of-2007``), ``debian-newest`` or the path of a kernel tree.

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
            hint=f"'howdah build --kernel {kernel}' fetches it.",
        )
    return _of_package(package, match[2])


def provide_source(kernel: str, progress: Progress, cache: Cache) -> KernelSource:
    """The same, with a Debian package fetched when it is not here.

    Raises UnsupportedKernelError when no suite offers it, HowdahError when it cannot be fetched.
    """
    match = _DEBIAN.fullmatch(kernel)
    if not match:
        return _tree(Path(kernel).expanduser())
    release = provide_newest(cache, progress) if match[1] == _NEWEST else match[1]
    if match[2] is not None:
        find_patches(match[2], release, kernel)  # before anything is fetched
    return _of_package(provide_package(release, cache, progress), match[2])


def _of_package(package: SourcePackage, patched: str | None) -> KernelSource:
    # Not where it lies or whence it came: the same package, installed or fetched, is the same kernel.
    key = content_key(package.name, package.version, str(package.archive.stat().st_size))
    description = f"{package.name} {package.version}"
    release = release_order(package.release)
    name = f"debian-{package.release}"
    if patched is None:
        return KernelSource(name, description, key, archive=package.archive, release=release)
    patches = find_patches(patched, package.release, f"{name}+{patched}")
    return KernelSource(
        patches.kernel,
        f"{description} with patches {patched} {patches.key[:12]}",
        content_key(key, patches.key),
        archive=package.archive,
        release=release,
        patches=patches,
    )


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
    content = read_tree(tree)
    version = _version(tree)
    numbers = re.match(r"\d+\.\d+", version)
    release = release_order(numbers[0]) if numbers else ()
    description = f"{tree} {version} {_revision(tree, content)}"
    return KernelSource(str(tree), description, content.sha256[:20], tree=tree, content=content, release=release)


def _version(tree: Path) -> str:
    text = (tree / "Makefile").read_text(errors="replace")
    found: dict[str, str] = dict(
        re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(\S*)$", text, re.MULTILINE)
    )
    numbers = ".".join(found[name] for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL") if found.get(name))
    return numbers + found.get("EXTRAVERSION", "")


def _revision(tree: Path, content: TreeContent) -> str:
    """The revision in words, and the content's hash where no revision tells it."""
    revision = _git(tree, "rev-parse", "HEAD")
    if revision is None or not (tree / ".git").exists():
        return f"(no git, files {content.sha256[:12]})"
    modified = f" modified {content.sha256[:12]}" if _git(tree, "status", "--porcelain") else ""
    return f"git {revision[:12]}{modified}"


def git_environment() -> dict[str, str]:
    """For a git that works on a directory of howdah's, though a hook of another repository may have started us."""
    return {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}


def _git(tree: Path, *arguments: str) -> str | None:
    # Not to lock: otherwise git writes what it learned of the files into the index, which is the person's.
    environment = git_environment()
    try:
        answer = subprocess.run(
            ["git", "--no-optional-locks", "-C", str(tree), *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            env=environment,
        )
    except FileNotFoundError:
        return None
    return answer.stdout.strip("\n") if answer.returncode == 0 else None


def unpack_command(archive: Path, into: Path) -> list[str]:
    """The command that unpacks a package's archive without what a user-mode kernel never compiles."""
    options = ["--strip-components=1", "--no-same-owner", f"--exclude-from={LEFT_PACKED}"]
    return ["tar", "-xJf", str(archive), "-C", str(into), *options]
