# SPDX-License-Identifier: Apache-2.0
"""Packs made by hand: what a stranger could send."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import zstandard

from howdah.pack.archive import FORMAT


def member(name: str, content: bytes = b"", **fields: Any) -> tuple[tarfile.TarInfo, bytes]:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for field, value in fields.items():
        setattr(member, field, value)
    return member, content


RUN = "e/r"
WHOLE = {f"{RUN}/plan.json": b"{}", f"{RUN}/run.json": b"{}"}


def index_of(files: dict[str, bytes], **changes: Any) -> bytes:
    """The index of a pack of one run, and of further files."""
    said = {
        name: {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in {**WHOLE, **files}.items()
    }
    return json.dumps({"format": FORMAT, "experiments": ["e"], "runs": [RUN], "files": said, **changes}).encode()


def whole_pack(file: Path, index: bytes, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    whole = [member(f"x/{name}", content) for name, content in WHOLE.items()]
    return archive(file, member("x/pack.json", index), *whole, *members)


def archive(file: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for member, content in members:
            archive.addfile(member, io.BytesIO(content))
    file.write_bytes(zstandard.ZstdCompressor(write_checksum=True).compress(out.getvalue()))
    return file
