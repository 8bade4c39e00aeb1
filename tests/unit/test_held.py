# SPDX-License-Identifier: Apache-2.0
"""What can hold a flow back has a metric, words and, where it is worth telling, a column."""

from __future__ import annotations

import pytest

from howdah.held import HeldBy, held_words
from howdah.measure.statistics import statistic
from howdah.metric import known_metrics
from howdah.report.source import Group, Summary
from howdah.report.table import columns


def test_every_kind_has_a_metric_and_words() -> None:
    for kind in HeldBy:
        assert known_metrics()[kind.metric].unit == "ratio"
        assert held_words(kind, 0.5, {}).endswith("for 50 % of the time")
    assert len({held_words(kind, 0.5, {}) for kind in HeldBy}) == len(HeldBy)
    assert {name for name in known_metrics() if name.startswith("held_") and name.endswith("_share")} == {
        *(kind.metric for kind in HeldBy),
        *("held_back_share", "held_receive_window_share"),
    }


@pytest.mark.parametrize(
    ("kind", "share", "numbers", "clause"),
    [
        ("receive-buffer", 0.94, {"held_window_bytes": 65536}, "held it at 64 KiB for 94 % of the time"),
        ("receive-buffer", 0.94, {"held_window_bytes": None}, "held it back for 94 % of the time"),
        ("autotuning", 0.078, {"held_window_bytes": 31.6e6}, "held it back (at most 30.1 MiB) for 7.8 % of the time"),
        ("handshake-window", 0.4, {"held_window_bytes": 65160}, "held it at 63.6 KiB for 40 % of the time"),
        (
            "idle-restart",
            0.115,
            {"idle_restart_before_packets": 149.0, "idle_restart_after_packets": 10.0},
            "restart after idle (from 149 to 10 packets) held it back for 12 % of the time",
        ),
        ("pacing", 0.4, {"held_think_share": 0.9}, "pacing held it back for 40 % of the time, think time apart"),
        ("pacing", 0.4, {"held_think_share": 0.0}, "pacing held it back for 40 % of the time"),
        ("think", 0.9, {"held_think_share": 0.9}, "the client was thinking for 90 % of the time"),
    ],
)
def test_a_clause_has_the_numbers_that_there_are(
    kind: str, share: float, numbers: dict[str, float | None], clause: str
) -> None:
    assert held_words(kind, share, numbers).endswith(clause)


def test_there_is_no_other_kind() -> None:
    with pytest.raises(ValueError, match="gremlins"):
        held_words("gremlins", 0.5, {})


@pytest.mark.parametrize(
    ("metric", "values", "shown"),
    [
        ("held_pacing_share", [0.04], False),
        ("held_pacing_share", [0.06], True),
        ("held_pacing_share", [0.04, 0.06], True),  # in one row is enough
        ("held_bandwidth_share", [0.9], False),
        ("held_congestion_window_share", [0.9], False),
        ("idle_restarts", [0], False),
        ("idle_restarts", [3], True),
        ("utilisation", [0.01], True),
    ],
)
def test_a_column_is_there_if_a_row_is_notable(metric: str, values: list[float], shown: bool) -> None:
    summary = Summary()
    for number, value in enumerate(values):
        summary.statistics[Group("e", "k", "", "cubic", str(number + 1)), metric] = statistic([value])
    assert [column.name for column in columns([summary])] == [metric] * shown
