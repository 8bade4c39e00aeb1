# SPDX-License-Identifier: Apache-2.0
"""A pack as a tar archive, without howdah's own reader: its members, its index, and whether they agree."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zstandard

Members = list[tuple[tarfile.TarInfo, bytes]]
INDEX = "/pack.json"


def unpacked(content: bytes) -> bytes:
    """Of a zstandard frame, whose checksum must fit."""
    plain = io.BytesIO()
    zstandard.ZstdDecompressor().copy_stream(io.BytesIO(content), plain)
    return plain.getvalue()


def packed(members: Members) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member, content in members:
            archive.addfile(member, io.BytesIO(content) if member.size else None)
    return zstandard.ZstdCompressor(write_checksum=True).compress(out.getvalue())


def members_of(file: Path) -> Members:
    with tarfile.open(fileobj=io.BytesIO(unpacked(file.read_bytes()))) as opened:
        return [(each, _content(opened, each)) for each in opened]


def index_of(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(next(text for each, text in members_of(file) if each.name.endswith(INDEX)))
    return found


def unlike_its_index(file: Path) -> Iterator[str]:
    """What the pack lacks, or has otherwise than its index says."""
    try:
        members = members_of(file)
        index = next(json.loads(text) for each, text in members if each.name.endswith(INDEX))
    except (OSError, EOFError, ValueError, StopIteration, tarfile.TarError, zstandard.ZstdError) as error:
        yield str(error) or type(error).__name__
        return
    there = {each.name.partition("/")[2]: hashlib.sha256(text).hexdigest() for each, text in members}
    for name, known in index["files"].items():
        if there.get(name) != known["sha256"]:
            yield name


def _content(opened: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = opened.extractfile(member)
    return b"" if file is None else file.read()
