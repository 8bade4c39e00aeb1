# SPDX-License-Identifier: Apache-2.0
"""A distribution's own kernel: Debian's linux-image and linux-headers packages, unpacked without root."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from howdah.build.archive import SUITES, Archive, Offer, all_offers, codename, read_suites
from howdah.build.cache import Cache, Progress, content_key
from howdah.build.tools import build_tools
from howdah.errors import HowdahError
from howdah.record.directory import write_json

_NAMES = {
    "linux-image": r"linux-image-(?P<release>{release})\.[0-9.]+(?:-[0-9]+|\+(?:deb|bpo)[0-9.]+)-amd64",
    "linux-headers": r"linux-headers-(?P<release>{release})\.[0-9.]+(?:-[0-9]+|\+(?:deb|bpo)[0-9.]+)-amd64",
}
NEWEST = "newest"


def best_offer(archive: Archive, kind: str, release: str, cache: Cache, *, all_suites: bool) -> Offer:
    """Return the highest version of a kind (``linux-image``, ``linux-headers``) for a release (``6.1``, ``newest``).

    Raises HowdahError if no suite has one.
    """
    problems: list[str] = []
    found = offers(archive, kind, release, all_suites=all_suites)
    if not found:
        log = cache.log("apt", "index")
        log.parent.mkdir(parents=True, exist_ok=True)
        problems = archive.update(log)
        found = offers(archive, kind, release, all_suites=all_suites)
    if not found:
        raise HowdahError(f"no suite offers {kind} of {release} for this machine", hint=" / ".join(problems) or None)
    return newest(found)


def newest(found: Iterable[Offer]) -> Offer:
    """Return the offer with the highest version. Raises ValueError if there are none."""
    return max(found, key=lambda offer: [int(number) for number in re.findall(r"\d+", offer.version)])


def offers(archive: Archive, kind: str, release: str, *, all_suites: bool) -> list[Offer]:
    """Return every package of the kind and release; unless ``all_suites``, only from suites whose programs run here.

    A query of apt takes seconds, so its results are cached.
    """
    stamp = archive.stamp()
    if stamp is None:
        return []
    kept = archive.root / f"{kind}-{release}.json"
    state = content_key(stamp, SUITES.read_bytes(), _NAMES[kind])
    found = _cached_offers(kept, state)
    if found is None:
        found = _query(archive, kind, release)
        if found:  # an empty result is not kept: the next update of the index may change it
            write_json(kept, {"state": state, "offers": [asdict(offer) for offer in found]})
    usable = _usable_suites()
    return [offer for offer in found if all_suites or offer.suite in usable]


def _cached_offers(file: Path, state: str) -> list[Offer] | None:
    try:
        record = json.loads(file.read_text())
        return [Offer(**one) for one in record["offers"]] if record["state"] == state else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _query(archive: Archive, kind: str, release: str) -> list[Offer]:
    wanted = r"\d+\.\d+" if release == NEWEST else re.escape(release)
    name = re.compile(_NAMES[kind].replace("{release}", wanted))
    prefix = f"{kind}-" if release == NEWEST else f"{kind}-{release}"
    packages = [word for word in archive.ask("pkgnames", prefix).split() if name.fullmatch(word)]
    return all_offers(archive.ask("madison", *sorted(packages)), name) if packages else []


def _usable_suites() -> list[str]:
    """Return the suites up to this machine's own: kernel-suites.txt lists them oldest first."""
    suites = [suite for _, suite in read_suites()]
    own = [number for number, suite in enumerate(suites) if suite.split("-")[0] == codename()]
    return suites[: own[-1] + 1] if own else []


_PART = re.compile(r"(linux-(?:base|binary|modules)-\d\S*) \(= ([^)]+)\)")
_IMAGE_BYTES = 700 * 2**20  # the package and its unpacked files


@dataclass(frozen=True)
class ImagePackage:
    """An unpacked kernel: ``release`` as in ``uname -r``; ``modules`` is lib/modules/RELEASE.

    ``config`` may not exist: for a kernel given as a bare image it is unknown.
    """

    release: str
    image: Path
    modules: Path
    config: Path
    package: str
    version: str
    suite: str


def provide_image(release: str, cache: Cache, progress: Progress, *, for_modules: bool = False) -> ImagePackage:
    """Return the newest package of a release (``6.12``, ``newest``), fetched once. Raises HowdahError without one.

    ``for_modules``: prefer the newest one whose headers can be used here. A newer suite may have a later version, but
    its headers do not run on this machine's Debian.
    """
    archive = Archive(cache)
    offer = best_offer(archive, "linux-image", release, cache, all_suites=True)
    if for_modules:
        offer = _with_headers(archive, offer, release)
    key = f"{offer.package}_{offer.version}"
    if (broken := cache.find("image", key)) is not None and not any(broken.rglob("vmlinuz*")):
        key += "_whole"  # an entry from before the kernel's parts became separate packages

    def unpack(directory: Path, log: Path) -> None:
        for number, part in enumerate(parts):
            progress(f"fetch {part.package} {part.version}", number, len(parts))
            archive.fetch_unpacked(part, directory, log, build_tools(cache).launch)
        find_image(directory, offer.package)
        progress(f"fetch {offer.package} {offer.version}", len(parts), len(parts))

    entry = cache.find("image", key)
    if entry is None:
        parts = [offer, *_parts(archive, offer)]
        entry = cache.build("image", key, unpack, needs_bytes=_IMAGE_BYTES)
    return image_in(entry, offer.package, offer.version, offer.suite)


