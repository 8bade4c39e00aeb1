# SPDX-License-Identifier: Apache-2.0
"""What each way does to packets, in a real kernel, against computations that know nothing of ours: from captures and
from the hosts' own counters."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.measure.sampled import qdisc_samples
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from tests.guest import guest_run
from tests.guest.packets import captured
from tests.guest.shared_run import shared_run

pytestmark = pytest.mark.guest


@pytest.fixture(scope="module")
def engine() -> Iterator[UmlEngine]:
    yield guest_run.require_engine()


def valid(engine: UmlEngine, *overrides: str) -> tuple[Plan, RunDirectory, dict[str, dict[str, Any]]]:
    plan = guest_run.plan_of(*overrides)
    directory, verdict = shared_run(engine, plan)
    assert guest_run.failures(verdict) == {}
    return plan, directory, {f"{check['stage']} {check['name']}": check for check in verdict["checks"]}


def counted(directory: RunDirectory, node: str, interface: str, counter: str) -> int:
    """Growth of an interface's counter over the flows."""
    found = json.loads((directory.raw / "accounting.json").read_text())
    before, after = (found[when]["nodes"][node]["interfaces"][interface][counter] for when in ("before", "after"))
    return int(after) - int(before)


def test_the_way_back_loses_what_it_is_asked_to(engine: UmlEngine) -> None:
    """Of some thousands of ACKs, by what the receiver sent and the sender got."""
    _plan, directory, _checks = valid(engine, "algorithm=bbr", "path.reverse_loss=4 %")
    sent = counted(directory, "r1", "r1-eth0", "tx_packets")
    lost = sent - counted(directory, "s1", "s1-eth0", "rx_packets")
    assert sent > 2000
    assert abs(lost - 0.04 * sent) < 4 * math.sqrt(0.04 * 0.96 * sent)


def test_every_packet_draws_a_delay_of_its_own(engine: UmlEngine) -> None:
    """The captures on both sides of the delay line: mean and deviation of an exponential distribution, no correlation
    of neighbours, and packets out of order."""
    variation = "path.delay_variation={distribution: exponential, standard_deviation: 3 ms, order: broken, source: x}"
    plan, directory, _checks = valid(
        engine, "algorithm=bbr", variation, "collect.pcap=['right:right-eth0', 'right:right-eth1']"
    )
    source = plan.flows[0].source_address
    came, left = (list(captured(directory, plan, f"right-right-{side}", source)) for side in ("eth0", "eth1"))
    leaves = {packet.identity: packet.time_ns for packet in left}
    matched = [(packet.time_ns, leaves[packet.identity]) for packet in came if packet.identity in leaves]
    times = np.array(matched[: len(matched) * 9 // 10]) / 1e6  # those at the end have not all left
    assert len(times) > 3000
    drawn = times[:, 1] - times[:, 0] - 20
    error = 4 * 3 / math.sqrt(len(drawn))
    assert drawn.min() >= -0.001
    assert drawn.mean() == pytest.approx(3, abs=error + 0.02)  # what is above 99.95 % is not in the table
    assert drawn.std() == pytest.approx(3, rel=0.1)
    for share in (0.25, 0.5, 0.75, 0.9):
        assert (drawn < -3 * math.log(1 - share)).mean() == pytest.approx(share, abs=0.03)
    neighbours = np.corrcoef(drawn[:-1], drawn[1:])[0, 1]
    assert abs(neighbours) < 4 / math.sqrt(len(drawn))
    assert (np.diff(times[:, 1]) < 0).mean() > 0.2


def test_a_varied_delay_that_keeps_order_changes_no_rate(engine: UmlEngine) -> None:
    """Packets leave the line as they came, and it lets through all that the bottleneck sends."""
    variation = (
        "path.delay_variation={distribution: pareto, standard_deviation: 3 ms, correlation_time: 0, interval: 5 ms, "
        "source: x}"
    )
    plan, directory, checks = valid(
        engine, "algorithm=bbr", variation, "collect.pcap=['right:right-eth0', 'right:right-eth1']"
    )
    source = plan.flows[0].source_address
    came, left = (
        [packet.identity for packet in captured(directory, plan, f"right-right-{side}", source)]
        for side in ("eth0", "eth1")
    )
    assert len(left) > 3000
    assert left == came[: len(left)]
    assert checks["during dequeue rate"]["measured"] == pytest.approx(20e6, rel=0.005)
    assert checks["accounting order"]["ok"] is True


def test_a_delay_line_with_too_little_room_drops_and_says_so(engine: UmlEngine) -> None:
    """Ten milliseconds at 20 Mbit/s are 16 full frames; with room for ten, ten leave in that time."""
    plan, directory, checks = valid(
        engine, "algorithm=cubic", "path.rtt=20 ms", "path.delay_limit=10", "path.buffer=4 bdp", "collect.qdisc=5 ms"
    )
    rows = json.loads(directory.metrics.read_text())["rows"]
    (dropped,) = [row["value"] for row in rows if row["metric"] == "delay_line_drops_packets"]
    assert dropped > 10
    assert f"{dropped} at the queue of right:right-eth1" in checks["accounting packets forward"]["message"]
    line = qdisc_samples(store.read(directory, "qdisc"), "right", "right-eth1", "1:")
    inside = (line.time_ns >= 0) & (line.time_ns < plan.duration_us * 1000)
    assert line["backlog_packets"][inside].max() == 10
    sent = line["sent_packets"][inside]
    spans = line.time_ns[inside]
    most = np.diff(sent)
    assert (most <= 10 * np.ceil(np.diff(spans) / 1e7) + 10).all()


def test_a_tunnel_takes_its_bytes_of_the_rate(engine: UmlEngine) -> None:
    """What the queue of the bottleneck counts is what its interface sends, and 60 bytes for each packet; the receiver
    gets no more than 1388 of 1514 bytes of the rate, and nearly as much."""
    plan, directory, checks = valid(engine, "algorithm=cubic", "path.middlebox={overhead: wireguard}", "duration=6 s")
    packets = counted(directory, "left", "left-eth0", "tx_packets")
    found = json.loads((directory.raw / "accounting.json").read_text())
    before, after = (
        next(item for item in found[when]["nodes"]["left"]["qdiscs"] if item["interface"] == "left-eth0")["bytes"]
        for when in ("before", "after")
    )
    assert packets > 5000
    assert after - before - counted(directory, "left", "left-eth0", "tx_bytes") == 60 * packets
    got = [
        (row["time_ns"], row["bytes_received_bytes"])
        for row in store.read(directory, "tcp_info").to_pylist()
        if row["end"] == "receiver" and row["bytes_received_bytes"] is not None and row["time_ns"] > 3e9
    ]
    rate = (got[-1][1] - got[0][1]) * 8e9 / (got[-1][0] - got[0][0])
    assert 0.97 < rate / (20e6 * 1388 / 1514) < 1.002
    assert plan.path.mss_bytes == 1388
    assert checks["before rate"]["ok"] is True
