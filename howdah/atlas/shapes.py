# SPDX-License-Identifier: Apache-2.0
"""Shapes of what ``howdah atlas --json`` prints."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from howdah.command.shape import Shape


class AtlasEntry(Shape):
    id: str
    kind: str
    paper: str
    where: str
    title: str
    profiles: list[str]
    central: list[str] = Field(description="its central claims, as profile/claim")
    verdict: str = Field(description="the worst of its central claims, as they are published")
    word: str
    claims: dict[str, int] = Field(description="its published claims by verdict")


class AtlasTally(Shape):
    """Published claims of one verdict and one cause."""

    verdict: str
    word: str
    cause: str = Field(description="empty where the verdict needs none")
    number: int
    claims: list[str] = Field(description="as profile/claim")


class AtlasList(Shape):
    entries: list[AtlasEntry]
    claims: dict[str, int] = Field(description="all published claims by verdict")
    words: dict[str, int] = Field(description="the same by the words of the pages")
    causes: list[AtlasTally]


class Atlas(Shape):
    """index.json of the site."""

    site: str
    quick: bool
    created: str
    verdicts: dict[str, int]
    claims: dict[str, int]
    words: dict[str, dict[str, int]] = Field(description="entries and claims, counted by the words of the pages")
    causes: list[AtlasTally]
    wall_s: float
    core_s: float
    simulated_s: float
    entries: list[dict[str, Any]]
