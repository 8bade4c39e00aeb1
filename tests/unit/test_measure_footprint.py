# SPDX-License-Identifier: Apache-2.0
"""Sizes of structures that a module told, as rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from howdah.measure.footprint import footprint_rows
from howdah.measure.row import Sheet
from howdah.run.directory import RunDirectory

SIZES = {
    "sock_bytes": "736",
    "tcp_sock_bytes": "2192",
    "cubic_state_bytes": "60",
    "ack_sample_bytes": "12",
    "bbr_state_bytes": "100",
    "rate_sample_bytes": "56",
}


def rows_of(tmp_path: Path, record: dict[str, Any] | None) -> dict[str, Any]:
    directory = RunDirectory(tmp_path)
    directory.raw.mkdir(parents=True)
    if record is not None:
        (directory.raw / "agent.json").write_text(json.dumps(record))
    sheet = Sheet({})
    footprint_rows(sheet, directory)
    return {row["metric"]: row["value"] for row in sheet.rows}


def test_the_slides_table_is_its_own_arithmetic(tmp_path: Path) -> None:
    """736 and 2192 bytes: 72 are 2.5 % of them and 156 are 5.3 %."""
    found = rows_of(tmp_path, {"modules": {"footprint": {"parameters": SIZES}}})
    assert (found["cubic_footprint_bytes"], found["bbr_footprint_bytes"]) == (72, 156)
    assert found["cubic_footprint_share"] == pytest.approx(0.025, abs=0.0005)
    assert found["bbr_footprint_share"] == pytest.approx(0.053, abs=0.0005)


def test_a_size_that_is_missing_leaves_out_what_needs_it(tmp_path: Path) -> None:
    found = rows_of(
        tmp_path, {"modules": {"footprint": {"parameters": {"sock_bytes": "736", "ack_sample_bytes": "12"}}}}
    )
    assert found == {"sock_bytes": 736, "ack_sample_bytes": 12}


@pytest.mark.parametrize("record", [None, {}, {"modules": {}}, {"modules": {"footprint": {"parameters": {"a": "x"}}}}])
def test_runs_without_the_module_have_no_rows(tmp_path: Path, record: dict[str, Any] | None) -> None:
    assert rows_of(tmp_path, record) == {}
