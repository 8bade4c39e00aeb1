# SPDX-License-Identifier: Apache-2.0
"""ss and iperf3 against tcp_info."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from howdah.measure.outside import compare, iperf3_retransmitted, ss_retransmitted
from howdah.measure.row import Sheet
from howdah.measure.sampled import Samples
from howdah.record.directory import RunDirectory
from tests.unit.plan_factory import make_plan

FLOW = make_plan().flows[0]
SS = """\
# left 5000000000
State Recv-Q Send-Q Local Address:Port Peer Address:Port
# s1 7000000000
State Recv-Q Send-Q Local Address:Port Peer Address:Port
ESTAB 0 0 10.1.0.1:40009 10.3.0.1:5001 cubic retrans:0/99 rcv_space:14480
ESTAB 0 272224 10.1.0.1:40001 10.3.0.1:5001 cubic unacked:102 retrans:0/8 rcv_space:14480
# r1 7000000000
ESTAB 0 0 10.3.0.1:5001 10.1.0.1:40001 cubic cwnd:10
"""


def _info(*total: int) -> Samples:
    """One reading a second from the epoch on."""
    times = np.arange(len(total), dtype=np.int64) * 1_000_000_000
    return Samples(times, {"total_retrans_packets": np.array(total, dtype=np.int64)})


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    directory = RunDirectory(tmp_path)
    directory.raw.mkdir()
    (directory.raw / "ss-end.txt").write_text(SS)
    return directory


def test_the_sender_of_the_flow_is_found(directory: RunDirectory) -> None:
    assert ss_retransmitted(directory.raw / "ss-end.txt", FLOW) == (7_000_000_000, 8)


def test_nothing_printed_is_zero(tmp_path: Path) -> None:
    file = tmp_path / "ss.txt"
    file.write_text(SS.replace("retrans:0/8 ", ""))
    assert ss_retransmitted(file, FLOW) == (7_000_000_000, 0)


@pytest.mark.parametrize(
    ("total", "agree"), [((0, 5, 8, 9), True), ((0, 5, 9, 9), True), ((0, 9, 9, 9), False), ((0, 5, 6, 7), False)]
)
def test_ss_lies_between_the_readings_around_it(directory: RunDirectory, total: tuple[int, ...], agree: bool) -> None:
    sheet = Sheet({})
    compare(sheet, directory, FLOW, _info(*total), epoch_ns=5_000_000_000)
    assert [check.agree for check in sheet.cross_checks] == [agree]
    assert sheet.cross_checks[0].sources["ss"] == 8
    assert bool(sheet.cross_checks[0].message) is not agree


@pytest.mark.parametrize(("counted", "agree"), [(100, True), (102, True), (110, False)])
def test_iperf3_counts_the_same(directory: RunDirectory, counted: int, agree: bool) -> None:
    (directory.raw / "ss-end.txt").unlink()
    (directory.raw / "iperf3").mkdir()
    text = json.dumps({"end": {"sum_sent": {"retransmits": counted}}})
    (directory.raw / "iperf3" / "1-client.json").write_text(text)
    sheet = Sheet({})
    compare(sheet, directory, FLOW, _info(0, 100), epoch_ns=0)
    assert [check.agree for check in sheet.cross_checks] == [agree]


def test_what_cannot_be_read_makes_no_comparison(tmp_path: Path) -> None:
    broken = tmp_path / "1-client.json"
    broken.write_text('{"error": "unable to connect"}')
    assert iperf3_retransmitted(broken) is None
    assert iperf3_retransmitted(tmp_path / "nothing.json") is None
    assert ss_retransmitted(tmp_path / "nothing.txt", FLOW) is None
