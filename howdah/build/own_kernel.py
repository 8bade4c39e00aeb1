# SPDX-License-Identifier: Apache-2.0
"""A kernel of the user's own: a linux-image package, or a bare image with the directory of its modules."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from howdah.build.archive import unpack_package
from howdah.build.cache import Cache, Progress, content_key, file_sha256
from howdah.build.kernel_image import read_image
from howdah.build.kernel_package import ImagePackage, find_image, image_in
from howdah.distribution import installing
from howdah.errors import HowdahError

_PACKAGE = b"!<arch>\n"
_ARCHITECTURE = "amd64"
_BROKEN = "this package does not unpack"
_FIELDS = ("Package", "Version", "Architecture")
_RELEASE = re.compile(r'#define UTS_RELEASE "([^"]+)"')
_BYTES = 1500 * 2**20
# Modules that a machine needs for an experiment and for delivering its records, with their options.
_REQUIRED = {
    "virtio_pci": "CONFIG_VIRTIO_PCI",
    "virtio_blk": "CONFIG_VIRTIO_BLK",
    "veth": "CONFIG_VETH",
    "sch_netem": "CONFIG_NET_SCH_NETEM",
    "sch_htb": "CONFIG_NET_SCH_HTB",
    "tcp_diag": "CONFIG_INET_DIAG",
}


def provide_own(kernel: Path, modules: Path | None, progress: Progress, cache: Cache) -> ImagePackage:
    """Return the kernel in a file; ``modules`` is lib/modules/RELEASE for a bare image; a package contains its own.

    Raises HowdahError that says what the file is if it is not a kernel, or what the kernel lacks.
    """
    if not kernel.is_file():
        what = "a directory" if kernel.is_dir() else "not there"
        raise HowdahError(
            f"the vm engine takes a kernel from a file, and this is {what}",
            where=str(kernel),
            hint="Name a linux-image package (.deb) or an image; the uml engine takes source trees.",
        )
    with kernel.open("rb") as file:
        is_package = file.read(len(_PACKAGE)) == _PACKAGE
    image = _package(kernel, progress, cache) if is_package else _bare(kernel, modules)
    _check_modules(image, kernel)
    return image


def provide_own_headers(headers: Path, image: ImagePackage, progress: Progress, cache: Cache) -> Path:
    """Return what modules are built against: the given tree, or the one in a linux-headers package.

    Raises HowdahError for a package without one, and for headers of another kernel.
    """
    tree = headers
    if headers.is_file():
        key = content_key(file_sha256(headers))

        def unpack(directory: Path, log: Path) -> None:
            progress(f"unpack {headers.name}", 0, 0)
            unpack_package(headers, directory, log, _BROKEN, str(headers))

        root = cache.build("headers", key, unpack, needs_bytes=_BYTES)
        trees = [path for path in sorted((root / "usr/src").glob("*")) if (path / "Module.symvers").is_file()]
        if len(trees) != 1:
            what = f"this package holds {len(trees)} trees that modules could be built against, not one"
            hint = (
                "Debian's own linux-headers need their -common and linux-kbuild packages beside them: unpack all three "
            )
            raise HowdahError(what, where=str(headers), hint=hint + "and name the directory usr/src/linux-headers-….")
        tree = trees[0]
    # include/config/kernel.release does not serve: Debian's has the version of the source.
    release = tree / "include/generated/utsrelease.h"
    match = _RELEASE.search(release.read_text()) if release.is_file() else None
    if match is None:
        raise HowdahError(
            f"modules cannot be built against this: it has no {release.relative_to(tree)}", where=str(tree)
        )
    found = match[1]
    if found != image.release:
        raise HowdahError(f"these are headers of {found}, and the kernel is {image.release}", where=str(headers))
    return tree


def _package(file: Path, progress: Progress, cache: Cache) -> ImagePackage:
    fields = _fields(file)
    if fields["Architecture"] != _ARCHITECTURE:
        raise HowdahError(
            f"this package is for another processor: {fields['Architecture']}, not {_ARCHITECTURE}", where=str(file)
        )

    def unpack(directory: Path, log: Path) -> None:
        progress(f"unpack {file.name}", 0, 0)
        unpack_package(file, directory, log, _BROKEN, str(file))
        try:
            read_image(find_image(directory, file.name))
        except HowdahError as error:
            raise HowdahError(error.what, where=str(file), hint=error.hint) from None

    root = cache.build("image", content_key(file_sha256(file)), unpack, needs_bytes=_BYTES)
    return image_in(root, fields["Package"], fields["Version"], str(file))


def _fields(file: Path) -> dict[str, str]:
    try:
        answer = subprocess.run(
            ["dpkg-deb", "--field", str(file), *_FIELDS], capture_output=True, text=True, errors="replace", check=False
        )
    except FileNotFoundError as error:
        raise HowdahError("dpkg-deb, which unpacks packages, is not installed", hint=installing("dpkg")) from error
    if answer.returncode:
        said = answer.stderr.strip().splitlines()
        raise HowdahError(f"this package cannot be read: {said[-1] if said else 'dpkg-deb fails'}", where=str(file))
    found = dict(line.split(": ", 1) for line in answer.stdout.splitlines() if ": " in line)
    return {name: found.get(name, "unknown") for name in _FIELDS}


def _bare(image: Path, modules: Path | None) -> ImagePackage:
    release = read_image(image).release
    if modules is None:
        raise HowdahError(
            f"this image of Linux {release} comes without its modules",
            where=str(image),
            hint=f"Name them: --set machine.modules=DIRECTORY (lib/modules/{release} of the same build).",
        )
    places = (modules, modules / release, modules / "lib/modules" / release)
    place = next((path for path in places if (path / "kernel").is_dir() and path.name == release), None)
    if place is None:
        raise HowdahError(f"there are no modules of Linux {release} in this directory", where=str(modules))
    # The digest serves as the version, because a user's builds of one release differ.
    return ImagePackage(release, image, place, place / "config", image.name, file_sha256(image)[:12], str(image.parent))


def _check_modules(image: ImagePackage, file: Path) -> None:
    """Raise HowdahError unless each required part is a module or built in; skipped without a list of the latter."""
    listed = image.modules / "modules.builtin"
    if not listed.is_file():
        return
    there = {re.sub(r"\.ko.*", "", path.name).replace("-", "_") for path in (image.modules / "kernel").rglob("*.ko*")}
    there |= {Path(line).stem.replace("-", "_") for line in listed.read_text().split()}
    missing = [option for name, option in _REQUIRED.items() if name not in there]
    if missing:
        raise HowdahError(
            f"this kernel lacks what a virtual machine needs: {', '.join(missing)}",
            where=str(file),
            hint="Build it with these, built in or as modules.",
        )
