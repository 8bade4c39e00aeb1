# SPDX-License-Identifier: Apache-2.0
"""Makes a bundle (howdah/build/bundle_file.py) of what the default engine builds, for machines that build nothing.

The same cached files and the same date give the same bytes. The date is that of ``SOURCE_DATE_EPOCH``
(https://reproducible-builds.org/specs/source-date-epoch/), or today.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tarfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from howdah import __version__
from howdah.build.bundle_file import FORMAT, MACHINE, MANIFEST, SIGNATURE, BundlePiece
from howdah.build.cache import Cache, Progress
from howdah.build.guest_tree import packages_of_traffic, tree_key
from howdah.build.inventory import Component, components_of, inventory
from howdah.build.kernel_build import RECORD
from howdah.build.modules import modules_recipe, project_sources
from howdah.build.packed_piece import Piece, pack_piece
from howdah.build.tools import tools_recipe
from howdah.build.uml_kernel import Kernel, headers_recipe, kernel_recipe
from howdah.engine.share import AGENT, agent_recipe
from howdah.engine.uml.build import Built, build
from howdah.errors import HowdahError, UsageError, explain, remedy
from howdah.place import PACKAGE
from howdah.scratch import scratch
from howdah.sourcedate import source_date

LEVEL = 19  # of zstd: costs a minute of processor time once, and makes the download a third smaller
_LICENCES = ("LICENSES", "LICENSE")
_KERNEL_FILES = (RECORD, "linux", "build/.config", "build/modules.builtin", "build/modules.builtin.modinfo")
# Suffixes and names of files into which Kbuild writes its own directories; out-of-tree modules do not need them.
_OF_A_PLACE, _NAMES = (".cmd", ".s", ".d"), ("build/Makefile", "build/source")


@dataclass
class _Bundle:
    cache: Cache
    progress: Progress
    level: int
    pieces: dict[tuple[str, str], tuple[BundlePiece, Path]] = field(default_factory=dict)
    components: list[Component] = field(default_factory=list)
    documents: dict[str, bytes] = field(default_factory=dict)

    def add(self, kind: str, recipe: str, piece: Piece, about: str) -> None:
        if (kind, recipe) in self.pieces:
            return
        self.progress(f"bundle: pack {about}", 0, 0)
        packed_piece, file = pack_piece(piece, self.cache, self.level)
        names = piece.files or [str(place.relative_to(piece.directory)) for place in piece.directory.rglob("*")]
        unpacked = sum((piece.directory / name).lstat().st_size for name in names)
        self.pieces[kind, recipe] = (
            BundlePiece(kind, recipe, packed_piece.sha256, packed_piece.size, unpacked, about),
            file,
        )


def make_bundle(
    target: Path,
    kernels: Sequence[str],
    traffic: Sequence[str],
    progress: Progress,
    *,
    level: int = LEVEL,
    sign: Callable[[Path], Path] | None = None,
) -> str:
    """Build what is missing and write a bundle: a tar file, or files in a directory ``target``. Return its digest.

    ``traffic`` names kinds that need their own guest tree: ``flent`` or a QUIC stack. ``sign`` signs a file and returns
    the signature's file. Raises HowdahError, also for a kernel without a name that other machines know.
    """
    _try_to_write(target)
    making = _Bundle(Cache(), progress, level)
    sets = dict.fromkeys([(), *(packages for name in traffic for packages in packages_of_traffic(name))])
    for kernel in kernels:
        if kernel_recipe(kernel) is None:
            raise UsageError(
                f"a bundle has kernels that have a name, and {kernel!r} has none that other machines know",
                hint="Name debian-6.12, or another release of Debian's source.",
            )
        for packages in sets:
            _add(making, kernel, build(kernel, (), progress, making.cache, packages=packages), packages)
    making.documents["spdx.json"] = inventory(making.components, source_date().date().isoformat()).encode()
    _add_licences(making)
    return _write(making, target, sign)


def _add(making: _Bundle, kernel: str, built: Built, packages: tuple[str, ...]) -> None:
    there = built.kernel
    recipe = kernel_recipe(kernel)
    assert recipe is not None
    making.add("tool", tools_recipe(), Piece(_name(built.tools.directory), built.tools.directory), "launcher and shim")
    making.add("kernel", recipe, _kernel_piece(there), f"Linux {there.release}")
    title = f"guest tree{''.join(f' with {name}' for name in packages)}"
    tree = built.tree.root.parent
    making.add("tree", tree_key(packages), Piece(_name(tree), tree), title)
    agent = Piece(_name(built.agent), built.agent)
    making.add(AGENT, agent_recipe("netlink", built.tree, built.tools), agent, title.replace("guest tree", "agent", 1))
    own = next((module.file.parent for module in built.modules), None)
    if own is None or built.module_set.failed:
        error = next(iter(built.module_set.failed.values()), None)
        raise error or HowdahError(f"there are no modules of howdah for {there.release}")
    making.add("module", modules_recipe(there, project_sources()), Piece(_name(own), own), f"modules, {there.release}")
    if there.source_dir.is_dir():
        headers = Piece(f"headers/{there.directory.name}", there.source_dir.parent, _headers(there))
        making.add("headers", headers_recipe(there), headers, f"what modules of {there.release} are built against")
    note = f"{there.source}, compiled by {there.compiler}; its configuration is config-{there.release}."
    where = "https://snapshot.debian.org/package/linux/"
    making.components += [
        Component("linux", there.release, "GPL-2.0-only WITH Linux-syscall-note", where, note=note),
        Component("howdah", __version__, "Apache-2.0 AND GPL-2.0-only", "NOASSERTION"),
        *components_of(built.tree),
    ]
    making.documents[f"config-{there.release}"] = (there.build_dir / ".config").read_bytes()


def _name(directory: Path) -> str:
    return f"{directory.parent.name}/{directory.name}"


def _kernel_piece(kernel: Kernel) -> Piece:
    """Return the piece with the image, its record, and the kernel's own congestion control modules."""
    own = sorted(kernel.directory.glob("build/net/ipv4/*.ko"))
    names = [name for name in _KERNEL_FILES if (kernel.directory / name).is_file()]
    names += [str(file.relative_to(kernel.directory)) for file in own]
    return Piece(_name(kernel.directory), kernel.directory, tuple(names))


