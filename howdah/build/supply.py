# SPDX-License-Identifier: Apache-2.0
"""Takes parts that were built elsewhere from bundles, instead of building them here.

Bundles are searched in this order: the one in ``HOWDAH_BUNDLE`` (``none``: no bundle at all), the package
``howdah_guest``, and those taken with ``howdah build --from``, newest first. A piece is used if its recipe is that of
this howdah. It is unpacked into the cache once, by its digest.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from pathlib import Path

from howdah.build.bundle_file import MANIFEST, SIGNATURE, BundleFile, BundlePiece, read_bundle
from howdah.build.cache import Cache, content_key, file_sha256
from howdah.errors import HowdahError

PACKAGE, VARIABLE, NONE = "howdah_guest", "HOWDAH_BUNDLE", "none"
_TAKEN = "taken"  # kind of the entries that record taken bundles
_WITHIN = "bundle"  # the bundle's directory in the package
_RESERVE_BYTES = 32 << 20

_read: dict[tuple[Path, float], BundleFile] = {}


def bundles(cache: Cache) -> list[BundleFile]:
    """Return the bundles to use, in order. Raises HowdahError for an unusable one."""
    named = os.environ.get(VARIABLE)
    if named == NONE:
        return []
    places = [Path(named)] if named else []
    package = installed()
    if package is not None:
        places.append(package)
    taken = sorted((_known(entry) for entry in cache.entries(_TAKEN)), key=lambda bundle: bundle.made, reverse=True)
    return [*map(_known, places), *taken]


def installed() -> Path | None:
    """Return the bundle's directory in the installed package; None without the package."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        return None
    return Path(next(iter(found.submodule_search_locations))) / _WITHIN


def _known(place: Path) -> BundleFile:
    file = place / MANIFEST if place.is_dir() else place
    key = (place, file.stat().st_mtime) if file.exists() else (place, 0.0)
    if key not in _read:
        _read[key] = read_bundle(place)
    return _read[key]


def is_in_bundle(kind: str, recipe: str, cache: Cache) -> bool:
    """Return whether a bundle has the piece."""
    return any(_usable(bundle, kind, recipe, cache) for bundle in bundles(cache))


def entry_from_bundle(kind: str, recipe: str, cache: Cache, waiting: Callable[[], None] | None = None) -> Path | None:
    """Return the cache entry unpacked from the first bundle with this recipe; None if no bundle has it."""
    for bundle in bundles(cache):
        ready = _usable(bundle, kind, recipe, cache)
        if ready is not None:
            return provide(bundle, ready, cache, waiting)
    return None


def digest_of(kind: str, key: str, cache: Cache) -> BundlePiece | None:
    """Return the piece from which an entry of the cache was unpacked; None if no bundle has it."""
    pieces = (ready for bundle in bundles(cache) for ready in bundle.pieces)
    return next((ready for ready in pieces if (ready.kind, ready.key) == (kind, key)), None)


def has_digest(sha256: str, cache: Cache) -> bool:
    return any(_is_available(bundle, ready, cache) for bundle, ready in _of_digest(sha256, cache))


def by_digest(sha256: str, cache: Cache) -> Path | None:
    """Return the entry of the piece with this digest; None if no bundle has it."""
    for bundle, ready in _of_digest(sha256, cache):
        if _is_available(bundle, ready, cache):
            return provide(bundle, ready, cache)
    return None


def _of_digest(sha256: str, cache: Cache) -> list[tuple[BundleFile, BundlePiece]]:
    return [(bundle, ready) for bundle in bundles(cache) for ready in bundle.pieces if ready.sha256 == sha256]


def _usable(bundle: BundleFile, kind: str, recipe: str, cache: Cache) -> BundlePiece | None:
    ready = bundle.find(kind, recipe)
    return ready if ready is not None and _is_available(bundle, ready, cache) else None


def _is_available(bundle: BundleFile, ready: BundlePiece, cache: Cache) -> bool:
    """Return whether the piece is available. Those of a taken bundle may have been removed from the cache."""
    return not _is_taken(bundle, cache) or cache.find(ready.kind, ready.key) is not None


def _is_taken(bundle: BundleFile, cache: Cache) -> bool:
    return bundle.place.is_relative_to(cache.root / _TAKEN)


def provide(bundle: BundleFile, ready: BundlePiece, cache: Cache, waiting: Callable[[], None] | None = None) -> Path:
    """Return a piece as an entry of the cache. Raises HowdahError if it is truncated or damaged, or for a full disk."""
    from howdah.build.packed_piece import (  # it imports zstandard, which a guest that runs an engine lacks
        PackedPiece,
        unpack_piece,
    )

    def unpack(directory: Path, _log: Path) -> None:
        with bundle.extracted(ready.file, directory) as file, file.open("rb") as opened:
            unpack_piece(opened, PackedPiece(f"{ready.kind}/{ready.key}", ready.sha256, ready.size), directory)

    room = ready.size + ready.unpacked + _RESERVE_BYTES
    return cache.build(ready.kind, ready.key, unpack, needs_bytes=room, waiting=waiting)


def take(bundle: BundleFile, cache: Cache) -> list[Path]:
    """Unpack all pieces of a bundle and record the bundle as taken. An incomplete bundle is not recorded."""
    entries = [provide(bundle, ready, cache) for ready in bundle.pieces]

    def remember(directory: Path, _log: Path) -> None:
        for name in (MANIFEST, *([SIGNATURE] if bundle.has(SIGNATURE) else []), *bundle.documents):
            target = directory / name
            target.parent.mkdir(parents=True, exist_ok=True)
            bundle.extract(name, target)
            wanted = bundle.documents.get(name)
            if wanted is not None and file_sha256(target) != wanted:
                raise HowdahError(f"{name} is not what {MANIFEST} says", where=str(bundle.place))

    cache.build(_TAKEN, content_key(bundle.digest), remember)
    return entries
