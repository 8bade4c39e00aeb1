# SPDX-License-Identifier: Apache-2.0
"""index.json: every entry with its verdict, claims, and the runs behind them. docs/atlas.md has the fields."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from howdah.atlas.record import Record, provenance
from howdah.atlas.verdict import count
from howdah.atlas.view import ClaimView, View
from howdah.run.directory import write_json
from howdah.run.provenance import now

FORMAT = 1


def index_data(views: list[View], record: Record, *, quick: bool) -> dict[str, Any]:
    """The whole index as plain values."""
    return {
        "format": FORMAT,
        "created": now(),
        "quick": quick,
        **provenance(),
        "verdicts": count(view.verdict for view in views),
        "claims": count(claim.verdict for view in views for claim in view.claims),
        "wall_s": round(record.wall_s(quick=quick), 1),
        "core_s": round(record.core_s(quick=quick), 1),
        "simulated_s": round(record.simulated_s(quick=quick), 1),
        "entries": [_entry(view) for view in views],
    }


def _entry(view: View) -> dict[str, Any]:
    return {
        "id": view.entry.id,
        "kind": view.entry.kind,
        "title": view.entry.section.title,
        "paper": view.entry.paper.key,
        "where": view.entry.section.where,
        "page": view.entry.page,
        "verdict": view.verdict,
        "reason": view.entry.section.reason or None,
        "profiles": view.entry.section.profiles,
        "published": [chapter.name for chapter in view.chapters if chapter.published],
        "claims": [_claim(claim) for claim in view.claims],
    }


def _claim(claim: ClaimView) -> dict[str, Any]:
    """As claims.json has it, with the profile it comes from."""
    return {"profile": claim.profile, **claim.data}


def write_index(site: Path, views: list[View], record: Record, *, quick: bool) -> dict[str, Any]:
    data = index_data(views, record, quick=quick)
    write_json(site / "index.json", data)
    return data
