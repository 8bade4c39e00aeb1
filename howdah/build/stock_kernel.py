# SPDX-License-Identifier: Apache-2.0
"""Prepares a stock kernel: its image, and an archive of the modules that a network needs."""

from __future__ import annotations

import gzip
import json
import lzma
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from howdah.build.cache import Cache, Progress, content_key, file_sha256
from howdah.build.cpio import Writer
from howdah.build.kernel_image import unpack_kernel
from howdah.build.kernel_package import ImagePackage, headers_of, provide_image
from howdah.build.own_kernel import provide_own, provide_own_headers
from howdah.distribution import installing
from howdah.errors import HowdahError
from howdah.linux.modinfo import module_information, modules_needed

_PREFIX = "debian-"
_LAYOUT = "2"  # part of every key: raise it when the files of an entry change
_RECORD = "kernel.json"
_UNPACKED = "vmlinux"
# Modules that a run may need, relative to lib/modules/RELEASE/kernel; their dependencies are added.
_WANTED = (
    "net/sched/*",
    "net/ipv4/tcp_*",
    "net/ipv4/*_diag",
    "net/netlink/*",
    "net/packet/*",
    "drivers/net/veth",
    "drivers/net/dummy",
    "drivers/net/ifb",
    "drivers/block/virtio_blk",
    "drivers/virtio/virtio_pci",
    "drivers/net/virtio_net",
    "drivers/net/net_failover",
)
_SPACE_BYTES = 100 * 2**20


@dataclass(frozen=True)
class StockKernel:
    """A distribution's kernel in the cache. ``modules_archive`` is a cpio archive with lib/modules/RELEASE.

    ``headers`` is what modules are built against; None if no suite whose programs run on this machine has them: then
    the project's own modules are not available for it.
    """

    name: str
    directory: Path
    image: Path
    modules_archive: Path
    headers: Path | None
    release: str
    package: str
    version: str
    image_sha256: str
    config_sha256: str
    vermagic: str

    @property
    def key(self) -> str:
        """A key of what modules are built for, independent of which of the kernel's own modules were packed."""
        return content_key(self.package, self.version, self.image_sha256, str(self.headers))

    @property
    def source_dir(self) -> Path:
        assert self.headers is not None
        return self.headers

    build_dir = source_dir
    interface = None

    @property
    def places(self) -> tuple[Path, ...]:
        """The directories that a module build reads: a distribution's headers refer to siblings and to /usr/lib."""
        tree = self.source_dir
        if tree.parent.parts[-2:] != ("usr", "src"):
            return (tree,)
        return tree.parent, tree.parents[1] / "lib"

    def module_files(self) -> dict[str, Path]:
        """Return the files of the modules in the archive, by the kernel's names."""
        return {file.stem.replace("-", "_"): file for file in (self.directory / "root").rglob("*.ko")}

    def make(self, *arguments: str) -> list[str]:
        """Return the ``make`` command for modules. The headers request their distribution's compiler, which may not be
        installed here, so gcc replaces it."""
        return ["make", "-C", str(self.source_dir), "CC=gcc", "CONFIG_DEBUG_INFO_BTF_MODULES=", *arguments]


