# SPDX-License-Identifier: Apache-2.0
"""Debian's ``linux-source-X`` packages: installed on this machine, fetched into the cache, or available in a suite."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from howdah.build.archive import Archive, Offer, release_order, unpack_package
from howdah.build.cache import Cache, Progress, file_sha256
from howdah.build.tools import build_tools
from howdah.errors import HowdahError

PACKAGE_DIRECTORY = Path("/usr/src")
_RECORD = "source.json"
_KIND = "source"
_SPACE_BYTES = 500 * 2**20  # the package and its unpacked files
_STALE_S = 24 * 3600  # age of the index after which "newest" updates it
_RETRY_S = 3600  # time until the next attempt after a failed update


class UnsupportedKernelError(HowdahError):
    """A kernel whose source no suite has."""


@dataclass(frozen=True)
class SourcePackage:
    """A package whose archive is here. ``release`` is the kernel's (``6.1``), ``version`` the package's."""

    release: str
    version: str
    archive: Path
    origin: str  # a description of where it came from

    @property
    def name(self) -> str:
        return f"linux-source-{self.release}"


def find_package(release: str, cache: Cache) -> SourcePackage | None:
    """Return the package if it is on this machine: an installed one, otherwise the one fetched last."""
    return _installed(release) or _fetched(release, cache)


def provide_package(release: str, cache: Cache, progress: Progress) -> SourcePackage:
    """Return the package, fetched if it is not here. Raises UnsupportedKernelError if no suite has it."""
    found = find_package(release, cache)
    if found:
        return found
    archive = Archive(cache)
    tools = build_tools(cache)
    problems = _update(archive, cache, f"kernel: look for linux-source-{release}", progress)
    offer = archive.offers().get(release)
    if offer is None:
        raise _unsupported(release, archive, cache, problems)

    def fetch(directory: Path, log: Path) -> None:
        step = f"kernel: fetch {offer.package} {offer.version}"
        progress(step, 0, 1)
        package, sha256 = archive.fetch(offer, directory, log, tools.launch)
        _unpack(package, offer, directory, log)
        record = {"package": offer.package, "version": offer.version, "suite": offer.suite, "sha256": sha256}
        (directory / _RECORD).write_text(json.dumps(record, indent=1) + "\n")
        progress(step, 1, 1)

    cache.build(_KIND, f"{offer.package}_{offer.version}", fetch, needs_bytes=_SPACE_BYTES)
    found = _fetched(release, cache)
    assert found is not None
    return found


def newest_release(cache: Cache) -> str | None:
    """Return the highest kernel release that is here or in the current index; None if there is neither. No network."""
    known = {*Archive(cache).offers(), *_releases_here(cache)}
    return max(known, key=release_order, default=None)


def provide_newest(cache: Cache, progress: Progress) -> str:
    """Return the newest release, updating an index older than a day. Raises UnsupportedKernelError without one."""
    archive = Archive(cache)
    age_s = archive.age_s()
    problems: list[str] = []
    if age_s is None or age_s > _STALE_S or not archive.offers():
        problems = _update(archive, cache, "kernel: ask for the newest", progress)
    # Without the archive "the newest" would silently mean "the newest one here".
    if archive.offers():
        if problems:
            archive.set_age(_STALE_S - _RETRY_S)  # otherwise every run of an offline batch would try again
    else:
        raise UnsupportedKernelError(
            "cannot find out which kernel is the newest: " + _summary(problems),
            hint=f"Name one, as debian-6.12. apt's output is in {_index_log(cache)}",
        )
    release = newest_release(cache)
    assert release is not None
    return release


def _installed(release: str) -> SourcePackage | None:
    package = f"linux-source-{release}"
    archive = PACKAGE_DIRECTORY / f"{package}.tar.xz"
    if not archive.is_file():
        return None
    try:
        answer = subprocess.run(
            ["dpkg-query", "-W", "-f", "${Version}", package], capture_output=True, text=True, check=False
        )
        version = answer.stdout.strip() if answer.returncode == 0 else ""
    except FileNotFoundError:
        version = ""
    return SourcePackage(release, version or f"archive {file_sha256(archive)[:12]}", archive, "installed")


def _fetched(release: str, cache: Cache) -> SourcePackage | None:
    for entry in reversed(cache.entries(_KIND)):  # the latest first
        archive = entry / f"linux-source-{release}.tar.xz"
        if archive.is_file():
            record = json.loads((entry / _RECORD).read_text())
            return SourcePackage(release, record["version"], archive, f"fetched from {record['suite']}")
    return None


def _releases_here(cache: Cache) -> set[str]:
    places = [PACKAGE_DIRECTORY, *cache.entries(_KIND)]
    names = (file.name for place in places for file in place.glob("linux-source-*.tar.xz"))
    found = (re.fullmatch(r"linux-source-(\d+\.\d+)\.tar\.xz", name) for name in names)
    return {match[1] for match in found if match}


def _unpack(package: Path, offer: Offer, directory: Path, log: Path) -> None:
    whole = directory / "package"
    unpack_package(package, whole, log, f"{package.name} does not unpack", offer.suite)
    archive = whole / "usr/src" / f"{offer.package}.tar.xz"
    if not archive.is_file():
        raise HowdahError(f"{package.name} holds no {archive.name}", where=offer.suite)
    archive.rename(directory / archive.name)
    shutil.rmtree(whole)
    package.unlink()


def _update(archive: Archive, cache: Cache, step: str, progress: Progress) -> list[str]:
    progress(step, 0, 1)
    problems = archive.update(_index_log(cache), build_tools(cache).launch)
    progress(step, 1, 1)
    return problems


def _index_log(cache: Cache) -> Path:
    log = cache.log("apt", "index")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    return log


def _summary(problems: list[str]) -> str:
    return " / ".join(dict.fromkeys(problems[-3:])) or "no suite offers any"


def _unsupported(release: str, archive: Archive, cache: Cache, problems: list[str]) -> UnsupportedKernelError:
    offers = archive.offers()
    here = _releases_here(cache)
    can = [
        f"debian-{name} ({offers[name].version}, {offers[name].suite})" if name in offers else f"debian-{name} (here)"
        for name in sorted({*offers, *here}, key=release_order)
    ]
    what = f"no suite offers linux-source-{release}, so debian-{release} is unsupported"
    if problems:
        what += f" (apt said: {_summary(problems)})"
    listed = f"There are: {', '.join(can)}. " if can else ""
    return UnsupportedKernelError(what, hint=f"{listed}A tree of your own is named with --kernel PATH.")
