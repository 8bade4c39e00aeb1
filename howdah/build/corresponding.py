# SPDX-License-Identifier: Apache-2.0
"""The sources that correspond to a bundle, for whoever publishes one (GPL-2.0, section 3): all source packages of its
guest tree and its kernel, in the versions that its binaries were made of, from Debian's archive."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from howdah.build.archive import debian_mirror, security_mirror
from howdah.build.bundle_file import FETCH, BundleFile
from howdah.build.cache import Progress
from howdah.build.guest_tree import SUITE
from howdah.build.supervise import CommandFailedError, run_logged
from howdah.errors import HowdahError

INVENTORY = "spdx.json"
_SOURCE = re.compile(r"its source is (\S+) (\S+)\.$")
_KERNEL = re.compile(r"^linux-source-\S+ (\S+?),? ")


def sources_of(bundle: BundleFile) -> list[tuple[str, str]]:
    """Name and version of each source package, by what the bundle's inventory says. Raises HowdahError."""
    text = bundle.read(INVENTORY)
    try:
        notes = [str(package.get("comment", "")) for package in json.loads(text)["packages"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        where = str(bundle.place)
        raise HowdahError(f"the {INVENTORY} of this bundle cannot be read", where=where, hint=FETCH) from error
    found: set[tuple[str, str]] = set()
    for note in notes:
        if match := _SOURCE.search(note):
            found.add((match[1], match[2]))
        elif match := _KERNEL.match(note):
            found.add(("linux", match[1]))
    return sorted(found)


def collect(bundle: BundleFile, into: Path, progress: Progress) -> list[str]:
    """Fetch them into a directory, and write its list, ``sources.txt``; those that could not be had, in words.

    apt has an index of its own there, so neither root nor the machine's own configuration is needed.
    """
    wanted = sources_of(bundle)
    state = into / ".apt"
    for name in ("lists/partial", "cache/archives/partial", "etc"):
        (state / name).mkdir(parents=True, exist_ok=True)
    (state / "sources.list").write_text("".join(_lines((SUITE, "bookworm"))))
    options = list(_options(state))
    log = into / ".apt" / "log"
    try:
        run_logged(["apt-get", *options, "update"], log)
    except CommandFailedError as error:
        raise HowdahError("the index of sources cannot be fetched: " + " / ".join(error.tail[-2:])) from error
    missing = []
    for done, (name, version) in enumerate(wanted):
        progress(f"source {name} {version}", done, len(wanted))
        if list(into.glob(f"{name}_{version.partition(':')[2] or version}*.dsc")):
            continue
        try:
            run_logged(["apt-get", *options, "source", "--download-only", f"{name}={version}"], log, cwd=into)
        except CommandFailedError as error:
            missing.append(f"{name} {version}: {error.tail[-1] if error.tail else 'apt-get said nothing'}")
    (into / "sources.txt").write_text("".join(f"{name} {version}\n" for name, version in wanted))
    return missing


def _lines(suites: Iterable[str]) -> Iterator[str]:
    signed = "[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]"
    for suite in suites:
        for each in (suite, f"{suite}-updates"):
            yield f"deb-src {signed} {debian_mirror()} {each} main\n"
        yield f"deb-src {signed} {security_mirror()} {suite}-security main\n"


def _options(state: Path) -> Iterator[str]:
    for name, value in (
        ("Dir::Etc::SourceList", state / "sources.list"),
        ("Dir::Etc::SourceParts", "/dev/null"),
        ("Dir::State", state),
        ("Dir::State::Lists", state / "lists"),
        ("Dir::Cache", state / "cache"),
        ("APT::Sandbox::User", "root"),
    ):
        yield "-o"
        yield f"{name}={value}"
