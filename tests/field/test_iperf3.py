# SPDX-License-Identifier: Apache-2.0
"""iperf3 with a size: it ends, its own JSON agrees, and a program that polls is named."""

from __future__ import annotations

import pytest

from tests.field.answer import ask

pytestmark = pytest.mark.guest

SIZED = """
howdah: 1
name: sized
path: {rate: 100 Mbit/s, rtt: 20 ms, buffer: 1 bdp}
flows: [{size: 500 kB}]
traffic: {source: iperf3, sink: iperf3}
duration: 4 s
"""
POLLS = """
howdah: 1
name: polls
path: {rate: 1 Mbit/s, rtt: 20 ms}
flows:
  - traffic:
      client: {command: [iperf3, -c, "{server_address}", -p, "{port}", -n, 20K, -i, "0"]}
      server: {command: [iperf3, -s, "-1", -p, "{port}"]}
duration: 2 s
"""


def test_a_size_arrives_whole_and_iperf3s_own_account_agrees() -> None:
    run = ask(SIZED).run()
    assert run.failed == {}
    sums = run.program_json("iperf3/1-client.json")["end"]
    assert sums["sum_sent"]["bytes"] == sums["sum_received"]["bytes"] == 500_000
    assert run.agent()["bytes_received"] == 500_000
    # 500 kB at 95.64 Mbit/s of goodput take 42 ms, slow start from 10 segments some round trips more. iperf3 itself
    # stays connected for 4 s, which is not the transfer's time.
    assert 0.08 < run.value("completion_time_s") < 0.5


def test_a_program_that_polls_is_named_with_its_host() -> None:
    run = ask(POLLS).run()
    (said,) = run.failed.values()
    assert "'iperf3 -c 10.2.1.1" in said
    assert "on s1" in said
