# SPDX-License-Identifier: Apache-2.0
"""A distribution's kernel as its users have it: Debian's linux-image and linux-headers, unpacked without root."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from howdah.engine.cache import Cache, Progress
from howdah.engine.supervise import run_logged
from howdah.engine.uml.archive import Archive, Offer, all_offers, read_suites
from howdah.engine.uml.tools import build_tools
from howdah.errors import HowdahError

_OS_RELEASE = Path("/etc/os-release")
_NAMES = {
    "linux-image": r"linux-image-(?P<release>{release})\.[0-9.]+(?:-[0-9]+|\+(?:deb|bpo)[0-9.]+)-amd64",
    "linux-headers": r"linux-headers-(?P<release>{release})\.[0-9.]+(?:-[0-9]+|\+deb[0-9.]+)-amd64",
}
_IMAGE_BYTES = 700 * 2**20  # the package and what is unpacked of it
NEWEST = "newest"


@dataclass(frozen=True)
class ImagePackage:
    """An unpacked kernel: ``release`` as ``uname -r`` says it, ``modules`` is lib/modules/RELEASE."""

    release: str
    image: Path
    modules: Path
    config: Path
    package: str
    version: str
    suite: str


def provide_image(release: str, cache: Cache, progress: Progress) -> ImagePackage:
    """The newest package of a release (``6.12``, ``newest``), fetched once. Raises HowdahError if nobody offers it."""
    archive = Archive(cache)
    offer = _best(archive, "linux-image", release, cache, all_suites=True)
    key = f"{offer.package}_{offer.version}"

    def unpack(directory: Path, log: Path) -> None:
        progress(f"fetch {offer.package} {offer.version}", 0, 1)
        file, _ = archive.fetch(offer, directory, log, build_tools(cache).launch)
        run_logged(["dpkg-deb", "-x", str(file), str(directory)], log)
        file.unlink()
        progress(f"fetch {offer.package} {offer.version}", 1, 1)

    root = cache.build("image", key, unpack, needs_bytes=_IMAGE_BYTES)
    images = sorted((root / "boot").glob("vmlinuz-*"))
    if len(images) != 1:
        raise HowdahError(f"{offer.package} holds {len(images)} kernels, not one", where=str(root))
    name = images[0].name.removeprefix("vmlinuz-")
    places = (root / "lib/modules" / name, root / "usr/lib/modules" / name)
    modules = next((place for place in places if place.is_dir()), places[0])
    return ImagePackage(
        name, images[0], modules, root / "boot" / f"config-{name}", offer.package, offer.version, offer.suite
    )


def provide_headers(release: str, cache: Cache) -> tuple[Path, Offer]:
    """What ``make -C modules KDIR=…`` takes, for the newest Debian kernel of that release (``6.1``), and its package.

    The programs in it must run here, so no suite newer than this machine's Debian counts. Raises HowdahError when no
    suite offers any.
    """
    archive = Archive(cache)
    offer = _best(archive, "linux-headers", release, cache, all_suites=False)
    return _headers(archive, offer, cache), offer


def headers_of(image: ImagePackage, cache: Cache) -> Path | None:
    """The headers of that very kernel, to build modules for it; None where no suite usable here has them."""
    archive = Archive(cache)
    name = f"linux-headers-{image.release}"
    found = [
        offer for offer in _offers(archive, "linux-headers", _short(image.release), False) if offer.package == name
    ]
    return _headers(archive, found[0], cache) if found else None


def _short(release: str) -> str:
    match = re.match(r"\d+\.\d+", release)
    assert match is not None
    return match[0]


def _best(archive: Archive, kind: str, release: str, cache: Cache, *, all_suites: bool) -> Offer:
    problems: list[str] = []
    offers = _offers(archive, kind, release, all_suites)
    if not offers:
        log = cache.log("apt", "index")
        log.parent.mkdir(parents=True, exist_ok=True)
        problems = archive.update(log)
        offers = _offers(archive, kind, release, all_suites)
    if not offers:
        raise HowdahError(f"no suite offers {kind} of {release} for this machine", hint=" / ".join(problems) or None)
    return max(offers, key=lambda offer: [int(number) for number in re.findall(r"\d+", offer.version)])


def _offers(archive: Archive, kind: str, release: str, all_suites: bool) -> list[Offer]:
    if archive.age_s() is None:
        return []
    wanted = r"\d+\.\d+" if release == NEWEST else re.escape(release)
    name = re.compile(_NAMES[kind].replace("{release}", wanted))
    prefix = f"{kind}-" if release == NEWEST else f"{kind}-{release}"
    packages = [word for word in archive.ask("pkgnames", prefix).split() if name.fullmatch(word)]
    found = all_offers(archive.ask("madison", *sorted(packages)), name) if packages else []
    usable = _usable_suites()
    return [offer for offer in found if all_suites or offer.suite in usable]


def _usable_suites() -> list[str]:
    """Suites up to this machine's own: kernel-suites.txt lists them oldest first."""
    codename = re.search(r"^VERSION_CODENAME=(\w+)$", _OS_RELEASE.read_text(), re.MULTILINE)
    suites = [suite for _, suite in read_suites()]
    own = [number for number, suite in enumerate(suites) if codename and suite.split("-")[0] == codename[1]]
    return suites[: own[-1] + 1] if own else []


def _headers(archive: Archive, offer: Offer, cache: Cache) -> Path:
    key = f"{offer.package}_{offer.version}"
    entry = cache.build(
        "headers", key, lambda directory, log: _unpack_headers(archive, offer, directory, log, cache, key)
    )
    return entry / "usr/src" / offer.package


def _unpack_headers(archive: Archive, offer: Offer, directory: Path, log: Path, cache: Cache, key: str) -> None:
    common = offer.package.removesuffix("-amd64") + "-common"
    depends = re.search(r"^Depends: (.*)$", archive.ask("show", f"{offer.package}={offer.version}"), re.MULTILINE)
    kbuild = re.search(r"linux-kbuild-[^ ,]+", depends[1] if depends else "")
    if not kbuild:
        raise HowdahError(f"{offer.package} {offer.version} names no linux-kbuild package")
    for package in (offer.package, common, kbuild[0]):
        file, _ = archive.fetch(Offer(package, offer.release, offer.version, offer.suite), directory, log)
        run_logged(["dpkg-deb", "-x", str(file), str(directory)], log)
        file.unlink()
    # The one absolute path in it.
    makefile = directory / "usr/src" / offer.package / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{cache.path('headers', key)}/usr/src/"))
