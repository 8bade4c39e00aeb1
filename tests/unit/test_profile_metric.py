# SPDX-License-Identifier: Apache-2.0
"""Quantities of metrics are read in their units."""

from __future__ import annotations

import pytest

from howdah.metric import Metric, known_entries, known_metrics, read_share
from howdah.quantity import QuantityError


@pytest.mark.parametrize(
    ("metric", "text", "value"),
    [
        ("goodput_bits_per_second", "12.9 Mbit/s", 12.9e6),
        ("goodput_bits_per_second", "1 Gbit/s", 1e9),
        ("exit_time_s", "20 s", 20),
        ("exit_time_s", "250 ms", 0.25),
        ("exit_time_s", "2 min", 120),
        ("min_rtt_us", "204.5 ms", 204_500),
        ("queue_peak_bytes", "1.275 MB", 1_275_000),
        ("queue_peak_bytes", "64 KiB", 65_536),
        ("exit_cwnd_packets", "870", 870),
        ("exit_cwnd_packets", "870 packets", 870),
        ("overshoot_packets", "-12", -12),
        ("utilisation", "23.2 %", 0.232),
        ("utilisation", "0.232", 0.232),
        ("exit_cwnd_bdp", "1.5 bdp", 1.5),
        ("exit_round", "9 rounds", 9),
        ("exit_time_s", "0", 0),
    ],
)
def test_quantities_in_the_unit_of_the_metric(metric: str, text: str, value: float) -> None:
    assert known_metrics()[metric].read(text) == pytest.approx(value)


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        ("exit_time_s", "20"),
        ("exit_time_s", "20 %"),
        ("exit_time_s", "20 Mbit/s"),
        ("goodput_bits_per_second", "12 MB"),
        ("goodput_bits_per_second", "12"),
        ("queue_peak_bytes", "3"),
        ("exit_cwnd_packets", "3 s"),
        ("exit_cwnd_packets", "many"),
        ("utilisation", "0.3 s"),
        ("utilisation", ""),
        ("utilisation", "1e999"),
        ("utilisation", "nan"),
    ],
)
def test_what_is_no_such_quantity_is_refused(metric: str, text: str) -> None:
    with pytest.raises(QuantityError):
        known_metrics()[metric].read(text)


def test_tolerances() -> None:
    packets = Metric("exit_cwnd_packets", "packets")
    assert packets.read_tolerance("10 %", 870) == pytest.approx(87)
    assert packets.read_tolerance("10 %", -50) == pytest.approx(5)
    assert packets.read_tolerance("12", 870) == 12
    share = known_metrics()["utilisation"]
    assert share.read_tolerance("10 %", 0.5) == pytest.approx(0.05)  # of what is expected
    assert share.read_tolerance("2 points", 0.5) == pytest.approx(0.02)
    with pytest.raises(QuantityError, match="negative"):
        packets.read_tolerance("-1", 870)
    with pytest.raises(QuantityError, match="between 0 and 100"):
        read_share("120 %")


def test_entries_are_those_of_the_atlas() -> None:
    """90 of the five papers, two of a load's paper, two of TCPEVAL, and three of where start-ups break."""
    assert "HyStart_fig9" in known_entries()
    assert len([entry for entry in known_entries() if not entry.startswith("RFC")]) == 97