def provide_kernel(
    kernel: str, progress: Progress, cache: Cache, modules: Path | None = None, headers: Path | None = None
) -> StockKernel:
    """Return ``debian-VERSION`` or ``debian-newest`` as Debian builds it, or the user's kernel in a file.

    ``modules`` and ``headers`` belong to the latter (own_kernel.py). Raises HowdahError for other names, for kernels
    that no suite has, and for files that are not kernels.
    """
    tree: Path | None
    if kernel.startswith(_PREFIX):
        package = provide_image(kernel.removeprefix(_PREFIX), cache, progress, for_modules=True)
        tree = headers_of(package, cache)
    elif "/" in kernel:
        package = provide_own(Path(kernel), modules, progress, cache)
        tree = provide_own_headers(headers, package, progress, cache) if headers is not None else None
    else:
        raise HowdahError(
            f"the vm engine knows no kernel {kernel!r}",
            hint="Name one of Debian's (debian-6.12, debian-newest), or the path of a linux-image package or image.",
        )
    key = content_key(_LAYOUT, package.package, package.version, str(package.modules), *_WANTED)

    def prepare(directory: Path, log: Path) -> None:
        progress(f"modules of {package.release}", 0, 0)
        vermagic = _pack(package, directory, log)
        unpack_kernel(package.image, directory / _UNPACKED)
        config = file_sha256(package.config) if package.config.is_file() else ""
        record = {"vermagic": vermagic, "image": file_sha256(package.image), "config": config}
        (directory / _RECORD).write_text(json.dumps(record, indent=1) + "\n")

    entry = cache.build("stock", key, prepare, needs_bytes=_SPACE_BYTES)
    record = json.loads((entry / _RECORD).read_text())
    return StockKernel(
        name=kernel,
        directory=entry,
        image=package.image if not (entry / _UNPACKED).exists() else entry / _UNPACKED,
        modules_archive=entry / "modules.cpio",
        headers=tree,
        release=package.release,
        package=package.package,
        version=package.version,
        image_sha256=record["image"],
        config_sha256=record["config"],
        vermagic=record["vermagic"],
    )


def _pack(package: ImagePackage, directory: Path, log: Path) -> str:
    """Write modules.cpio with the wanted modules, unpacked, and their indexes; return the kernel's version magic."""
    root = directory / "root"
    there = root / "lib/modules" / package.release
    kept = package.modules / "kernel"
    available = modules_by_name(kept)
    wanted = [name for name, file in available.items() if _is_wanted(file.relative_to(kept))]
    vermagic = ""
    for name, content in with_needed(wanted, available).items():
        place = there / "kernel" / available[name].relative_to(kept).parent / f"{name}.ko"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
        vermagic = module_information(content).get("vermagic", vermagic)
    there.mkdir(parents=True, exist_ok=True)
    for index in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        if (package.modules / index).is_file():  # a user's own build may lack them
            (there / index).write_bytes((package.modules / index).read_bytes())
    answer = subprocess.run(
        ["/sbin/depmod", "-b", str(root), package.release], capture_output=True, text=True, check=False
    )
    log.write_text(answer.stdout + answer.stderr)
    if answer.returncode:
        raise HowdahError(f"depmod fails for {package.release}: {answer.stderr.strip()}", hint=installing("kmod"))
    with (directory / "modules.cpio").open("wb") as file:
        archive = Writer(file)
        archive.parents([f"usr/lib/modules/{package.release}/x"])
        archive.tree(there, f"usr/lib/modules/{package.release}")
        archive.close()
    return vermagic


def modules_by_name(directory: Path) -> dict[str, Path]:
    """Return the module files below a directory, compressed or not, by the kernel's names."""
    files = (file for file in directory.rglob("*.ko*") if ".ko" in file.name)
    return {file.name.partition(".ko")[0].replace("-", "_"): file for file in files}


def with_needed(wanted: Iterable[str], available: Mapping[str, Path]) -> dict[str, bytes]:
    """Return the unpacked content of the wanted modules and their dependencies, in the order of loading.

    A wanted module that is missing may be built in and is skipped. Raises HowdahError for a missing dependency.
    """
    chosen: dict[str, bytes] = {}

    def choose(name: str) -> None:
        if name in chosen:
            return
        content = _unpacked(available[name])
        for needed in modules_needed(content):
            if needed not in available:
                raise HowdahError(
                    f"the kernel's module {name} needs {needed}, which is not among its modules",
                    where=str(available[name]),
                    hint="Install all modules of the kernel's build (make modules_install).",
                )
            choose(needed)
        chosen[name] = content

    for name in wanted:
        if name in available:
            choose(name)
    return chosen


def _is_wanted(relative: Path) -> bool:
    plain = relative.with_name(relative.name.partition(".ko")[0])
    return any(plain.match(pattern) for pattern in _WANTED)


def _unpacked(file: Path) -> bytes:
    content = file.read_bytes()
    if file.suffix == ".xz":
        return lzma.decompress(content)
    if file.suffix == ".gz":
        return gzip.decompress(content)
    if file.suffix == ".zst":
        return subprocess.run(["zstd", "-dc"], input=content, capture_output=True, check=True).stdout
    return content
