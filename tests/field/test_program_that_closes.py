# SPDX-License-Identifier: Apache-2.0
"""A program that closes right after its last write(): tcp_probe sees no ACK of the rest, and no measure is made up."""

from __future__ import annotations

import pytest

from tests.field.answer import ask

pytestmark = pytest.mark.guest

SEND = """\
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as connection:
    connection.sendall(bytes(int(sys.argv[3])))
    connection.shutdown(socket.SHUT_WR)
    connection.recv(1)
"""
RECEIVE = """\
import socket, sys
with socket.create_server((sys.argv[1], int(sys.argv[2]))) as listener:
    connection, _ = listener.accept()
    while connection.recv(65536):
        pass
    connection.close()
"""
PROFILE = """\
howdah: 1
name: closes
path: {rate: 100 Mbit/s, rtt: 100 ms, buffer: 1 bdp}
algorithm: cubic
duration: 4 s
flows:
  - size: 4 MB
    traffic:
      client: {command: [python3, "{directory}/send.py", "{server_address}", "{port}", "{bytes}"], files: [send.py]}
      server: {command: [python3, "{directory}/receive.py", "{server_address}", "{port}"], files: [receive.py]}
"""


def test_what_the_trace_did_not_see_is_not_known() -> None:
    """HyStart's counter, and the windows of tcp_info after the FIN, show that there was more to see."""
    answer = ask(PROFILE, {"send.py": SEND, "receive.py": RECEIVE})
    (run,) = answer.runs
    assert (answer.status, run.failed) == (0, {}), answer.said + answer.complained
    assert run.counter("TcpExtTCPHystartTrainDetect") == 1
    traced = max(row["cwnd_packets"] for row in run.table("tcp_probe"))
    assert max(row["cwnd_packets"] for row in run.info()) > traced
    for metric in ("exit_time_s", "exit_cause", "peak_cwnd_packets", "final_cwnd_packets", "time_to_90_percent_s"):
        assert run.value(metric) is None
        assert "tcp_probe sees no ACK after" in run.why(metric), metric
    assert run.value("utilisation", None) is None
    ended_s = run.agent()["end_ns"] / 1e9
    assert run.value("goodput_bits_per_second") == pytest.approx(32e6 / ended_s)
