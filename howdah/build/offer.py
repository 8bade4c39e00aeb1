# SPDX-License-Identifier: Apache-2.0
"""What Debian's suites offer of its own kernel packages. apt takes seconds to say so, so its answers are kept."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from howdah.build.archive import SUITES, Archive, Offer, all_offers, read_suites
from howdah.build.cache import Cache, content_key
from howdah.errors import HowdahError

_OS_RELEASE = Path("/etc/os-release")
_NAMES = {
    "linux-image": r"linux-image-(?P<release>{release})\.[0-9.]+(?:-[0-9]+|\+(?:deb|bpo)[0-9.]+)-amd64",
    "linux-headers": r"linux-headers-(?P<release>{release})\.[0-9.]+(?:-[0-9]+|\+(?:deb|bpo)[0-9.]+)-amd64",
}
NEWEST = "newest"


def best(archive: Archive, kind: str, release: str, cache: Cache, *, all_suites: bool) -> Offer:
    """The highest version of a kind (``linux-image``, ``linux-headers``) for a release (``6.1``, ``newest``).

    Raises HowdahError when no suite has one.
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
    """The one with the highest version. Raises ValueError of nothing."""
    return max(found, key=lambda offer: [int(number) for number in re.findall(r"\d+", offer.version)])


def offers(archive: Archive, kind: str, release: str, *, all_suites: bool) -> list[Offer]:
    """Every package of the kind and release; with ``all_suites`` off only of suites whose programs run here."""
    stamp = archive.stamp()
    if stamp is None:
        return []
    kept = archive.root / f"{kind}-{release}.json"
    state = content_key(stamp, SUITES.read_bytes(), _NAMES[kind])
    found = _kept(kept, state)
    if found is None:
        found = _asked(archive, kind, release)
        if found:  # what is not there today may be there once the index was brought up to date
            written = kept.with_suffix(".new")
            record = {"state": state, "offers": [asdict(offer) for offer in found]}
            written.write_text(json.dumps(record, indent=1) + "\n")
            written.replace(kept)
    usable = _usable_suites()
    return [offer for offer in found if all_suites or offer.suite in usable]


def _kept(file: Path, state: str) -> list[Offer] | None:
    try:
        record = json.loads(file.read_text())
        return [Offer(**one) for one in record["offers"]] if record["state"] == state else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _asked(archive: Archive, kind: str, release: str) -> list[Offer]:
    wanted = r"\d+\.\d+" if release == NEWEST else re.escape(release)
    name = re.compile(_NAMES[kind].replace("{release}", wanted))
    prefix = f"{kind}-" if release == NEWEST else f"{kind}-{release}"
    packages = [word for word in archive.ask("pkgnames", prefix).split() if name.fullmatch(word)]
    return all_offers(archive.ask("madison", *sorted(packages)), name) if packages else []


def _usable_suites() -> list[str]:
    """Suites up to this machine's own: kernel-suites.txt lists them oldest first."""
    codename = re.search(r"^VERSION_CODENAME=(\w+)$", _OS_RELEASE.read_text(), re.MULTILINE)
    suites = [suite for _, suite in read_suites()]
    own = [number for number, suite in enumerate(suites) if codename and suite.split("-")[0] == codename[1]]
    return suites[: own[-1] + 1] if own else []
