# SPDX-License-Identifier: Apache-2.0
"""Shapes of what ``build`` and ``bundle`` print with ``--json`` (shapes.py)."""

from __future__ import annotations

from pydantic import Field

from howdah.record.model import FilePart


class Build(FilePart):
    built: dict[str, str] = Field(description="what, and where it is")


class BundleWritten(FilePart):
    bundle: str = Field(description="the file, or the directory that was filled")
    digest: str = Field(description="SHA-256 of its bundle.json, which names all other files with theirs")
    bytes: int


class BundleSources(FilePart):
    bundle: str
    sources: str = Field(description="the directory that they were fetched into")
    missing: list[str] = Field(description="what the mirror has not, with apt's reason")
