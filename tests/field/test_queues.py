# SPDX-License-Identifier: Apache-2.0
"""Queues that take seconds to drain, either way: each run ends, and no packet that waits is called lost."""

from __future__ import annotations

import pytest

from tests.field.answer import ask

pytestmark = pytest.mark.guest

WAY_BACK = """
howdah: 1
name: way-back
path: {{rate: 10 Mbit/s, reverse_rate: 100 kbit/s, rtt: 20 ms, buffer: 100 packets, reverse_buffer: {buffer}}}
algorithm: {algorithms}
duration: 15 s
"""
DEEP = """
howdah: 1
name: deep
path: {{rate: {rate}, rtt: 50 ms, buffer: {packets} packets}}
duration: {duration}
"""
FRAME_BITS = 1514 * 8
ACK_BITS, SACK_BITS = 66 * 8, 94 * 8  # bare, and with three blocks


def test_a_way_back_of_bytes_drains_before_packets_are_counted() -> None:
    answer = ask(WAY_BACK.format(buffer="75700 B", algorithms="[cubic, bbr]"))
    for algorithm in ("cubic", "bbr"):
        run = answer.run(algorithm=algorithm)
        assert run.failed == {}
        # 75700 bytes of ACKs are six seconds: an ACK that waits that long has the sender see such a round trip.
        assert run.verdict["verdict"] == "pass"
    longest_us = max(row["rtt_us"] for row in answer.run(algorithm="cubic").info())
    assert longest_us > 4_000_000  # of 75700 * 8 / 100e3 = 6.06 s


def test_fifty_packets_of_the_way_back_are_fifty_acks() -> None:
    run = ask(WAY_BACK.format(buffer="50 packets", algorithms="[cubic, bbr]")).run(algorithm="cubic")
    assert run.failed == {}
    # The queue adds no more than its fifty ACKs, and what waits forward, 100 full frames at 10 Mbit/s.
    longest_us = max(row["rtt_us"] for row in run.info())
    assert longest_us < 20_000 + 51 * SACK_BITS * 10 + 101 * FRAME_BITS / 10 + 20_000
    assert longest_us > 20_000 + 40 * ACK_BITS * 10


@pytest.mark.parametrize(
    ("rate", "packets", "duration", "measured"),
    [
        ("500 kbit/s", 600, "4 s", 600 * 1514),  # 14.5 s to drain
        ("10 kbit/s", 20, "20 s", 20 * 1514),  # a frame takes 1.2 s
    ],
)
def test_a_slow_path_is_measured_to_its_depth(rate: str, packets: int, duration: str, measured: int) -> None:
    run = ask(DEEP.format(rate=rate, packets=packets, duration=duration)).run()
    assert run.failed == {}
    depths = [check["measured"] for check in run.verdict["checks"] if check["name"] == "buffer"]
    assert len(depths) == 2
    assert all(abs(depth - measured) <= 1514 / 2 for depth in depths)


def test_a_deep_buffer_is_measured_in_part_and_the_part_is_named() -> None:
    run = ask(DEEP.format(rate="500 kbit/s", packets=9500, duration="4 s")).run()
    assert run.failed == {}
    part = int(30 * 500_000 // FRAME_BITS) * 1514  # what drains in 30 s
    for check in (check for check in run.verdict["checks"] if check["name"] == "buffer"):
        assert check["expected"] == part
        assert check["measured"] >= part
        assert str(part) in check["message"]
        assert str(9500 * 1514) in check["message"]
