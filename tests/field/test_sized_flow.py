# SPDX-License-Identifier: Apache-2.0
"""A flow of fixed size is measured until its last byte is acknowledged."""

from __future__ import annotations

import pytest

from tests.field.answer import ask, says

pytestmark = pytest.mark.guest

OBJECT = """\
howdah: 1
name: object
path: {rate: 100 Mbit/s, rtt: 100 ms, buffer: 1 bdp}
flows: [{size: 4 MB}]
algorithm: [cubic, cubic-no-hystart]
duration: 4 s
"""


def test_an_exit_after_the_last_write_is_seen() -> None:
    """All 4 MB fit into the send buffer long before HyStart ends slow start, by the kernel's own counters."""
    answer = ask(OBJECT)
    with_, without = answer.run(algorithm="cubic"), answer.run(algorithm="cubic-no-hystart")
    assert (answer.status, with_.failed, without.failed) == (0, {}, {})
    assert (with_.counter("TcpExtTCPHystartTrainDetect"), without.counter("TcpExtTCPHystartTrainDetect")) == (1, 0)
    assert with_.value("exit_cwnd_packets") == with_.counter("TcpExtTCPHystartTrainCwnd")
    assert with_.value("exit_cause") == "ack-train"
    assert says(answer.sentence, with_.value("exit_cwnd_bdp"), "BDP")
    assert without.value("exit_time_s") is None
    for run in (with_, without):
        # The window that the trace ends with is within one reading (an ACK) of the largest that the socket told.
        told = max(row["cwnd_packets"] for row in run.info())
        assert run.value("peak_cwnd_packets") == pytest.approx(told, rel=0.01)
        acknowledged = max(row["snd_una_bytes"] for row in run.table("tcp_probe"))
        assert acknowledged > 4_000_000 - 64 * 1448  # the last record is the state before its ACK


OBJECTS = """\
howdah: 1
name: objects
path: {rate: 50 Mbit/s, rtt: 20 ms, buffer: 1 bdp}
flows: [{size: 100 kB, initial_window: [2, 10, 32]}]
duration: 2 s
"""


def test_larger_initial_windows_are_faster() -> None:
    """100 kB are 70 segments: 2 + 4 + 8 + 16 + 32 + 8 of them in 6 flights, 10 + 20 + 40 in 3, 32 + 38 in 2.

    To have the last byte takes the handshake, a round trip for each flight but the last, its way and the time in which
    the bottleneck passes what is left of it; so size / completion is 6.1, 8.9 and 13.6 Mbit/s.
    """
    answer = ask(OBJECTS)
    assert answer.status == 0, answer.said + answer.complained
    for window, rtts, mbit_per_s in (("2", 6.5, 6.1), ("10", 4.5, 8.9), ("32", 2.5, 13.6)):
        run = answer.run(flows__1__initial_window=window)
        ended_s = run.agent()["end_ns"] / 1e9  # what the receiver's socket told
        assert run.value("completion_time_s") == pytest.approx(ended_s)
        assert rtts * 0.02 <= ended_s < (rtts + 1) * 0.02
        assert run.value("goodput_bits_per_second") == pytest.approx(800_000 / ended_s)
        assert run.value("goodput_bits_per_second") == pytest.approx(mbit_per_s * 1e6, rel=0.01)
        assert run.value("time_to_100_kb_s") == pytest.approx(ended_s + 0.01, abs=0.001)  # the last ACK is on its way


def test_sources_and_sinks_agree() -> None:
    """A process that calls send() and one that calls recv() give what the kernel's source and sink give."""
    sides = "traffic: {source: [kernel, python], sink: [kernel, python]}\n"
    answer = ask(OBJECTS.replace("[2, 10, 32]", "10") + sides)
    assert answer.status == 0, answer.said + answer.complained
    assert len(answer.runs) == 4
    for metric in ("completion_time_s", "goodput_bits_per_second", "time_to_100_kb_s", "peak_cwnd_packets"):
        values = [run.value(metric) for run in answer.runs]
        assert max(values) == pytest.approx(min(values), rel=1e-4), (metric, values)
