# SPDX-License-Identifier: Apache-2.0
"""Queues of a sender's interface in a real kernel: when packets leave it, what it drops, and what TCP makes of that."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from howdah.record.verdict import Check
from tests.guest import guest_run
from tests.guest.packets import captured, frames
from tests.guest.shared_run import shared_run, valid_run

pytestmark = pytest.mark.guest
CAPTURE = "collect.pcap=['s1:s1-eth0']"
WINDOW = 40
MS = 1_000_000
LIMIT, BURST = 15, 25  # packets of one priority; datagrams of each kind at a time
LOW_DELAY = 0x10  # of IP_TOS: TC_PRIO_INTERACTIVE, the first of pfifo_fast's three queues
THROW = f"""\
import socket, sys, time
thrower = socket.socket(type=socket.SOCK_DGRAM)
while True:
    time.sleep(0.2)
    for tos in (0, {LOW_DELAY}):
        thrower.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        for _ in range({BURST}):
            thrower.sendto(bytes(1000), (sys.argv[1], int(sys.argv[2])))
"""
CATCH = """\
import socket, sys
catcher = socket.socket(type=socket.SOCK_DGRAM)
catcher.bind((sys.argv[1], int(sys.argv[2])))
while True:
    catcher.recv(65536)
"""
PRIORITIES = f"""\
howdah: 1
name: priorities
path: {{rate: 50 Mbit/s, rtt: 40 ms, buffer: 1 bdp, sender_interface: 20 Mbit/s}}
sender: {{queue: {{kind: pfifo_fast, limit: {LIMIT}}}}}
algorithm: cubic
duration: 2 s
collect: {{qdisc: 2 ms, pcap: ["s1:s1-eth0"]}}
flows:
  - traffic:
      protocol: udp
      client: {{command: [python3, ./throw.py, "{{server_address}}", "{{port}}"], files: [throw.py]}}
      server: {{command: [python3, ./catch.py, "{{server_address}}", "{{port}}"], files: [catch.py]}}
"""


def valid(engine: UmlEngine, *overrides: str) -> tuple[Plan, RunDirectory, dict[str, Check]]:
    return valid_run(engine, guest_run.plan_of("algorithm=cubic", *overrides))


def gaps_ns(plan: Plan, directory: RunDirectory) -> np.ndarray[Any, Any]:
    """Between the full packets of the initial window, at the sender's interface."""
    source = plan.flows[0].source_address
    times = [packet.time_ns for packet in captured(directory, plan, "s1-s1-eth0", source) if packet.ip_bytes == 1500]
    return np.diff(times[:WINDOW])


def value(directory: RunDirectory, metric: str) -> Any:
    return guest_run.measures(directory, 1, None)[metric]


@pytest.mark.parametrize("queue", ["fifo", "pfifo_fast"])
def test_without_pacing_a_window_leaves_at_the_rate_of_the_interface(engine: UmlEngine, queue: str) -> None:
    asked = ("path.rtt=40 ms", f"flows=[{{initial_window: {WINDOW}}}]", CAPTURE, f"sender.queue={queue}")
    plan, directory, _checks = valid(engine, *asked)
    assert gaps_ns(plan, directory).max() < 20_000  # 1514 bytes at 1 Gbit/s are 12.1 us


def test_fq_paces_an_initial_window(engine: UmlEngine) -> None:
    """tcp_update_pacing_rate() with tcp_pacing_ss_ratio of 200 %: 2 MSS cwnd / SRTT. SRTT is that of the handshake, and
    cwnd the ten packets that a connection has when tcp_ack() sees the SYN-ACK, before tcp_init_transfer() reads the
    route's. So each packet waits for SRTT / 20. tcp_update_skb_after_send() paces from the tenth on."""
    asked = ("path.rtt=40 ms", f"flows=[{{initial_window: {WINDOW}}}]", CAPTURE, "sender.queue=fq")
    plan, directory, checks = valid(engine, *asked)
    gaps = gaps_ns(plan, directory)
    assert gaps[:9].max() < 20_000
    paced = gaps[10:29]  # what leaves in the first round trip
    assert paced == pytest.approx(40 * MS / 20, rel=0.01)
    assert value(directory, "host_queue_drops_packets") == 0
    assert "flows waited 0 times" not in checks["accounting host queue s1:s1-eth0"].message


