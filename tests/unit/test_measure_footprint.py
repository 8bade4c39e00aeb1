# SPDX-License-Identifier: Apache-2.0
"""Sizes of structures that a module told, as rows."""

from __future__ import annotations

from typing import Any

import pytest

from howdah.measure.row import Sheet
from howdah.measure.run import footprint_rows
from howdah.record.agent import AgentRecord


def rows_of(**told: Any) -> dict[str, Any]:
    sheet = Sheet({})
    footprint_rows(sheet, AgentRecord.model_validate(told))
    return {row.metric: row.value for row in sheet.rows}


def test_sizes_are_rows_in_bytes() -> None:
    sizes = {"sock_bytes": "736", "tcp_sock_bytes": "2192"}
    assert rows_of(modules={"footprint": {"parameters": sizes}}) == {
        "sock_bytes": 736,
        "tcp_sock_bytes": 2192,
    }


@pytest.mark.parametrize("record", [{}, {"modules": {}}, {"modules": {"footprint": {"parameters": {"a": "x"}}}}])
def test_runs_without_the_module_have_no_rows(record: dict[str, Any]) -> None:
    assert rows_of(**record) == {}
