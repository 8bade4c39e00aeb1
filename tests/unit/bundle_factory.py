# SPDX-License-Identifier: Apache-2.0
"""Small bundles for tests: a piece of two files, packed as the large ones are."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from howdah.build.bundle_file import FORMAT, MACHINE, MANIFEST, BundlePiece
from howdah.build.cache import Cache
from howdah.build.packed_piece import Piece, pack_piece

RECIPE = "a recipe"


def ready_piece(
    place: Path, kind: str = "module", recipe: str = RECIPE, content: str = "content"
) -> tuple[BundlePiece, Path]:
    """A piece and the file of its packed piece."""
    directory = place / "entry"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "file").write_text(content)
    if not (directory / "link").is_symlink():
        (directory / "link").symlink_to("file")
    packed_piece, file = pack_piece(Piece(f"{kind}/{content}", directory), Cache(place / "packed"))
    return BundlePiece(kind, recipe, packed_piece.sha256, packed_piece.size, 100, f"a {kind}"), file


def write_bundle(target: Path, files: list[tuple[BundlePiece, Path]], **changed: Any) -> bytes:
    """Write a tar file, and return its manifest; ``changed`` replaces fields of that."""
    document = b"terms"
    manifest = {
        "format": FORMAT,
        "machine": MACHINE,
        "made": "2026-11-28",
        "howdah": "0.1.0",
        "pieces": [asdict(ready) for ready, _file in files],
        "documents": {"LICENSE": hashlib.sha256(document).hexdigest()},
        **changed,
    }
    text = json.dumps(manifest).encode()
    members = {MANIFEST: text, "LICENSE": document, **{ready.file: file.read_bytes() for ready, file in files}}
    with tarfile.open(target, "w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return text