def _headers(kernel: Kernel) -> tuple[str, ...]:
    """Return the kept files of build directory and source, except those that name the directory of the build."""
    base = kernel.source_dir.parent
    places = (place for directory in (kernel.build_dir, kernel.source_dir) for place in directory.rglob("*"))
    files = (place.relative_to(base) for place in places if place.is_symlink() or place.is_file())
    return tuple(sorted(str(name) for name in files if name.suffix not in _OF_A_PLACE and str(name) not in _NAMES))


def _add_licences(making: _Bundle) -> None:
    for name in _LICENCES:
        place = PACKAGE.parent / name
        for file in [place] if place.is_file() else sorted(place.glob("*.txt")):
            making.documents[str(file.relative_to(PACKAGE.parent))] = file.read_bytes()


def _write(making: _Bundle, target: Path, sign: Callable[[Path], Path] | None) -> str:
    pieces = sorted(making.pieces.values(), key=lambda each: (each[0].kind, each[0].recipe))
    named = dict(sorted(making.documents.items()))
    manifest = {
        "format": FORMAT,
        "machine": MACHINE,
        "made": source_date().date().isoformat(),
        "howdah": __version__,
        "pieces": [asdict(ready) for ready, _file in pieces],
        "documents": {name: _sha256(content) for name, content in named.items()},
    }
    text = (json.dumps(manifest, indent=1) + "\n").encode()
    files: list[tuple[str, bytes | Path]] = [(MANIFEST, text), *named.items()]
    if sign is not None:
        files.append((SIGNATURE, _signature(text, sign)))
    files += [(ready.file, file) for ready, file in pieces]
    if target.is_dir():
        _fill(target, files)
    else:
        _pack(target, files)
    return _sha256(text)


def _signature(manifest: bytes, sign: Callable[[Path], Path]) -> bytes:
    with scratch("howdah-") as place:
        file = place / MANIFEST
        file.write_bytes(manifest)
        return sign(file).read_bytes()


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _try_to_write(target: Path) -> None:
    """Raise HowdahError if the target cannot be written, before a minute is spent on packing."""
    try:
        if target.is_dir():
            if any(target.iterdir()):
                raise UsageError("this directory is not empty", where=str(target), hint="Name a file or an empty one.")
        else:
            partial = _partial(target)
            partial.touch()
            partial.unlink()
    except OSError as error:
        raise _not_written(target, error) from error


def _partial(target: Path) -> Path:
    return target.with_name(f".{target.name}-{os.getpid()}")


def _not_written(target: Path, error: OSError) -> HowdahError:
    return HowdahError(f"the bundle cannot be written: {explain(error)}", where=str(target), hint=remedy(error))


def _fill(directory: Path, files: Iterable[tuple[str, bytes | Path]]) -> None:
    try:
        for name, content in files:
            place = directory / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, bytes):
                place.write_bytes(content)
            else:
                shutil.copyfile(content, place)
    except OSError as error:
        raise _not_written(directory, error) from error


def _pack(target: Path, files: Iterable[tuple[str, bytes | Path]]) -> None:
    """Write the tar file, the manifest first, so that a truncated file can still be identified."""
    partial = _partial(target)
    try:
        with tarfile.open(partial, "w", format=tarfile.PAX_FORMAT) as archive:
            for name, content in files:
                member = tarfile.TarInfo(name)
                member.mode = 0o644
                if isinstance(content, bytes):
                    member.size = len(content)
                    archive.addfile(member, io.BytesIO(content))
                else:
                    member.size = content.stat().st_size
                    with content.open("rb") as opened:
                        archive.addfile(member, opened)
        partial.replace(target)
    except OSError as error:
        raise _not_written(target, error) from error
    finally:
        partial.unlink(missing_ok=True)
