# SPDX-License-Identifier: Apache-2.0
"""The format of a bundle: a ready-made kernel, guest tree, modules and tools, for machines that build nothing.

A bundle is a directory, or a tar file of one. ``bundle.json`` lists its pieces, each packed (packed_piece.py) in
``pieces/``, and its documents: licences, the kernel's configuration, a list of the software. A piece's *recipe* names
all inputs from which it was made except the compiler. ``bundle.json.sig`` is a signature of ``bundle.json`` by
``ssh-keygen -Y sign``.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import shutil
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import IO

from howdah.build.cache import content_key
from howdah.errors import HowdahError
from howdah.foreign import is_plain_name, open_foreign

MANIFEST, SIGNATURE, PIECES = "bundle.json", "bundle.json.sig", "pieces"
FORMAT = 1
MACHINE = "x86_64"
_MOST_BYTES = 16 << 20  # limit for bundle.json, a signature or a document
FETCH = "Fetch it again, and compare its digest with the one that was published with it."
_DIGEST = re.compile(r"[0-9a-f]{64}")
_KINDS = ("kernel", "tree", "agent", "module", "tool", "headers")


@dataclass(frozen=True)
class BundlePiece:
    """A piece of a bundle, made according to ``recipe``; in a cache it is the entry ``kind/key``.

    ``size`` is the packed size, ``unpacked`` the unpacked size, in bytes; ``about`` describes it.
    """

    kind: str
    recipe: str
    sha256: str
    size: int
    unpacked: int
    about: str

    @property
    def key(self) -> str:
        """A name for the content, independent of the recipe and the maker."""
        return content_key(self.sha256)

    @property
    def file(self) -> str:
        return f"{PIECES}/{self.sha256}.tar.zst"


@dataclass(frozen=True)
class BundleFile:
    """A bundle. ``place`` is a directory or a tar file. ``made`` is a date, ``howdah`` the version that made it.

    ``documents`` maps the names of the other files to their digests.
    """

    place: Path
    digest: str
    made: str
    howdah: str
    pieces: tuple[BundlePiece, ...]
    documents: dict[str, str]

    def find(self, kind: str, recipe: str) -> BundlePiece | None:
        return next((piece for piece in self.pieces if piece.kind == kind and piece.recipe == recipe), None)

    @property
    def title(self) -> str:
        return f"bundle {self.digest[:12]} of {self.made}"

    def read(self, name: str) -> bytes:
        """Return the content of a document. Raises HowdahError if the bundle is truncated or lacks it."""
        try:
            with member(self.place, name) as source:
                return source.read(_MOST_BYTES)
        except (KeyError, FileNotFoundError, tarfile.TarError, EOFError) as error:
            raise self._cut_off(name) from error

    def extract(self, name: str, into: Path) -> None:
        """Extract a file. Raises HowdahError if the bundle is truncated or lacks it."""
        try:
            with member(self.place, name) as source, into.open("xb") as target:
                shutil.copyfileobj(source, target, 1 << 20)
        except (KeyError, FileNotFoundError, tarfile.TarError, EOFError) as error:
            raise self._cut_off(name) from error

    def _cut_off(self, name: str) -> HowdahError:
        return HowdahError(f"this bundle is cut off: {name} is missing", where=str(self.place), hint=FETCH)

    @contextmanager
    def extracted(self, name: str, beside: Path) -> Iterator[Path]:
        """Provide a file of the bundle, extracted into ``beside`` if the bundle is a tar file."""
        if self.place.is_dir():
            if not (self.place / name).is_file():
                raise self._cut_off(name)
            yield self.place / name
            return
        file = beside / f".{name.rpartition('/')[2]}"
        self.extract(name, file)
        yield file
        file.unlink()

    def has(self, name: str) -> bool:
        try:
            with member(self.place, name):
                return True
        except (KeyError, OSError, tarfile.TarError, EOFError):
            return False


@contextmanager
def member(place: Path, name: str) -> Iterator[IO[bytes]]:
    """Open a file of the bundle. Raises KeyError, OSError, RecordError, TarError or EOFError."""
    if place.is_dir():
        with open_foreign(place / name) as file:
            yield file
        return
    with open_foreign(place) as whole, tarfile.open(fileobj=whole, mode="r:") as archive:
        # Read members in order: in a truncated file those before the cut can still be read.
        found = next((each for each in archive if each.name == name), None)
        opened = None if found is None else archive.extractfile(found)
        if opened is None:
            raise KeyError(name)
        yield opened


def read_bundle(place: Path) -> BundleFile:
    """Read a bundle's manifest. Raises HowdahError unless it has this format and is for this machine."""
    try:
        with member(place, MANIFEST) as file:
            text = file.read(_MOST_BYTES)
    except (KeyError, OSError, tarfile.TarError, EOFError) as error:
        if not place.exists():
            raise HowdahError("there is no such bundle", where=str(place), hint="Name its file.") from error
        raise HowdahError(
            f"this is not a bundle of howdah, or it is cut off: it has no whole {MANIFEST}",
            where=str(place),
            hint=FETCH,
        ) from error
    return _parsed(place, text)


def _is_whole(piece: BundlePiece) -> bool:
    words, sizes = (piece.recipe, piece.about), (piece.size, piece.unpacked)
    return (
        piece.kind in _KINDS
        and _DIGEST.fullmatch(piece.sha256) is not None
        and all(isinstance(each, str) for each in words)
        and all(isinstance(each, int) and each >= 0 for each in sizes)
    )


def _parsed(place: Path, text: bytes) -> BundleFile:
    where = str(place)
    try:
        value = json.loads(text)
        number = value["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise HowdahError(f"the {MANIFEST} of this bundle cannot be read", where=where, hint=FETCH) from error
    if number != FORMAT:
        raise HowdahError(
            f"this bundle has format {number!r}, and this howdah reads {FORMAT}",
            where=where,
            hint="Install the howdah that it was made for, or a newer bundle.",
        )
    if value.get("machine") != MACHINE or platform.machine() != MACHINE:
        raise HowdahError(
            f"this bundle is for {value.get('machine')}, and this machine is {platform.machine()}",
            where=where,
            hint=f"User-mode kernels run on {MACHINE} alone; a machine of that kind can make the runs (--cluster).",
        )
    try:
        pieces = tuple(BundlePiece(**piece) for piece in value["pieces"])
        documents = {str(name): str(digest) for name, digest in value["documents"].items()}
        found = BundleFile(place, hashlib.sha256(text).hexdigest(), value["made"], value["howdah"], pieces, documents)
        wrong = [str(piece.kind) for piece in pieces if not _is_whole(piece)]
        wrong += [name for name in documents if not all(is_plain_name(part) for part in name.split("/"))]
        if wrong:
            raise ValueError(", ".join(wrong))
        date.fromisoformat(found.made)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise HowdahError(f"the {MANIFEST} of this bundle is not whole ({error})", where=where, hint=FETCH) from error
    return found
