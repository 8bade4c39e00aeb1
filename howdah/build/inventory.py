# SPDX-License-Identifier: Apache-2.0
"""The software in a bundle as SPDX 2.3 JSON (https://spdx.github.io/spdx-spec/v2.3/), and the corresponding sources.

The list gives each package's version, source and Package URL. It makes no claims about licences that nobody has
reviewed, but names the copyright file of each package, which is in the bundle.

Publishers of a bundle must provide its sources (GPL-2.0, section 3): from Debian's archive, all source packages of its
guest tree and its kernel, in the versions from which the binaries were made.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from howdah.build.archive import SUITE, debian_mirror, security_mirror
from howdah.build.bundle_file import FETCH, BundleFile
from howdah.build.cache import Progress, content_key
from howdah.build.guest_tree import COPYRIGHTS, GuestTree
from howdah.build.supervise import CommandFailedError, run_logged
from howdah.errors import HowdahError

_SNAPSHOT = "https://snapshot.debian.org/package/{source}/{version}/"


@dataclass(frozen=True)
class Component:
    """A piece of software. ``licence`` is an SPDX expression or NOASSERTION; ``source`` says where its source is."""

    name: str
    version: str
    licence: str
    source: str
    url: str | None = None
    note: str = ""

    def described(self) -> object:
        reference = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": self.url}
        return {
            "SPDXID": self.identity,
            "name": self.name,
            "versionInfo": self.version,
            "downloadLocation": self.source,
            "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION",
            "licenseDeclared": self.licence,
            "copyrightText": "NOASSERTION",
            **({"externalRefs": [reference]} if self.url is not None else {}),
            **({"comment": self.note} if self.note else {}),
        }

    @property
    def identity(self) -> str:
        return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", f"{self.name}-{self.version}")


def components_of(tree: GuestTree) -> list[Component]:
    """Return a component for each package of a guest tree."""
    found = []
    for name, version in sorted(tree.packages.items()):
        source, source_version = tree.sources.get(name, (name, version))
        where = _SNAPSHOT.format(source=source, version=source_version)
        url = f"pkg:deb/debian/{name}@{_quoted(version)}?arch=amd64&distro={SUITE}"
        note = f"Its terms are in {COPYRIGHTS}/{name} beside the guest tree; its source is {source} {source_version}."
        found.append(Component(name, version, "NOASSERTION", where, url, note))
    return found


def _quoted(version: str) -> str:
    return re.sub(r"[^A-Za-z0-9.~_-]", lambda match: f"%{ord(match[0]):02X}", version)


def inventory(components: Iterable[Component], made: str) -> str:
    """Return the document; the same for the same components and date."""
    packages = {each.identity: each.described() for each in components}
    listed = [packages[name] for name in sorted(packages)]
    value = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": "howdah-guest",
        "documentNamespace": f"https://spdx.org/spdxdocs/howdah-guest-{content_key(json.dumps(listed), made)}",
        "creationInfo": {"created": f"{made}T00:00:00Z", "creators": ["Tool: howdah"]},
        "packages": listed,
        "relationships": [
            {
                "spdxElementId": "SPDXRef-DOCUMENT",
                "relationshipType": "DESCRIBES",
                "relatedSpdxElement": name,
            }
            for name in sorted(packages)
        ],
    }
    return json.dumps(value, indent=1) + "\n"


INVENTORY = "spdx.json"
_SOURCE = re.compile(r"its source is (\S+) (\S+)\.$")
_KERNEL = re.compile(r"^linux-source-\S+ (\S+?),? ")


def sources_of(bundle: BundleFile) -> list[tuple[str, str]]:
    """Return name and version of each source package, according to the bundle's inventory. Raises HowdahError."""
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
    """Fetch a bundle's sources into a directory and list them in ``sources.txt``; return a message per missing one.

    apt has a separate index there, so neither root nor the machine's own configuration is needed.
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
