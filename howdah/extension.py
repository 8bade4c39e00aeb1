# SPDX-License-Identifier: Apache-2.0
"""What installed packages add to howdah: their entry points in the groups ``howdah.*``.

howdah/hooks.py says what each group takes. A package of howdah's own that adds something has an ``entry_points.txt`` of
the same form in its folder. Nothing is imported before it is used. Where no package adds anything, the search costs a
millisecond: importlib.metadata, which takes forty to load, is left out.

Only the folders are searched into which packages are installed: no pack, profile or working directory adds code.
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
    """One entry point. ``package`` and ``version`` are empty for one of howdah's own."""

    kind: str  # the group without "howdah."
    name: str
    value: str  # "module" or "module:object"
    package: str = ""
    version: str = ""

    @property
    def is_own(self) -> bool:
        return not self.package

    def load(self, within: str = "") -> Any:
        """The object, or the module, of the entry point; ``within`` names a module of the package that it names.

        Raises HowdahError, which names the package, for whatever comes of the import.
        """
        module, _, attribute = self.value.partition(":")
        return self.guarded(_found, ".".join(filter(None, (module, within))), attribute)

    def guarded(self, call: Callable[..., _Kind], *arguments: Any) -> _Kind:
        """What the call into the package returns; what it raises becomes a HowdahError that names the package."""
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
        """Of the sources of the package that it names, which is not imported for that."""
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
        """As run.json names it."""
        return {"kind": self.kind, "name": self.name, "package": self.package, "version": self.version}


def extensions(kind: str, taken: Collection[str] = ()) -> dict[str, Extension]:
    """The entry points of a group by name, howdah's own first, then by name.

    Raises HowdahError for a name that two packages have, or that is among ``taken``, those that howdah has itself.
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


def _found(module: str, attribute: str) -> Any:
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
    """Folders of installed packages, and the names of what describes each package there."""
    for folder in folders():
        try:
            names = [path.name for path in Path(folder).iterdir() if path.name.endswith(_METADATA)]
        except OSError:
            continue
        yield from ((folder, name) for name in sorted(names))


def folders() -> list[str]:
    """Where pip installs packages for this Python."""
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    return list(dict.fromkeys([*site.getsitepackages(), *user]))


def _entries(file: Path) -> Iterator[tuple[str, str, str]]:
    """(kind, name, value) of the groups that are howdah's."""
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
