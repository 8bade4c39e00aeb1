# SPDX-License-Identifier: Apache-2.0
"""What the README prints of its experiment is what the report makes of the measures behind it today."""

from __future__ import annotations

import json
import re
import statistics

from howdah.number import significant
from tests.readme import GOLDEN, README, REMEDY, block, of_golden, shown


def _shown() -> str:
    readme = README.read_text(encoding="utf-8")
    begin, end = shown(readme)
    return readme[begin:end]


def test_the_block_is_what_the_report_makes_of_its_measures() -> None:
    assert _shown() == block(of_golden(json.loads(GOLDEN.read_text(encoding="utf-8")))), REMEDY


def test_retransmissions_are_the_medians_of_the_runs() -> None:
    """Read here in another way than the report does."""
    data = json.loads(GOLDEN.read_text(encoding="utf-8"))
    for algorithm in ("cubic-no-hystart", "cubic", "reno", "bbr"):
        values = [
            row["value"]
            for run, rows in data.items()
            for row in rows
            if re.fullmatch(rf"{algorithm}-r\d", run) and row["flow"] == 1 and row["metric"] == "retransmitted_packets"
        ]
        assert len(values) == 3
        (line,) = re.findall(rf"^{algorithm} +3 .*$", _shown(), re.MULTILINE)
        assert significant(statistics.median(values)) in re.split(r" {2,}", line)
