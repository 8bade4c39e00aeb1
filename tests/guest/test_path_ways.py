# SPDX-License-Identifier: Apache-2.0
"""What each way does to packets, in a real kernel, against computations that know nothing of ours: from captures and
from the hosts' own counters."""

from __future__ import annotations

import itertools
import json
import math
import re
import struct

import numpy as np
import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.measure.sampled import qdisc_samples
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from howdah.record.verdict import Check
from tests.guest import guest_run
from tests.guest.packets import captured, frames
from tests.guest.shared_run import valid_run

pytestmark = pytest.mark.guest


def valid(engine: UmlEngine, *overrides: str) -> tuple[Plan, RunDirectory, dict[str, Check]]:
    return valid_run(engine, guest_run.plan_of(*overrides))


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
    assert checks["during dequeue rate"].measured == pytest.approx(20e6, rel=0.005)
    assert checks["accounting order"].ok is True


def test_a_delay_line_with_too_little_room_drops_and_says_so(engine: UmlEngine) -> None:
    """Ten milliseconds at 20 Mbit/s are 16 full frames; with room for ten, ten leave in that time."""
    plan, directory, checks = valid(
        engine, "algorithm=cubic", "path.rtt=20 ms", "path.delay_limit=10", "path.buffer=4 bdp", "collect.qdisc=5 ms"
    )
    dropped = guest_run.measures(directory, None)["delay_line_drops_packets"]
    assert dropped > 10
    assert f"{dropped} at the queue of right:right-eth1" in checks["accounting packets forward"].message
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
    assert checks["before rate"].ok is True


def options(frame: bytes) -> dict[int, bytes]:
    """Of a SYN's TCP header, by their kinds (RFC 9293, section 3.1); NOPs left out."""
    header = frame[34 : 34 + (frame[46] >> 4) * 4]
    found, at = {}, 20
    while at < len(header) and header[at]:
        if header[at] == 1:
            at += 1
            continue
        found[header[at]] = header[at + 2 : at + header[at + 1]]
        at += header[at + 1]
    return found


def ones(content: bytes) -> int:
    """The Internet checksum's sum (RFC 1071): 0xffff of a header that has the right one in it."""
    total: int = sum(struct.unpack(f"!{len(content) // 2}H", content))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def test_a_middlebox_does_to_packets_what_it_is_asked_to(engine: UmlEngine) -> None:
    """Before and behind it, frame by frame: those of the list are gone, some came twice in a row, no mark of ECN came,
    and the SYN has fewer options, as many bytes and right checksums."""
    box = "{lose: [20, 30-32], duplicate: 2 %, clear_ecn: true, strip: [sack, timestamps]}"
    plan, directory, _checks = valid(
        engine,
        *("algorithm=cubic", "path.queue=codel", "path.ecn=true", f"path.middlebox={box}"),
        "collect.pcap=['right:right-eth0', 'r1:r1-eth0']",
    )
    source = bytes(map(int, plan.flows[0].source_address.split(".")))
    before, behind = (
        [frame for _, frame in frames(directory, place) if frame[26:30] == source]
        for place in ("right-right-eth0", "r1-r1-eth0")
    )
    names = [frame[18:20] + frame[38:42] for frame in before]  # IP's identification and TCP's sequence number
    came = [frame[18:20] + frame[38:42] for frame in behind]
    count = len(names) - 100  # the last ones may come after the end
    gone = [number for number, name in enumerate(names[:count], start=1) if name not in set(came)]
    assert gone == [20, 30, 31, 32]
    twice = sum(one == other for one, other in itertools.pairwise(came))
    expected = 0.02 * len(names)
    assert abs(twice - expected) < 4 * math.sqrt(expected)
    assert len(set(came)) == len(came) - twice, "a copy comes directly before its packet"
    assert {frame[15] & 3 for frame in behind[:count]} == {0}
    assert {frame[15] & 3 for frame in before} > {0}, "there were marks to clear"
    syn, stripped = before[0], behind[0]
    assert set(options(syn)) - set(options(stripped)) == {4, 8}
    assert options(stripped) == {kind: value for kind, value in options(syn).items() if kind not in (4, 8)}
    assert len(syn) == len(stripped)
    for frame in (syn, stripped):
        tcp = frame[34 : 14 + int.from_bytes(frame[16:18], "big")]
        assert ones(frame[14:34]) == 0xFFFF
        # A sender leaves TCP's checksum to its interface, and writes the sum of the pseudo-header.
        assert int.from_bytes(tcp[16:18], "big") == ones(frame[26:34] + struct.pack("!HH", 6, len(tcp)))


def test_without_window_scale_and_sack_a_run_shows_what_they_cost(engine: UmlEngine) -> None:
    """No window of the receiver's is larger than TCP's 16 bits say, a third of what the path holds, and that is no
    fault of the run."""
    asked = ("path.rate=20 Mbit/s", "path.rtt=80 ms", "path.loss=0.2 %", "duration=3 s")
    box = "path.middlebox={strip: [window-scale, sack]}"
    plan, directory, checks = valid(engine, "algorithm=cubic", *asked, box)
    windows = store.read(directory, "tcp_probe")["snd_wnd_bytes"].to_numpy()
    assert 60_000 < windows.max() <= 65_535 < plan.path.bdp_bytes
    assert "without window scale" in checks["during receive window flow 1"].message


def test_a_flow_into_a_black_hole_moves_nothing_and_that_is_no_fault_of_the_run(engine: UmlEngine) -> None:
    asked = ("duration=5 s", "path.middlebox={mtu: 1400, icmp: false}")
    _plan, _directory, checks = valid(engine, "algorithm=cubic", *asked)
    assert checks["engine flow 1"].ok is None
    large = re.match(
        r"(\d+) packets were too large, and hosts heard of 0 by ICMP", checks["accounting middlebox ICMP"].message
    )
    assert large is not None and int(large[1]) >= 3, "what it sent again after its timeouts"
    sysctl = "host.sysctls={net.ipv4.tcp_mtu_probing: '1'}"
    _plan, _directory, checks = valid(engine, "algorithm=cubic", *asked, sysctl)
    assert checks["engine flow 1"].ok is True, "the kernel probes for a size that passes"
