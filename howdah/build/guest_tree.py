# SPDX-License-Identifier: Apache-2.0
"""The guest tree: a Debian 13 file system, extracted from packages as any user.

No package scripts run (mmdebstrap's ``extract`` variant), so neither root nor user namespaces nor a chroot are needed,
and extraction takes seconds. The results of those scripts that a guest needs are produced here.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
from dataclasses import dataclass
from pathlib import Path

from howdah.build.archive import SUITE, bootstrap, listed_packages
from howdah.build.cache import Cache, Progress, content_key
from howdah.build.supervise import run_logged
from howdah.build.supply import entry_from_bundle
from howdah.build.tools import Tools, build_tools
from howdah.errors import HowdahError, UsageError
from howdah.plan.plan import Plan
from howdah.plan.quic import STACKS
from howdah.traffic import TRAFFIC

PACKAGES = Path(__file__).with_name("guest-packages.txt")
_RECORD, COPYRIGHTS = "tree.json", "copyright"
_SPACE_BYTES = 500 * 2**20
_LAYOUT = "3"  # part of the key: raise it when _finish or the record changes
_PYTHON = "usr/bin/python3.13"
LOADER, LIBRARIES = "usr/lib64/ld-linux-x86-64.so.2", "usr/lib/x86_64-linux-gnu"
_DOWNLOADED = re.compile(r"(?P<package>[^_]+)_(?P<version>[^_]+)_[^_]+\.deb")

# Links and copies that the packages' own scripts would make at installation.
_LINKS = {"usr/bin/awk": "mawk", "usr/bin/which": "which.debianutils"}
_COPIES = {
    "etc/passwd": "usr/share/base-passwd/passwd.master",
    "etc/group": "usr/share/base-passwd/group.master",
    "etc/nsswitch.conf": "usr/share/libc-bin/nsswitch.conf",
}
_TEXTS = {"etc/hosts": "127.0.0.1 localhost\n", "etc/hostname": "guest\n"}
MOUNT_POINTS = ("dev", "proc", "sys", "run", "tmp", "root", "howdah/in", "howdah/out")
# Documentation and translations that nobody reads in a guest: a third of the tree.
_LEFT_OUT = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info")
# Files in which apt and ldconfig record time and place; without them two trees have the same bytes.
_CACHES = ("var/cache/apt", "var/cache/ldconfig")


@dataclass(frozen=True)
class GuestTree:
    """A tree in the cache. ``sha256`` is a digest of ``packages``, which maps names to versions.

    ``sources`` maps each package to name and version of its source package.
    """

    root: Path
    key: str
    sha256: str
    packages: dict[str, str]
    sources: dict[str, tuple[str, str]]

    @property
    def glibc(self) -> tuple[int, ...]:
        """The version of its C library, such as (2, 41); () if unknown."""
        match = re.match(r"(?:\d+:)?(\d+)\.(\d+)", self.packages.get("libc6", ""))
        return (int(match[1]), int(match[2])) if match else ()


def package_names(further: tuple[str, ...] = ()) -> list[str]:
    return sorted({*listed_packages(PACKAGES), *further})


def tree_key(further: tuple[str, ...] = ()) -> str:
    return content_key(_LAYOUT, SUITE, *package_names(further))


def build_tree(progress: Progress, cache: Cache | None = None, further: tuple[str, ...] = ()) -> GuestTree:
    """Return the tree from a bundle or the cache, or build it.

    Raises HowdahError if mmdebstrap is missing or cannot fetch. ``further`` are packages that only some traffic needs.
    Each such set is a separate tree, so that other users neither fetch them nor repeat runs.
    """
    cache = cache or Cache()
    key = tree_key(further)
    given = entry_from_bundle(
        "tree", key, cache, lambda: progress("guest tree (unpacked by another howdah, waiting)", 0, 0)
    )
    if given is not None:
        return load_tree(given)
    if cache.find("tree", key) is None:
        tools = build_tools(cache)
        cache.build(
            "tree",
            key,
            lambda directory, log: _build(directory, log, tools, progress, further),
            needs_bytes=_SPACE_BYTES,
            waiting=lambda: progress("guest tree (built by another howdah, waiting)", 0, 0),
        )
    return load_tree(cache.path("tree", key))


def load_tree(directory: Path) -> GuestTree:
    try:
        record = json.loads((directory / _RECORD).read_text())
        sources = {name: (source, version) for name, (source, version) in record.get("sources", {}).items()}
        return GuestTree(directory / "root", directory.name, record["sha256"], record["packages"], sources)
    except (OSError, ValueError, KeyError, TypeError):
        raise HowdahError(
            "this guest tree is damaged", where=str(directory), hint=f"Remove it ('rm -r {directory}')."
        ) from None


def _build(directory: Path, log: Path, tools: Tools, progress: Progress, further: tuple[str, ...]) -> None:
    root = directory / "root"
    steps = {"running apt-get update": 1, "downloading packages": 2, "extracting archives": 3, "success": 4}

    def follow(line: str) -> None:
        for text, step in steps.items():
            if text in line:
                progress("guest tree: fetch and extract", step, 5)

    progress("guest tree: fetch and extract", 0, 5)
    options = ("--mode=chrootless", "--variant=extract", "--skip=cleanup/apt/cache,output/dev")
    bootstrap(root, options, package_names(further), log, tools.launch, follow, "the guest tree cannot be built")
    packages, sources = _versions(root), _sources(root)
    keep_copyrights(root, directory / COPYRIGHTS)
    _finish(root)
    _compile_python(root, log, tools)
    _index_libraries(root, log)
    for name in _CACHES:
        shutil.rmtree(root / name, ignore_errors=True)
    named = content_key(json.dumps(packages, sort_keys=True))
    record = {"suite": SUITE, "sha256": named, "packages": packages, "sources": sources}
    (directory / _RECORD).write_text(json.dumps(record, indent=1) + "\n")
    progress("guest tree: fetch and extract", 5, 5)


def _versions(root: Path) -> dict[str, str]:
    found = {}
    for file in sorted((root / "var/cache/apt/archives").glob("*.deb")):
        match = _DOWNLOADED.fullmatch(file.name)
        if match:
            found[match["package"]] = match["version"].replace("%3a", ":")
    if "python3.13" not in found and "python3" not in found:
        raise HowdahError("mmdebstrap kept no packages to read versions from", where=str(root))
    return found


def _sources(root: Path) -> dict[str, list[str]]:
    """Return name and version of each package's source package; the versions may differ."""
    files = sorted(map(str, (root / "var/cache/apt/archives").glob("*.deb")))
    command = ["dpkg-deb", "--show", "--showformat", "${Package}\t${source:Package}\t${source:Version}\n"]
    said = "".join(
        subprocess.run([*command, file], capture_output=True, text=True, check=True).stdout for file in files
    )
    return {name: [source, version] for name, source, version in (line.split("\t") for line in said.splitlines())}


