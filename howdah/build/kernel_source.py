# SPDX-License-Identifier: Apache-2.0
"""Kernel sources: a Debian ``linux-source-X`` package, with or without howdah's patches, or any tree the user names.

A tree is identified by content: by every file that a build could read. All files are read each time, and no time stamp
is trusted, so that no change can go unnoticed (an older version checked out, a copy that preserves times, an edit while
a command runs). It takes a second or two, because only files for a user-mode kernel are read: left-packed.txt lists the
others.
"""

from __future__ import annotations

import contextlib
import errno
import fnmatch
import hashlib
import os
import re
import subprocess
from dataclasses import dataclass
from functools import cache as remembered
from functools import cached_property
from pathlib import Path

from howdah.build.archive import release_order
from howdah.build.cache import Cache, Progress, content_key, file_sha256
from howdah.build.source_package import SourcePackage, find_package, newest_release, provide_newest, provide_package
from howdah.default import DEFAULT_KERNEL
from howdah.errors import HowdahError

# tar patterns, one per line. A user-mode kernel has no hardware: of most drivers and of other architectures it needs
# only the Kconfig files and makefiles that the rest of the tree includes. This saves a gigabyte of disk.
LEFT_PACKED = Path(__file__).with_name("left-packed.txt")

FILE, PROGRAM, LINK = "f", "x", "l"  # a program is an executable file
_GIT = ".git"
# Temporary files of editors, which come and go while a file is open.
_EDITORS = re.compile(r".*~|#.*#|\.#.*|\..*\.sw[a-z]")


@dataclass(frozen=True)
class TreeContent:
    """``files`` maps names relative to ``root`` to their content: ``f:SHA256``, ``x:SHA256`` or ``l:TARGET``."""

    root: Path
    files: dict[str, str]

    @cached_property
    def sha256(self) -> str:
        """A digest of names and contents, independent of location and times."""
        return files_sha256(self.files)


def files_sha256(files: dict[str, str]) -> str:
    """Return a digest of names and contents in the form of TreeContent."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(os.fsencode(f"{name}\0{files[name]}\n"))
    return digest.hexdigest()


def read_tree(root: Path) -> TreeContent:
    """Read a tree. Raises HowdahError that names an unreadable file."""
    reader = _ArchiveReader(str(root))
    try:
        reader.directory("", (os.path.realpath(root),))
    except OSError as error:
        raise HowdahError(
            f"a file of the kernel tree cannot be read: {error.strerror}", where=str(error.filename or root)
        ) from error
    return TreeContent(root, reader.files)


def content_of(path: str, mode: int) -> tuple[str, bytes]:
    """Return a regular file's content in the form of TreeContent, and its bytes."""
    with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - 30 000 files: Path objects double the time
        data = file.readall()
    kind = PROGRAM if mode & 0o111 else FILE
    return f"{kind}:{hashlib.sha256(data).hexdigest()}", data


class _ArchiveReader:
    def __init__(self, root: str) -> None:
        self.root = root
        self.real_root = os.path.realpath(root)
        self.files: dict[str, str] = {}

    def directory(self, name: str, above: tuple[str, ...]) -> None:
        """Read a directory. ``name`` is relative and ends with a slash, empty for the root; ``above`` are the real
        paths of its parents, to detect loops."""
        with os.scandir(f"{self.root}/{name}") as entries:
            for entry in entries:
                if entry.name == _GIT or _EDITORS.fullmatch(entry.name):
                    continue
                if entry.is_symlink():
                    self._link(name, entry, above)
                elif entry.is_dir():
                    self.directory(f"{name}{entry.name}/", (*above, f"{above[-1]}/{entry.name}"))
                elif entry.is_file() and not is_left_packed(name, entry.name):
                    self._file(name + entry.name, entry)

    def _file(self, name: str, entry: os.DirEntry[str]) -> None:
        with contextlib.suppress(FileNotFoundError):  # removed since the directory was read
            self.files[name] = content_of(entry.path, entry.stat().st_mode)[0]

    def _link(self, name: str, entry: os.DirEntry[str], above: tuple[str, ...]) -> None:
        """Record a link within the tree as a link, and the target of any other as ordinary content."""
        target = str(Path(entry.path).readlink())
        real = os.path.realpath(entry.path)
        stays = not target.startswith("/") and not _leads_out(name + target)
        if stays and real.startswith(f"{self.real_root}/"):
            self.files[name + entry.name] = f"{LINK}:{target}"
        elif entry.is_dir():
            if real in above:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), entry.path)
            self.directory(f"{name}{entry.name}/", (*above, real))
        elif entry.is_file() and not is_left_packed(name, entry.name):
            self._file(name + entry.name, entry)
        # Any other link is broken: a build could not read it.


