# SPDX-License-Identifier: Apache-2.0
"""iperf3 with a size: it ends, and its own JSON agrees."""

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


def test_a_size_arrives_whole_and_iperf3s_own_account_agrees() -> None:
    run = ask(SIZED).run()
    assert run.failed == {}
    sums = run.program_json("iperf3/1-client.json")["end"]
    assert sums["sum_sent"]["bytes"] == sums["sum_received"]["bytes"] == 500_000
    assert run.agent()["bytes_received"] == 500_000


SIDES = """
howdah: 1
name: sides
path: {rate: 100 Mbit/s, rtt: [20 ms, 100 ms], buffer: 1 bdp}
flows: [{size: 500 kB}]
traffic: {source: SIDE, sink: SIDE}
duration: 3 s
"""


@pytest.mark.parametrize("rtt_ms", [20, 100])
def test_a_transfer_by_iperf3_takes_as_long_as_one_by_another_program(rtt_ms: int) -> None:
    """500 kB are 346 segments: 10 + 20 + 40 + 80 + 160 + 36 of them in 6 flights. To have the last byte takes the
    handshake, or iperf3's wait for its server's word, 5 round trips, the last one's way, and the 36 segments that
    100 Mbit/s pass in 4.4 ms. iperf3's control connection needs four round trips before; it stays for 3 s.
    """
    by = {}
    for side in ("iperf3", "python"):
        answer = ask(SIDES.replace("SIDE", side))
        assert answer.status == 0, answer.said + answer.complained
        by[side] = answer.run(path__rtt=f"{rtt_ms} ms")
    run, other = by["iperf3"], by["python"]
    told = run.program_json("iperf3/1-client.json")["end"]["sum_sent"]
    assert (told["bytes"], round(told["seconds"])) == (500_000, 3)
    agent = run.agent()
    assert agent["start_ns"] == 0
    # The first record is the ACK of the 37 bytes of the cookie: they left a round trip, that of the handshake, before.
    first, *_, last = run.table("tcp_probe")
    assert (first["snd_una_bytes"], first["snd_nxt_bytes"], last["snd_nxt_bytes"]) == (0, 37, 500_037)
    took_s = (last["time_ns"] - first["time_ns"]) / 1e9 + (first["srtt_us"] - 500 * rtt_ms) / 1e6
    assert took_s == pytest.approx(0.0044 + 6.5e-3 * rtt_ms, abs=0.001)
    # A look at the sockets is late by at most a tenth of a round trip.
    value = run.value("completion_time_s")
    assert value == pytest.approx(took_s, abs=1e-4 * rtt_ms + 1e-6)
    assert value == pytest.approx(other.value("completion_time_s"), abs=1e-4 * rtt_ms + 1e-4)
    assert run.value("goodput_bits_per_second") == pytest.approx(4e6 / value)
    assert (run.value("transfer_time_s"), run.why("transfer_time_s")) == (None, "when the flow could send is not known")
