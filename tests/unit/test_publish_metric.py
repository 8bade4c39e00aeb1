# SPDX-License-Identifier: Apache-2.0
"""Names of metrics, and that the documentation lists the ones that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.publish.metric import INFO, PATH, SERIES
from howdah.publish.openmetrics import summary_metric
from howdah.publish.server import matchers

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("measure", "unit", "name", "factor"),
    [
        ("exit_time_s", "s", "howdah_exit_time_seconds", 1.0),
        ("exit_cwnd_packets", "packets", "howdah_exit_cwnd_packets", 1.0),
        ("exit_cwnd_bdp", "ratio", "howdah_exit_cwnd_bdp_ratio", 1.0),
        ("min_rtt_us", "us", "howdah_min_rtt_seconds", 1e-6),
        ("goodput_bits_per_second", "bit/s", "howdah_goodput_bytes_per_second", 0.125),
        ("utilisation", "ratio", "howdah_utilisation_ratio", 1.0),
        ("queue_peak_bytes", "bytes", "howdah_queue_peak_bytes", 1.0),
        ("time_to_90_percent_s", "s", "howdah_time_to_90_percent_seconds", 1.0),
        ('bad" name{}_count', "", "howdah_bad_name_count_value", 1.0),
    ],
)
def test_measures_become_metrics_in_base_units(measure: str, unit: str, name: str, factor: float) -> None:
    metric, found = summary_metric(measure, unit)
    assert (metric.name, found) == (name, factor)


def test_families_drop_the_suffix_that_openmetrics_adds() -> None:
    by_name = {metric.name: metric for metric in (*SERIES, *INFO)}
    assert by_name["howdah_flow_acked_bytes_total"].family == "howdah_flow_acked_bytes"
    assert by_name["howdah_run_info"].family == "howdah_run"
    assert by_name["howdah_flow_cwnd_packets"].family == "howdah_flow_cwnd_packets"


def test_counters_and_facts_are_named_so() -> None:
    for metric in (*SERIES, *PATH, *INFO):
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert metric.name.endswith("_info") == (metric.kind == "info")


def test_documentation_lists_every_metric_with_kind_and_help() -> None:
    text = (ROOT / "docs" / "prometheus.md").read_text(encoding="utf-8")
    for metric in (*SERIES, *PATH, *INFO):
        assert f"| `{metric.name}` | {metric.kind} | {metric.help} |" in text


@pytest.mark.parametrize(
    ("unit", "name", "factor"),
    [
        ("us", "howdah_exit_quantity_seconds", 1e-6),
        ("packets", "howdah_exit_quantity_packets", 1.0),
        ("bit/s", "howdah_exit_quantity_bytes_per_second", 1 / 8),
        ("ratio", "howdah_exit_quantity_ratio", 1.0),
        ("rounds", "howdah_exit_quantity_rounds", 1.0),
    ],
)
def test_a_measure_whose_unit_is_that_of_its_row_has_it_in_its_name(unit: str, name: str, factor: float) -> None:
    metric, found = summary_metric("exit_quantity", unit)
    assert (metric.name, found) == (name, factor)
    assert metric.help.startswith("The number that decided")


def test_a_label_of_any_text_is_one_string_in_a_query() -> None:
    """PromQL's strings follow Go's: a backslash before a quote, a backslash and instead of a line's end."""
    labels = {"profile": 'a "b"', "algorithm": "back\\slash", "note": "two\nlines", "both": '\\"'}
    expected = r'algorithm="back\\slash",both="\\\"",note="two\nlines",profile="a \"b\""'
    assert matchers(labels) == expected
