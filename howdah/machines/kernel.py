# SPDX-License-Identifier: Apache-2.0
"""Kernels for virtual machines: Debian's packages, a package of the user's, or an installed tree."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from howdah.build.archive import unpack_package
from howdah.build.cache import Cache, Progress, content_key, file_sha256
from howdah.build.kernel_package import provide_header_tree, provide_image
from howdah.build.stock_kernel import modules_by_name, with_needed
from howdah.errors import HowdahError
from howdah.machines.machine_set import STOCK_KERNEL

_PREFIX = "debian-"
_LARGEST_BYTES = 1 << 30
# Signature in a bzImage (Documentation/arch/x86/boot.rst, "header") and its position.
_MAGIC, _MAGIC_PLACE, _MAGIC_END = b"HdrS", 0x202, 0x206
# Modules that a machine needs to reach its disk, in this order; their dependencies are added.
_FIRST_MODULES = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4")


@dataclass(frozen=True)
class MachineKernel:
    """A kernel. ``modules`` is lib/modules/RELEASE. ``headers`` holds usr/src and lib/modules from its packages of
    headers; with None the project's modules cannot be built for it. ``source`` describes its origin."""

    name: str
    release: str
    image: Path
    modules: Path
    headers: Path | None
    source: str
    key: str


def provide_machine_kernel(written: str, base: Path, cache: Cache, progress: Progress) -> MachineKernel:
    """Return the kernel ``written`` in a machines file; its paths are relative to ``base``.

    Raises HowdahError if no suite has it, if a path holds no kernel, or for another processor's.
    """
    if STOCK_KERNEL.fullmatch(written):
        package = provide_image(written.removeprefix(_PREFIX), cache, progress)
        return MachineKernel(
            name=written,
            release=package.release,
            image=package.image,
            modules=package.modules,
            headers=provide_header_tree(package, cache),
            source=f"{package.package} {package.version}",
            key=content_key(package.package, package.version),
        )
    path = (base / written).resolve()
    if path.is_dir():
        return _kernel_below(written, path, f"the directory {path}", str(path.stat().st_mtime_ns))
    return _of_package(written, path, cache)


def _of_package(written: str, path: Path, cache: Cache) -> MachineKernel:
    digest = file_sha256(path)

    def unpack(directory: Path, log: Path) -> None:
        hint = "'kernel:' takes debian-VERSION, a kernel package (.deb), or a directory with boot/ and lib/."
        unpack_package(path, directory, log, "this is not a Debian package", str(path), hint)

    root = cache.build("image", content_key(digest), unpack, needs_bytes=_LARGEST_BYTES)
    return _kernel_below(written, root, f"the package {path.name}", digest)


def _kernel_below(written: str, root: Path, source: str, identity: str) -> MachineKernel:
    """Return the one kernel below ``root``: boot/vmlinuz-RELEASE with lib/modules/RELEASE."""
    images = sorted((root / "boot").glob("vmlinuz-*"))
    if len(images) != 1:
        has = ", ".join(image.name for image in images) or "none"
        raise HowdahError(
            f"expected one kernel, boot/vmlinuz-RELEASE, in {source}; there is {has}",
            where=written,
            hint="A package of headers, or of debugging symbols, holds none: name that of the image.",
        )
    release = images[0].name.removeprefix("vmlinuz-")
    with images[0].open("rb") as file:
        if file.read(_MAGIC_END)[_MAGIC_PLACE:] != _MAGIC:
            raise HowdahError(f"{images[0].name} is not a Linux kernel for this processor", where=str(images[0]))
    places = [root / "lib/modules" / release, root / "usr/lib/modules" / release]
    modules = next((place for place in places if place.is_dir()), None)
    if modules is None:
        raise HowdahError(f"{source} has no lib/modules/{release}", where=written)
    headers = root if (root / "usr/src" / f"linux-headers-{release}").is_dir() else None
    return MachineKernel(written, release, images[0], modules, headers, source, content_key(release, identity))


def first_modules(kernel: MachineKernel) -> list[tuple[str, bytes]]:
    """Return name and content of the modules to load before the disk is available, in the order of loading.

    Modules built into the kernel are skipped. modules.dep, which depmod(8) makes at installation, is not needed.
    """
    return list(with_needed(_FIRST_MODULES, modules_by_name(kernel.modules)).items())