def _leads_out(path: str) -> bool:
    """Return whether a path relative to the tree leaves it at any point."""
    depth = 0
    for part in path.split("/"):
        depth += -1 if part == ".." else part not in ("", ".")
        if depth < 0:
            return True
    return False


@remembered
def _patterns() -> re.Pattern[str]:
    lines = LEFT_PACKED.read_text(encoding="utf-8").splitlines()
    return re.compile("|".join(fnmatch.translate(line) for line in lines if line and not line.startswith("#")))


def is_left_packed(directory: str, name: str) -> bool:
    """Return whether left-packed.txt excludes a file. ``directory`` is relative to the tree and ends with a slash."""
    _stem, dot, suffix = name.rpartition(".")
    return _is_left_packed(directory, dot + suffix if dot else "")


@remembered
def _is_left_packed(directory: str, suffix: str) -> bool:
    # Patterns restrict a file's name by its suffix only, so one answer serves all files of a directory with the suffix.
    # They are written for an archive whose files are all in one directory.
    return _patterns().match(f"linux/{directory}any{suffix}") is not None


PATCHES = Path(__file__).with_name("patches")
_ABOUT = "about.txt"
_LINE = re.compile(r"(?P<release>\d+\.\d+)\s+(?P<what>\S.*)")


@dataclass(frozen=True)
class PatchSet:
    """A set of howdah's patches for a Debian kernel's source: ``debian-6.12+of-2007`` is debian-6.12 with those in one
    directory of ``patches/``. Its ``about.txt`` names the release and describes the patches in a line.

    ``release`` is the one for which the patches were written; ``files`` are sorted in the order of application.
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
        """A key that changes with the patches and their order."""
        return content_key(self.name, *(file_sha256(file) for file in self.files))


def patch_sets(directory: Path = PATCHES) -> dict[str, PatchSet]:
    """Return every set by name."""
    return {about.parent.name: _read(about) for about in sorted(directory.glob(f"*/{_ABOUT}"))}


def find_patches(name: str, release: str, kernel: str) -> PatchSet:
    """Return the set ``name`` for ``release`` of Debian's source. Raises HowdahError, which lists all sets."""
    known = patch_sets()
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
    """An existing source. ``key`` changes with its content; ``description`` goes into run.json.

    It is either an ``archive`` (a .tar.xz of a package), optionally with ``patches``, or a ``tree`` with its
    ``content``. ``release`` is the kernel's version as numbers, (6, 12); empty if a tree does not say, which counts as
    newer than all.
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
    """Return release and patches of a kernel with a fixed name: ``("6.12", None)`` for debian-6.12.

    None for a tree, and for debian-newest, which changes every month.
    """
    match = _DEBIAN.fullmatch(kernel)
    if not match or match[1] == _NEWEST:
        return None
    return match[1], None if match[2] is None else find_patches(match[2], match[1], kernel)


def find_source(kernel: str, cache: Cache | None = None) -> KernelSource:
    """Resolve ``debian-6.12`` (also ``6.12``, ``linux-source-6.12``), the same with a set of patches
    (``debian-6.12+of-2007``), ``debian-newest`` or the path of a kernel tree.

    Only sources on this machine are found. Raises HowdahError that says what is wrong.
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
    """Resolve a kernel as ``find_source`` does, fetching a Debian package that is not here.

    Raises UnsupportedKernelError if no suite has it, HowdahError if it cannot be fetched.
    """
    match = _DEBIAN.fullmatch(kernel)
    if not match:
        return _tree(Path(kernel).expanduser())
    release = provide_newest(cache, progress) if match[1] == _NEWEST else match[1]
    if match[2] is not None:
        find_patches(match[2], release, kernel)  # fail before anything is fetched
    return _of_package(provide_package(release, cache, progress), match[2])


def _of_package(package: SourcePackage, patched: str | None) -> KernelSource:
    # The key ignores location and origin: the same package, installed or fetched, is the same kernel.
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
    """Describe the revision, with the content's hash if there is no revision or the tree was modified."""
    revision = _git(tree, "rev-parse", "HEAD")
    if revision is None or not (tree / ".git").exists():
        return f"(no git, files {content.sha256[:12]})"
    modified = f" modified {content.sha256[:12]}" if _git(tree, "status", "--porcelain") else ""
    return f"git {revision[:12]}{modified}"


def git_environment() -> dict[str, str]:
    """Return the environment for running git on another repository, even from within a git hook."""
    return {name: value for name, value in os.environ.items() if name not in _OF_A_REPOSITORY}


def _git(tree: Path, *arguments: str) -> str | None:
    # Without locks: otherwise git would write what it learned about files into the user's index.
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
    """Return the command that unpacks a package's archive without files that a user-mode kernel never compiles."""
    options = ["--strip-components=1", "--no-same-owner", f"--exclude-from={LEFT_PACKED}"]
    return ["tar", "-xJf", str(archive), "-C", str(into), *options]
