# SPDX-License-Identifier: Apache-2.0
"""The shape of what ``howdah search --json`` prints."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from howdah.record.model import FilePart


class SearchRow(FilePart):
    """A candidate of a search with its score."""

    values: dict[str, Any] = Field(description="field or variable of a step: value, as a profile has it")
    score: float | None = Field(description="larger is a better counterexample; null where its runs do not say")
    found: bool = Field(description="whether it is a counterexample")
    text: str
    experiment: str = Field(description="directory of its runs, below that of the search")


class SearchFound(SearchRow):
    why: list[str] = Field(description="what its runs show, in sentences")
    profile: str


class SearchCrash(SearchRow):
    profile: str


class SearchNeighbour(SearchRow):
    change: str


class Search(FilePart):
    """A search (docs/search.md)."""

    directory: str
    page: str
    corpus: str | None = Field(description="where --corpus keeps the profile")
    format: int
    asked: str = Field(description="SHA-256 of the profile, apart from the budget")
    goal: str
    space: int = Field(description="candidates of the space, apart from constraints")
    tried: int
    failed: int
    held: int
    without_value: int
    shrinking_tried: int
    counterexample: SearchFound | None
    crashed: int = Field(description="candidates that crashed the guest's kernel")
    crash: SearchCrash | None = Field(description="the simplest of them")
    neighbours: list[SearchNeighbour]
    not_proven: list[str]
    importance: dict[str, float] = Field(description="PED-ANOVA, variable: share")
    candidates: list[SearchRow]
