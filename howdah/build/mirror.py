# SPDX-License-Identifier: Apache-2.0
"""Where Debian packages are fetched from: the mirrors this machine's apt is configured with."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

_APT = Path("/etc/apt")
_OS_RELEASE = Path("/etc/os-release")
_DEBIAN = "http://deb.debian.org/debian"
_SECURITY = "http://deb.debian.org/debian-security"


def configured_mirror() -> str | None:
    """The mirror this machine's apt takes Debian from: a guest's packages come from the same place.

    None where it is unknown: mmdebstrap then uses Debian's own.
    """
    named = os.environ.get("HOWDAH_DEBIAN_MIRROR")
    if named:
        return named
    codename = _codename()
    return next((uri for uri, suites in apt_sources() if codename in suites), None) if codename else None


def debian_mirror() -> str:
    """The same, or Debian's own address."""
    return configured_mirror() or _DEBIAN


def security_mirror() -> str:
    """The mirror of debian-security: named, as apt has it, beside a named mirror, or Debian's own.

    Mirrors of both archives keep them side by side, as ``…/debian`` and ``…/debian-security``.
    """
    named = os.environ.get("HOWDAH_DEBIAN_SECURITY_MIRROR")
    if named:
        return named
    beside = os.environ.get("HOWDAH_DEBIAN_MIRROR")
    if beside and beside.rstrip("/").endswith("/debian"):
        return beside.rstrip("/") + "-security"
    codename = _codename()
    wanted = (f"{codename}-security", f"{codename}/updates")
    found = (uri for uri, suites in apt_sources() if any(suite in wanted for suite in suites))
    return next(found, _SECURITY) if codename else _SECURITY


def _codename() -> str | None:
    """``bookworm`` on Debian 12; None on anything but Debian, whose mirrors would not carry Debian's suites."""
    try:
        release = _OS_RELEASE.read_text()
    except OSError:
        return None
    codename = re.search(r"^VERSION_CODENAME=(\w+)$", release, re.MULTILINE)
    return codename[1] if codename and re.search(r"^ID=debian$", release, re.MULTILINE) else None


def apt_sources(directory: Path | None = None) -> Iterator[tuple[str, list[str]]]:
    """URI and suites of each binary source (sources.list(5), both formats)."""
    directory = directory or _APT
    for file in [directory / "sources.list", *sorted((directory / "sources.list.d").glob("*"))]:
        try:
            text = file.read_text(errors="replace")
        except OSError:
            continue
        if file.suffix == ".list":
            for match in re.finditer(r"^deb\s+(?:\[[^]]*\]\s+)?(https?://\S+)\s+(\S+)\s+main\b", text, re.MULTILINE):
                yield match[1], [match[2]]
        elif file.suffix == ".sources":
            for paragraph in re.split(r"\n\s*\n", text):
                fields = dict(re.findall(r"^([\w-]+):\s*(.*)$", paragraph, re.MULTILINE))
                uris = [uri for uri in fields.get("URIs", "").split() if uri.startswith("http")]
                if uris and "main" in fields.get("Components", "").split():
                    yield uris[0], fields.get("Suites", "").split()
