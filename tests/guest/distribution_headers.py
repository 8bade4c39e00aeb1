# SPDX-License-Identifier: Apache-2.0
"""A distribution kernel's headers as its users have them: Debian's linux-headers packages, unpacked without root."""

from __future__ import annotations

import re
from pathlib import Path

from howdah.engine.cache import Cache
from howdah.engine.supervise import run_logged
from howdah.engine.uml.archive import Archive, Offer, all_offers, read_suites
from howdah.errors import HowdahError

_OS_RELEASE = Path("/etc/os-release")


def provide_headers(release: str, cache: Cache) -> tuple[Path, Offer]:
    """What ``make -C modules KDIR=…`` takes, for the newest Debian kernel of that release (``6.1``), and its package.

    The programs in it must run here, so no suite newer than this machine's Debian counts. Raises HowdahError when no
    suite offers any.
    """
    archive = Archive(cache)
    offer = _best(archive, release, cache)
    key = f"{offer.package}_{offer.version}"
    entry = cache.build("headers", key, lambda directory, log: _build(archive, offer, directory, log, cache, key))
    return entry / "usr/src" / offer.package, offer


def _best(archive: Archive, release: str, cache: Cache) -> Offer:
    name = re.compile(rf"linux-headers-(?P<release>{re.escape(release)})\.[0-9.]+(?:-[0-9]+|\+deb[0-9.]+)-amd64")
    problems: list[str] = []
    offers = _offers(archive, name, release)
    if not offers:
        log = cache.log("apt", "index")
        log.parent.mkdir(parents=True, exist_ok=True)
        problems = archive.update(log)
        offers = _offers(archive, name, release)
    if not offers:
        raise HowdahError(f"no suite offers linux-headers of {release} for this machine", hint=" / ".join(problems))
    return max(offers, key=lambda offer: [int(number) for number in re.findall(r"\d+", offer.version)])


def _offers(archive: Archive, name: re.Pattern[str], release: str) -> list[Offer]:
    if archive.age_s() is None:
        return []
    packages = [word for word in archive.ask("pkgnames", f"linux-headers-{release}").split() if name.fullmatch(word)]
    usable = _usable_suites()
    found = all_offers(archive.ask("madison", *sorted(packages)), name) if packages else []
    return [offer for offer in found if offer.suite in usable]


def _usable_suites() -> list[str]:
    """Suites up to this machine's own: kernel-suites.txt lists them oldest first."""
    codename = re.search(r"^VERSION_CODENAME=(\w+)$", _OS_RELEASE.read_text(), re.MULTILINE)
    suites = [suite for _, suite in read_suites()]
    own = [number for number, suite in enumerate(suites) if codename and suite.split("-")[0] == codename[1]]
    return suites[: own[-1] + 1] if own else []


def _build(archive: Archive, offer: Offer, directory: Path, log: Path, cache: Cache, key: str) -> None:
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
