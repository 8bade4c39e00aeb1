# SPDX-License-Identifier: Apache-2.0
"""What software is in a bundle, as SPDX 2.3 (https://spdx.github.io/spdx-spec/v2.3/), in JSON.

A list of packages, each with its version, its source and its Package URL. It makes no claim of licences that nobody has
read: it names the copyright file of each package, which is in the bundle.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

from howdah.build.cache import content_key
from howdah.build.guest_tree import COPYRIGHTS, SUITE, GuestTree

_SNAPSHOT = "https://snapshot.debian.org/package/{source}/{version}/"


@dataclass(frozen=True)
class Component:
    """``licence`` is an SPDX expression or NOASSERTION; ``source`` says where its source is."""

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
    """A component for each package of a guest tree."""
    found = []
    for name, version in sorted(tree.packages.items()):
        source, source_version = tree.sources.get(name, (name, version))
        where = _SNAPSHOT.format(source=source, version=source_version)
        url = f"pkg:deb/debian/{name}@{_quoted(version)}?arch=amd64&distro={SUITE}"
        note = f"Its terms are in {COPYRIGHTS}/{name} beside the guest tree; its source is {source} {source_version}."
        found.append(Component(name, version, "NOASSERTION", where, url, note))
    return found


def _quoted(version: str) -> str:
    """A version in a Package URL."""
    return re.sub(r"[^A-Za-z0-9.~_-]", lambda match: f"%{ord(match[0]):02X}", version)


def inventory(components: Iterable[Component], made: str) -> str:
    """The document; the same for the same components and date."""
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