def _with_headers(archive: Archive, offer: Offer, release: str) -> Offer:
    """Return the newest package of the offer's release whose headers are usable here, otherwise the offer itself."""
    headers = {
        each.package.removeprefix("linux-headers-")
        for each in offers(archive, "linux-headers", offer.release, all_suites=False)
    }
    found = [
        each
        for each in offers(archive, "linux-image", release, all_suites=True)
        if each.release == offer.release and each.package.removeprefix("linux-image-") in headers
    ]
    return newest(found) if found else offer


def _parts(archive: Archive, offer: Offer) -> list[Offer]:
    """Return the packages that complete the kernel: since 7.x image, modules and configuration are separate ones."""
    said = archive.ask("show", f"{offer.package}={offer.version}")
    depends = re.search(r"^Depends: (.*)$", said, re.MULTILINE)
    names = _PART.findall(depends[1]) if depends else []
    return [Offer(name, offer.release, version, offer.suite) for name, version in names if version == offer.version]


def image_in(root: Path, package: str, version: str, suite: str) -> ImagePackage:
    """Locate the kernel in an unpacked linux-image package. Raises HowdahError if it holds none, or several."""
    image = find_image(root, package)
    name = image.name.removeprefix("vmlinuz-") if image.name != "vmlinuz" else image.parent.name
    places = (root / "lib/modules" / name, root / "usr/lib/modules" / name)
    modules = next((place for place in places if place.is_dir()), places[0])
    configs = (root / "boot" / f"config-{name}", modules / "config")
    config = next((file for file in configs if file.is_file()), configs[0])
    return ImagePackage(name, image, modules, config, package, version, suite)


def find_image(root: Path, package: str) -> Path:
    images = sorted((root / "boot").glob("vmlinuz-*")) or sorted(root.glob("**/lib/modules/*/vmlinuz"))
    if len(images) != 1:
        raise HowdahError(
            f"{package} holds {len(images)} kernels, not one",
            where=str(root),
            hint="Name a linux-image package; those of headers, modules and debugging symbols hold none.",
        )
    return images[0]


def headers_of(image: ImagePackage, cache: Cache) -> Path | None:
    """Return the headers for building modules for exactly this kernel; None if no suite usable here has them."""
    archive = Archive(cache)
    name = f"linux-headers-{image.release}"
    found = [
        offer
        for offer in offers(archive, "linux-headers", _short(image.release), all_suites=False)
        if offer.package == name
    ]
    return unpacked_headers(archive, found[0], cache) if found else None


def provide_header_tree(image: ImagePackage, cache: Cache) -> Path | None:
    """Return ``usr/src`` and ``lib/modules`` of the headers for exactly this kernel; None if no suite has them.

    They are for a root with programs of the newest suite, so the headers' own programs need not run here.
    """
    archive = Archive(cache)
    name = f"linux-headers-{image.release}"
    usable = offers(archive, "linux-headers", _short(image.release), all_suites=True)
    found = [offer for offer in usable if offer.package == name]
    if not found:
        return None
    offer = max(found, key=lambda offer: offer.version == image.version)
    key = f"{offer.package}_{offer.version}"
    return cache.build("header-tree", key, lambda directory, log: _fetch_headers(archive, offer, directory, log))


def _short(release: str) -> str:
    match = re.match(r"\d+\.\d+", release)
    assert match is not None
    return match[0]


def unpacked_headers(archive: Archive, offer: Offer, cache: Cache) -> Path:
    """Return the directory for ``make -C modules KDIR=…``."""
    key = f"{offer.package}_{offer.version}"
    entry = cache.build(
        "headers", key, lambda directory, log: _unpack_headers(archive, offer, directory, log, cache, key)
    )
    return entry / "usr/src" / offer.package


def _unpack_headers(archive: Archive, offer: Offer, directory: Path, log: Path, cache: Cache, key: str) -> None:
    _fetch_headers(archive, offer, directory, log)
    # The makefile has the only absolute path.
    makefile = directory / "usr/src" / offer.package / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{cache.path('headers', key)}/usr/src/"))


def _fetch_headers(archive: Archive, offer: Offer, directory: Path, log: Path) -> None:
    common = offer.package.removesuffix("-amd64") + "-common"
    depends = re.search(r"^Depends: (.*)$", archive.ask("show", f"{offer.package}={offer.version}"), re.MULTILINE)
    kbuild = re.search(r"linux-kbuild-[^ ,]+", depends[1] if depends else "")
    if not kbuild:
        raise HowdahError(f"{offer.package} {offer.version} names no linux-kbuild package")
    for package in (offer.package, common, kbuild[0]):
        archive.fetch_unpacked(Offer(package, offer.release, offer.version, offer.suite), directory, log)