def keep_copyrights(root: Path, into: Path) -> None:
    """Copy each package's copyright file to INTO/PACKAGE; the guest itself does not need it."""
    into.mkdir()
    documents = root / "usr/share/doc"
    for place in sorted(documents.iterdir()):
        # A package whose directory is a link to another package's has the other one's terms.
        file = Path(os.path.normpath(documents / place.readlink())) if place.is_symlink() else place
        if (file / "copyright").is_file():
            shutil.copyfile(file / "copyright", into / place.name)


def _finish(root: Path) -> None:
    for name in _LEFT_OUT:
        shutil.rmtree(root / name, ignore_errors=True)
    for name in MOUNT_POINTS:
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, target in _LINKS.items():
        if not (root / name).is_symlink():
            (root / name).symlink_to(target)
    for name, source in _COPIES.items():
        shutil.copyfile(root / source, root / name)
    for name, text in _TEXTS.items():
        (root / name).write_text(text)


def python_command(root: Path) -> list[str]:
    """Return the command that runs the tree's own Python on this machine, with the tree's own loader and libraries.

    It needs ``python_environment``.
    """
    return [str(root / LOADER), "--library-path", str(root / LIBRARIES), str(root / _PYTHON), "-S", "-B"]


def python_environment(root: Path) -> dict[str, str]:
    return {"PYTHONHOME": str(root / "usr")}


