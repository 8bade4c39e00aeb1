# SPDX-License-Identifier: Apache-2.0
"""Extensions that installed packages add to howdah: their entry points in the groups ``howdah.*``.

howdah/hooks.py defines what each group takes. Packages of howdah's own list their extensions in an ``entry_points.txt``
of the same form. Nothing is imported before it is used. If no package adds anything, the search takes a millisecond,
because it avoids importlib.metadata, which takes forty to load.

Only the folders into which packages are installed are searched: no pack, profile or working directory can add code.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import site
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from howdah.errors import HowdahError
from howdah.place import PACKAGE

_Kind = TypeVar("_Kind")
_PREFIX = "howdah."
_FILE = "entry_points.txt"
_METADATA = ".dist-info"


@dataclass(frozen=True)
class Extension:
    """One entry point. ``package`` and ``version`` are empty for howdah's own."""

    kind: str  # the group without "howdah."
    name: str
    value: str  # "module" or "module:object"
    package: str = ""
    version: str = ""

    @property
    def is_own(self) -> bool:
        return not self.package

    def load(self, within: str = "") -> Any:
        """Import the object or module of the entry point; ``within`` selects a submodule of it.

        Raises HowdahError, which names the package, for any exception during the import.
        """
        module, _, attribute = self.value.partition(":")
        return self.guarded(_imported, ".".join(filter(None, (module, within))), attribute)

    def guarded(self, call: Callable[..., _Kind], *arguments: Any) -> _Kind:
        """Call a function of the package; any exception becomes a HowdahError that names the package."""
        try:
            return call(*arguments)
        except HowdahError:
            raise
        except Exception as error:
            if self.is_own:
                raise
            raise HowdahError(
                f"the package {self.package} {self.version} does not work: its entry point {self.name!r} in "
                f"{_PREFIX}{self.kind} ends with {type(error).__name__}: {error}",
                hint=f"Install a version that works with this howdah, or remove it: pip uninstall {self.package}",
            ) from error

    @property
    def sha256(self) -> str:
        """Digest of the source files of the package, computed without importing it."""
        digest = hashlib.sha256()
        for file in self._sources():
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
        return digest.hexdigest()

    def _sources(self) -> list[Path]:
        found = importlib.util.find_spec(self.value.partition(":")[0].partition(".")[0])
        if found is None:
            return []
        places = [Path(place) for place in found.submodule_search_locations or ()]
        files = sorted(file for place in places for file in place.rglob("*.py"))
        return files or ([Path(found.origin)] if found.origin else [])

    def to_json(self) -> dict[str, str]:
        """Return the extension's entry in run.json."""
        return {"kind": self.kind, "name": self.name, "package": self.package, "version": self.version}


def extensions(kind: str, taken: Collection[str] = ()) -> dict[str, Extension]:
    """Return the entry points of a group by name: howdah's own first, then the others in alphabetical order.

    Raises HowdahError for a name that two packages use, or that is in ``taken``, the names that howdah itself uses.
    """
    found: dict[str, Extension] = {}
    for each in _all():
        if each.kind != kind:
            continue
        other = found.get(each.name)
        if other is not None or each.name in taken:
            whose = "howdah itself has" if other is None or other.is_own else f"the package {other.package} has, too"
            raise HowdahError(
                f"the package {each.package} adds {each.name!r} to {_PREFIX}{kind}, which {whose}",
                hint=f"Remove one of them: pip uninstall {each.package}",
            )
        found[each.name] = each
    return found


def _imported(module: str, attribute: str) -> Any:
    loaded = importlib.import_module(module)
    return getattr(loaded, attribute) if attribute else loaded


@cache
def _all() -> tuple[Extension, ...]:
    own = (Extension(*each) for file in sorted(PACKAGE.glob(f"*/{_FILE}")) for each in _entries(file))
    installed = [
        Extension(*each, *name.removesuffix(_METADATA).split("-", 1))
        for folder, name in _packages()
        for each in _entries(Path(folder, name, _FILE))
    ]
    return (*own, *sorted(installed, key=lambda each: (each.kind, each.name, each.package)))


def _packages() -> Iterator[tuple[str, str]]:
    """Yield the folder and the name of the metadata directory of every installed package."""
    for folder in folders():
        try:
            names = [path.name for path in Path(folder).iterdir() if path.name.endswith(_METADATA)]
        except OSError:
            continue
        yield from ((folder, name) for name in sorted(names))


def folders() -> list[str]:
    """Return the folders into which pip installs packages for this Python."""
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return list(dict.fromkeys([*site.getsitepackages(), *user]))


def _entries(file: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (kind, name, value) of each entry in a group of howdah's."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeError):
        return
    kind = ""
    for line in text.splitlines() if f"[{_PREFIX}" in text else ():
        line = line.strip()
        if line.startswith("["):
            group = line.strip("[]").strip()
            kind = group.removeprefix(_PREFIX) if group.startswith(_PREFIX) else ""
        elif kind and "=" in line and not line.startswith("#"):
            name, _, value = line.partition("=")
            yield kind, name.strip(), value.partition("[")[0].strip()
