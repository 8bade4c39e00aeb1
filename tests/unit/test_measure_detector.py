# SPDX-License-Identifier: Apache-2.0
"""How many start-ups a detector ended: the kernel's counters of HyStart, and the reasons that plug-ins report."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from howdah.measure.exit_rows import detector_rows
from howdah.measure.measured import Measured
from howdah.measure.row import Sheet
from howdah.measure.sampled import Counters, Samples
from howdah.plan.plan import Flow
from howdah.record.metrics import MetricRow
from tests.experiment_factory import Scenario, make_plan
from tests.unit.event_factory import told

TRAIN, DELAY = "TcpExtTCPHystartTrainDetect", "TcpExtTCPHystartDelayDetect"


def counters(**grown: int) -> Counters:
    """``s1_train=2``: the counter of the host grows from 5 to 7."""
    names = {"train": TRAIN, "delay": DELAY}
    rows: list[dict[str, Any]] = []
    for key, value in grown.items():
        host, name = key.split("_")
        row = {"node": host, "source": "nstat", "name": names[name]}
        rows += [{**row, "time_ns": 0, "value": 5}, {**row, "time_ns": 10**9, "value": 5 + value}]
    columns = {name: [row[name] for row in rows] for name in ("node", "source", "name", "time_ns", "value")}
    kinds = {"time_ns": pa.int64(), "value": pa.int64()}
    return Counters(pa.table({name: pa.array(each, kinds.get(name, pa.string())) for name, each in columns.items()}))


def row_of(
    algorithm: str, found: Counters, events: dict[int, list[Any]] | None = None, **changes: Any
) -> MetricRow | None:
    plan = make_plan(Scenario(flows=2), algorithm, 0, {})
    flows: list[Flow] = [plan.flows[0], replace(plan.flows[1], **changes)]
    plan = replace(plan, flows=flows)
    none = Samples.__new__(Samples)
    data = Measured(plan, [], {}, {}, none, found, pa.table({}), events=events or {})
    sheet = Sheet({})
    detector_rows(sheet, data)
    return sheet.rows[0] if sheet.rows else None


def test_counters_of_every_sender_are_added() -> None:
    row = row_of("cubic", counters(s1_train=2, s1_delay=0, s2_train=0, s2_delay=1))
    assert row is not None
    assert row.value == 3


def test_the_hosts_of_background_flows_are_not_counted() -> None:
    row = row_of("cubic", counters(s1_train=0, s1_delay=0, s2_train=4, s2_delay=0), role="background")
    assert row is not None
    assert row.value == 0


def test_a_kernel_without_the_counters_says_so() -> None:
    row = row_of("cubic", counters())
    assert row is not None
    assert row.value is None
    assert "counters" in str(row.why)


@pytest.mark.parametrize("algorithm", ["reno", "cubic-no-hystart", "bbr", "mine"])
def test_what_has_no_detector_has_no_row(algorithm: str) -> None:
    assert row_of(algorithm, counters(s1_train=2, s1_delay=0)) is None


def test_a_plug_in_counts_by_the_flows_that_its_reason_ended() -> None:
    events = {1: [told(10, "phase", "delivery-rate"), told(20, "exit", "loss")], 2: [told(20, "exit", "loss")]}
    row = row_of("search", counters(), events)
    assert row is not None
    assert row.value == 1, "SEARCH decided, whatever ended its drain"
