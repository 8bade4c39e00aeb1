# SPDX-License-Identifier: Apache-2.0
"""Rows carry the behaviour of their flow's receiver."""

from __future__ import annotations

from howdah.measure.row import Sheet


def test_a_flow_of_its_own_behaviour_says_so() -> None:
    sheet = Sheet({"receiver": "windows-xp"}, {1: "freebsd-7"})
    for flow in (0, 1, None):
        sheet.add(flow, "retransmitted_packets", 3)
    assert [row.plain(sheet.common)["receiver"] for row in sheet.rows] == ["windows-xp", "freebsd-7", "windows-xp"]