def test_a_full_pfifo_fast_drops_at_the_host_and_tcp_hears_of_it(engine: UmlEngine) -> None:
    """Of ten packets two leave at once and one waits. TCP reduces its window without a loss (tcp_enter_cwr), and sends
    again what the queue refused: nothing is lost on the path, and nothing is retransmitted."""
    plan, directory, checks = valid(
        engine, "path.rtt=40 ms", "sender.queue={kind: pfifo_fast, limit: 1}", "collect.tcp_info=10 ms", "duration=2 s"
    )
    dropped = value(directory, "host_queue_drops_packets")
    assert dropped > 0
    assert f"dropped {dropped} packets" in checks["accounting host queue s1:s1-eth0"].message
    assert value(directory, "retransmitted_packets") == value(directory, "bottleneck_drops_packets") == 0
    assert value(directory, "exit_cause") == "congestion-signal"
    found = json.loads((directory.raw / "accounting.json").read_text())
    sent, received = (
        found["after"]["nodes"][node]["interfaces"][f"{node}-eth0"][counter]
        - found["before"]["nodes"][node]["interfaces"][f"{node}-eth0"][counter]
        for node, counter in (("s1", "tx_packets"), ("r1", "rx_packets"))
    )
    assert sent == received > 500
    assert plan.path.bdp_packets > value(directory, "peak_cwnd_packets")


def test_fq_drops_what_exceeds_the_limit_of_a_flow(engine: UmlEngine) -> None:
    """Datagrams of one connection have no small queues: of 100 at a time, on an interface of a tenth of their rate, two
    leave, twenty wait, and the others are dropped."""
    group = (
        "groups=[{name: udp, role: background, connections: 1, lifetime: 1 s, udp: {rate: 30 Mbit/s}}]",
        "flows=[{}]",
    )
    _plan, directory, checks = valid(
        engine,
        *group,
        "path.rate=50 Mbit/s",
        "path.sender_interface=20 Mbit/s",
        "sender.queue={kind: fq, limit: 1000, flow_limit: 20}",
        "duration=2 s",
    )
    messages = [check.message for name, check in checks.items() if name.startswith("accounting host queue")]
    dropped = value(directory, "host_queue_drops_packets")
    assert dropped > 500
    assert any(f"dropped {dropped} packets, {dropped} of them at the limit of a flow" in each for each in messages)


def test_packets_with_a_dscp_have_a_queue_of_pfifo_fast_of_their_own(engine: UmlEngine, tmp_path: Path) -> None:
    """Two unmarked packets leave at once. Of those that come after them each priority keeps its limit, and what is
    marked leaves before what has waited for longer."""
    for name, text in (("throw.py", THROW), ("catch.py", CATCH), ("priorities.yaml", PRIORITIES)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    plan = guest_run.plan_of(profile=tmp_path / "priorities.yaml")
    directory, verdict = shared_run(engine, plan)
    assert guest_run.failures(verdict) == {}
    sent = [frame[15] for _time, frame in frames(directory, "s1-s1-eth0") if len(frame) > 42 and frame[23] == 17]
    found = [(tos, len(list(run))) for tos, run in groupby(sent)]
    count = len(sent) // (2 + 2 * LIMIT)
    assert count >= 5
    assert found == [(0, 2), *[(LOW_DELAY, LIMIT), (0, LIMIT + 2)] * (count - 1), (LOW_DELAY, LIMIT), (0, LIMIT)]
    assert value(directory, "host_queue_drops_packets") == count * (2 * (BURST - LIMIT) - 2)
    queue = store.read(directory, "qdisc").to_pylist()
    held = max(row["backlog_packets"] for row in queue if row["interface"] == "s1-eth0")
    assert LIMIT < held <= 2 * LIMIT
