# SPDX-License-Identifier: Apache-2.0
"""Sizes of structures that a module told, as rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from howdah.measure.footprint import footprint_rows
from howdah.measure.row import Sheet
from howdah.record.directory import RunDirectory


def rows_of(tmp_path: Path, record: dict[str, Any] | None) -> dict[str, Any]:
    directory = RunDirectory(tmp_path)
    directory.raw.mkdir(parents=True)
    if record is not None:
        (directory.raw / "agent.json").write_text(json.dumps(record))
    sheet = Sheet({})
    footprint_rows(sheet, directory)
    return {row["metric"]: row["value"] for row in sheet.rows}


def test_sizes_are_rows_in_bytes(tmp_path: Path) -> None:
    sizes = {"sock_bytes": "736", "tcp_sock_bytes": "2192"}
    assert rows_of(tmp_path, {"modules": {"footprint": {"parameters": sizes}}}) == {
        "sock_bytes": 736,
        "tcp_sock_bytes": 2192,
    }


@pytest.mark.parametrize("record", [None, {}, {"modules": {}}, {"modules": {"footprint": {"parameters": {"a": "x"}}}}])
def test_runs_without_the_module_have_no_rows(tmp_path: Path, record: dict[str, Any] | None) -> None:
    assert rows_of(tmp_path, record) == {}