def compile_command(root: Path, directories: list[Path], here: Path, there: str) -> list[str]:
    """Return the command that byte-compiles for the guest, where ``here`` is called ``there`` (as in tracebacks).

    Byte code is not checked against sources: the guest sees other modification times, and never a changed source.
    """
    options = ["-P", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", "-s", str(here), "-p", there]
    return [*python_command(root), *options, *(str(directory) for directory in directories)]


def _compile_python(root: Path, log: Path, tools: Tools) -> None:
    libraries = [root / "usr/lib/python3.13", root / "usr/lib/python3/dist-packages"]
    command = compile_command(root, libraries, root, "/")
    run_logged(command, log, launcher=tools.launch, environment=python_environment(root))


def _index_libraries(root: Path, log: Path) -> None:
    """Create ld.so.cache, which saves the guest a search per library; skipped if chroot is not permitted."""
    command = ["/sbin/ldconfig", "-r", str(root)]
    if os.geteuid() != 0:
        command = ["unshare", "--map-root-user", *command]
    try:
        run_logged(command, log)
    except HowdahError as error:
        with log.open("a") as file:
            file.write(f"no ld.so.cache: {error}\n")


def packages_of_traffic(traffic: str) -> list[tuple[str, ...]]:
    """Return the additional packages of each tree that this traffic may need: ``flent``, ``quic`` or a QUIC stack.

    Raises UsageError for traffic that needs none.
    """
    known: dict[str, list[tuple[str, ...]]] = {kind.name: [kind.packages] for kind in TRAFFIC.values() if kind.packages}
    known |= {"quic": [tuple(sorted(stack.packages)) for stack in STACKS.values()]}
    known |= {name: [tuple(sorted(stack.packages))] for name, stack in STACKS.items()}
    if traffic not in known:
        raise UsageError.unknown(f"no guest tree has packages for {traffic!r}", traffic, known, "there are")
    return known[traffic]


def packages_of_plan(plan: Plan) -> tuple[str, ...]:
    """Return the packages of the guest tree that only this plan's traffic needs."""
    own = dict.fromkeys(package for flow in plan.flows for package in flow.kind.packages)
    stacks = {name for flow in plan.flows if flow.quic is not None for name in STACKS[flow.quic].packages}
    return (*own, *sorted(stacks))


LOADER_NAME, LIBRARY_NAME = "ld.so", "lib"  # links in the directory where the kernel starts
_STARTED_LAYOUT = "1"
_INTERPRETER = 3  # PT_INTERP
_HEADER_TABLE, _HEADER_SIZES = 32, 54  # offsets in the header of a 64-bit file: e_phoff, e_phentsize
_GLIBC = re.compile(rb"GLIBC_(\d+)\.(\d+)")


def needed_glibc(program: bytes) -> tuple[int, ...]:
    """Return the oldest version of the GNU C library with all symbols of a program; () if it needs none."""
    return max(((int(major), int(minor)) for major, minor in _GLIBC.findall(program)), default=())


def image_of_tree(image: Path, image_sha256: str, tools: Tools, tree: GuestTree, cache: Cache) -> Path | None:
    """Return the image with the tree's loader; None if it or its preloaded library needs a newer C library.

    On a machine with an older C library, or none (musl), the image would not start at all. The name of the loader is
    part of the file (PT_INTERP, elf(5)); the kernel resolves it relative to the working directory, where the launcher
    puts a link.
    """
    key = content_key(_STARTED_LAYOUT, image_sha256, tools.key, str(tree.glibc))
    found = cache.find("started", key)
    if found is None:
        content = image.read_bytes()
        needed = max(needed_glibc(content), needed_glibc(tools.shim.read_bytes()))
        changed = None if not tree.glibc or needed > tree.glibc else with_loader(content, f"./{LOADER_NAME}")
        if changed is None:
            return None

        def write(directory: Path, _log: Path) -> None:
            file = directory / "linux"
            file.write_bytes(changed)
            file.chmod(0o755)

        found = cache.build("started", key, write)
    return found / "linux"


def with_loader(program: bytes, loader: str) -> bytes | None:
    """Return the program with another loader; None if it has no loader or the name does not fit."""
    (table,) = struct.unpack_from("<Q", program, _HEADER_TABLE)
    size, count = struct.unpack_from("<HH", program, _HEADER_SIZES)
    for number in range(count):
        kind, _flags, offset, _address, _physical, length = struct.unpack_from(
            "<IIQQQQ", program, table + number * size
        )
        name = loader.encode() + b"\0"
        if kind == _INTERPRETER and len(name) <= length:
            return program[:offset] + name.ljust(length, b"\0") + program[offset + length :]
    return None
