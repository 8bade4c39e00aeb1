# SPDX-License-Identifier: Apache-2.0
"""Paths of every kind in a real kernel: the queue is the one asked for, changes happen when they should, packets
overtake, hops follow one another. All runs are valid; paths that do not do what the plan says are in tests/liars."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.linux.netlink.discipline import queues
from howdah.measure.sampled import Samples, qdisc_samples
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from howdah.record.metrics import CrossCheck, read_metrics
from howdah.record.verdict import Check
from tests.guest import guest_run
from tests.guest.shared_run import valid_run

pytestmark = pytest.mark.guest

STEPS = "path.schedule=[{at: 1 s, rate: 5 Mbit/s}, {at: 2 s, rate: 40 Mbit/s}, {at: 3 s, rtt: 30 ms}]"
LOSSES = "path.schedule=[{at: 1 s, loss: 5 %}, {at: 2 s, loss: 0 %}, {at: 3 s, outage: 100 ms}]"
# PIE lets bursts of 150 ms pass, in which a slow start that does not end by itself fills any buffer; and above a
# probability of 10 % it drops what it could mark.
AGGRESSIVE = {
    False: ("path.buffer=4 bdp", "algorithm=cubic-no-hystart"),
    True: ("path.buffer=4 bdp", "algorithm=cubic"),
}


def valid(
    engine: UmlEngine, *overrides: str, carried_out: Plan | None = None
) -> tuple[Plan, RunDirectory, dict[str, Check]]:
    """A run that must be valid, and its checks by name."""
    return valid_run(engine, guest_run.plan_of("algorithm=cubic", *overrides), carried_out)


def kernel(queue: str) -> list[str]:
    """The one that a kind of queue needs; skips where it is not built."""
    if not queues()[queue].since:
        return []
    guest_run.require_newest()
    return [guest_run.NEWEST]


def bottleneck(plan: Plan, directory: RunDirectory) -> Samples:
    calibration = plan.calibration
    place = (calibration.bottleneck_node, calibration.bottleneck_interface, calibration.bottleneck_handle)
    return qdisc_samples(store.read(directory, "qdisc"), *place)


def metrics(directory: RunDirectory) -> dict[tuple[int | None, str], Any]:
    return {(row.flow, row.metric): row.value for row in read_metrics(directory).rows}


def disagreements(directory: RunDirectory) -> list[CrossCheck]:
    return [item for item in read_metrics(directory).cross_checks if not item.agree]


@pytest.mark.parametrize("queue", [name for name, kind in queues().items() if not kind.fills])
def test_a_queue_drops_before_it_is_full_and_its_drops_are_accounted_for(engine: UmlEngine, queue: str) -> None:
    plan, directory, checks = valid(engine, f"path.queue={queue}", *AGGRESSIVE[queue.endswith("pie")], *kernel(queue))
    samples = bottleneck(plan, directory)
    dropped = int(samples["drops_packets"][-1])
    assert dropped > 0
    assert samples["backlog_bytes"].max() < 0.9 * plan.path.buffer_bytes
    assert f"{dropped} at the queue of left:left-eth0" in checks["accounting packets forward"].message
    for stage in ("before", "after"):
        assert checks[f"{stage} buffer"].ok is None
        assert f"{queue} drops before its buffer is full" in checks[f"{stage} buffer"].message
        assert checks[f"{stage} rate"].ok is True


@pytest.mark.parametrize("split", ["false", "true"])
def test_choke_drops_in_pairs_what_is_of_one_flow(engine: UmlEngine, split: str) -> None:
    """One flow fills the queue alone, so that whatever is drawn while the mean is above ``least`` matches."""
    plan, directory, checks = valid(engine, "path.queue=choke", f"split={split}", *AGGRESSIVE[False])
    after = json.loads((directory.raw / "accounting.json").read_text())["after"]
    (queue,) = [item for item in after["nodes"]["left"]["qdiscs"] if item["kind"] == "choke"]
    assert queue["matched"] > 0
    assert queue["drops"] == queue["early"] + queue["pdrop"] + queue["other"] + 2 * queue["matched"]
    assert f"{queue['matched']} with one of their flow" in checks["accounting drop causes left:left-eth0"].message
    assert plan.path.queue == "choke"


def test_choke_marks_and_drops_what_is_of_one_flow_all_the_same(engine: UmlEngine) -> None:
    queue = "path.queue={kind: choke, least: 5 packets, most: 6 packets}"
    overrides = (queue, "path.ecn=true", "flows=[{}, {}, {}, {}]")
    _plan, directory, _checks = valid(engine, *overrides, *AGGRESSIVE[False])
    after = json.loads((directory.raw / "accounting.json").read_text())["after"]
    (found,) = [item for item in after["nodes"]["left"]["qdiscs"] if item["kind"] == "choke"]
    assert found["drops"] == 2 * found["matched"] > 0
    assert found["marked"] == metrics(directory)[None, "bottleneck_marks_packets"] > 0


def test_a_fifo_fills_before_it_drops(engine: UmlEngine) -> None:
    """Without it, the test above would pass for any queue that is never filled."""
    plan, directory, _checks = valid(engine, *AGGRESSIVE[False])
    assert bottleneck(plan, directory)["backlog_bytes"].max() > 0.9 * plan.path.buffer_bytes


# CHOKe drops what it compares, also where it could mark: see above.
@pytest.mark.parametrize(
    "queue", [name for name, kind in queues().items() if kind.marks_at is not None and name != "choke"]
)
def test_marks_are_counted_and_take_the_place_of_drops(engine: UmlEngine, queue: str) -> None:
    overrides = (f"path.queue={queue}", "path.ecn=true", *kernel(queue))
    # DualPI2 drops where twice its probability exceeds 100 %, as an unchecked slow start makes it.
    _plan, directory, _checks = valid(engine, *overrides, *AGGRESSIVE[queue.endswith("pie") or queue == "dualpi2"])
    found = metrics(directory)
    assert found[None, "bottleneck_marks_packets"] > 0
    assert found[None, "bottleneck_drops_packets"] == 0
    accounting = json.loads((directory.raw / "accounting.json").read_text())["after"]["nodes"]["left"]["qdiscs"]
    (marked,) = [item["marked"] for item in accounting if item["kind"] == queue]
    assert marked == found[None, "bottleneck_marks_packets"]


def test_the_rate_and_the_delay_follow_the_schedule(engine: UmlEngine) -> None:
    plan, directory, checks = valid(engine, STEPS)
    assert checks["during rate schedule"].ok is True
    samples = bottleneck(plan, directory)
    for begin_s, end_s, megabits in ((1.1, 1.9, 5), (2.3, 2.9, 40)):
        first, last = np.searchsorted(samples.time_ns, [int(begin_s * 1e9), int(end_s * 1e9)])
        sent = int(samples["sent_bytes"][last] - samples["sent_bytes"][first])
        rate = sent * 8e3 / (samples.time_ns[last] - samples.time_ns[first])
        # A window that was halved need not fill 40 Mbit/s within a second.
        assert rate == pytest.approx(megabits, rel=0.005) if megabits == 5 else 20 < rate < 40.1
    # The queue survives each change, and no packet is lost between readings that no counter admits to.
    assert samples["backlog_bytes"].max() <= plan.path.buffer_bytes
    least = metrics(directory)[1, "min_rtt_us"]
    assert 30_000 <= least < 31_000
    assert disagreements(directory) == []


def test_an_exit_is_compared_with_the_bdp_of_its_moment(engine: UmlEngine) -> None:
    """The link slows down to a quarter long before a loss ends the slow start."""
    plan, directory, _ = valid(
        engine, "algorithm=reno", "path.rate=20 Mbit/s", "path.schedule=[{at: 10 ms, rate: 5 Mbit/s}]"
    )
    path, (flow,) = plan.path, plan.flows
    found = metrics(directory)
    assert found[1, "exit_time_s"] > 0.01 + flow.rtt_us / 1e6, "a whole round trip has the new rate"
    bdp_packets = 5e6 * flow.rtt_us / 8e6 / path.frame_bytes
    assert found[1, "exit_cwnd_bdp"] == pytest.approx(found[1, "exit_cwnd_packets"] / bdp_packets)
    full_packets = bdp_packets + path.buffer_bytes / path.frame_bytes
    assert 0 < found[1, "overshoot_packets"] <= 2 * full_packets, "a slow start doubles once more before it knows"
    assert found[None, "utilisation"] <= 1


def test_packets_keep_their_order_when_the_delay_falls(engine: UmlEngine) -> None:
    steps = "path.schedule=[{at: 1 s, rtt: 100 ms}, {at: 2 s, rtt: 20 ms}, {at: 3 s, rtt: 80 ms}]"
    _plan, directory, _checks = valid(engine, steps, "collect.pcap=['r1:r1-eth0']", "path.buffer=10 bdp")
    assert overtaken(directory) == 0


def test_losses_and_outages_happen_when_they_should(engine: UmlEngine) -> None:
    plan, directory, checks = valid(engine, LOSSES)
    table = store.read(directory, "qdisc")
    line = qdisc_samples(table, "right", "right-eth1", "1:")

    def dropped(begin_s: float, end_s: float) -> int:
        first, last = np.searchsorted(line.time_ns, [int(begin_s * 1e9), int(end_s * 1e9)])
        return int(line["drops_packets"][last] - line["drops_packets"][first])

    assert dropped(0, 0.98) == dropped(2.02, 2.98) == dropped(3.14, 3.9) == 0
    assert dropped(1.0, 2.0) > 5
    assert dropped(2.98, 3.12) > 0
    assert checks["during loss schedule right:right-eth1"].ok is True
    assert checks["during loss schedule left:left-eth1"].ok is True
    assert plan.timeline[-1].at_us == plan.duration_us


def sequences(directory: RunDirectory) -> list[tuple[int, int]]:
    """TCP sequence number and IP identification of each data packet that r1 received, in order of arrival."""
    found = []
    data = next(directory.raw.glob("pcap/*.pcap")).read_bytes()
    offset = 24
    while offset < len(data):
        _seconds, _fraction, length, _whole = struct.unpack_from("=IIII", data, offset)
        frame = data[offset + 16 : offset + 16 + length]
        offset += 16 + length
        if frame[12:14] == b"\x08\x00" and frame[23] == 6 and frame[30:34] == bytes([10, 2, 1, 1]):
            (size,) = struct.unpack_from("!H", frame, 16)
            if size > 1000:
                found.append((struct.unpack_from("!I", frame, 38)[0], struct.unpack_from("!H", frame, 18)[0]))
    assert len(found) > 1000
    return found


def overtaken(directory: RunDirectory) -> int:
    """Packets that arrived before one sent earlier, by the identification that the sender counts up."""
    numbers = np.unwrap(np.array([number for _, number in sequences(directory)], dtype=np.float64), period=65536)
    least_after = np.minimum.accumulate(numbers[::-1])[::-1]
    return int((numbers[:-1] > least_after[1:]).sum())


@pytest.mark.parametrize(("share", "gap", "ratio"), [(2, 1, 1 / 50), (20, 10, 1 / 14), (100, 25, 1 / 25)])
def test_packets_overtake_as_often_as_asked(engine: UmlEngine, share: int, gap: int, ratio: float) -> None:
    """netem holds gap - 1 packets after each one it lets go at once, then waits for the probability to strike."""
    reorder = f"path.reorder={{share: {share} %, gap: {gap}}}"
    overrides = (reorder, "collect.pcap=['r1:r1-eth0']", "path.rtt=10 ms", "path.buffer=8 bdp")
    plan, directory, checks = valid(engine, *overrides)
    numbers = [number for _, number in sequences(directory)]
    early = overtaken(directory)
    expected = plan.path.reorder_ratio * len(numbers)
    assert plan.path.reorder_ratio == pytest.approx(ratio)
    assert abs(early - expected) <= 4 * np.sqrt(expected) + 1
    assert "some 5000 early" in checks["before forward delay s1-r1"].message
    plain, other, _checks = valid(engine, *overrides[1:])
    assert plain.path.early_us == 0
    assert overtaken(other) == 0


def test_two_bottlenecks_and_cross_traffic_over_one_of_them(engine: UmlEngine) -> None:
    hops = "path.hops=[{rate: 30 Mbit/s, place: before}, {rate: 22 Mbit/s, buffer: 50 packets}]"
    cross = "background=[{sender: x3, receiver: y3, start: 1 s}]"
    plan, directory, _checks = valid(engine, hops, cross)
    table = store.read(directory, "qdisc")
    queues = {hop.place: qdisc_samples(table, hop.node, hop.interface, "10:") for hop in plan.path.hops}
    alone = int(np.searchsorted(queues["after"].time_ns, int(0.98e9)))
    assert queues["after"]["backlog_bytes"][:alone].max() <= 2 * plan.path.frame_bytes, "22 Mbit/s holds 20 Mbit/s"
    assert queues["after"]["backlog_bytes"][alone:].max() > 20 * plan.path.frame_bytes, "with company it does not"
    assert queues["before"]["backlog_bytes"].max() > 2 * plan.path.frame_bytes, "slow start doubles 20 Mbit/s"
    found = metrics(directory)
    assert found[2, "background_goodput_bits_per_second"] > 1e6
    assert (2, "exit_time_s") not in found
    assert found[None, "utilisation_background"] == 0, "it does not cross the bottleneck"


def test_background_both_ways(engine: UmlEngine) -> None:
    background = "background=[{start: 500 ms}, {direction: reverse}]"
    plan, directory, _checks = valid(engine, background, "path.reverse_rate=10 Mbit/s")
    found = metrics(directory)
    assert [flow.ends for flow in plan.flows] == [("s1", "r1"), ("s2", "r2"), ("s3", "r3")]
    assert plan.flows[2].sender == "r3"
    assert found[2, "background_goodput_bits_per_second"] > 5e6
    together = found[None, "utilisation_measured"] + found[None, "utilisation_background"]
    assert together == pytest.approx(found[None, "utilisation"])
    assert found[None, "utilisation_background"] > 0.1
    assert (None, "jain_index") not in found, "one flow is measured"
    assert disagreements(directory) == []


@pytest.mark.parametrize("interface", ["10 Mbit/s", "unlimited"])
def test_a_sender_may_be_slower_or_faster_than_the_path(engine: UmlEngine, interface: str) -> None:
    plan, directory, checks = valid(engine, f"path.sender_interface={interface}")
    samples = bottleneck(plan, directory)
    if interface == "unlimited":
        assert samples["backlog_bytes"].max() > 0.9 * plan.path.buffer_bytes
        assert checks["before buffer"].ok is True
    else:
        assert samples["backlog_bytes"].max() <= 2 * plan.path.frame_bytes
        assert "cannot outrun" in checks["before buffer"].message


def test_a_changing_path_is_the_same_twice(engine: UmlEngine, tmp_path: Path) -> None:
    overrides = (
        "algorithm=cubic",
        "path.rate_variation={least: 5 Mbit/s, correlation_time: 500 ms, source: test}",
        "path.handover={every: 1 s, delay: 20 ms, outage: 50 ms, source: test}",
    )
    plan = guest_run.plan_of(*overrides)
    first, second = (guest_run.boot(engine, plan, tmp_path / name) for name in ("first", "second"))
    for name in ("accounting.json", "qdisc.bin"):
        assert (first.raw / name).read_bytes() == (second.raw / name).read_bytes()


def test_ten_gigabits_over_180_ms(engine: UmlEngine) -> None:
    """148 612 full frames fit on the way; slow start needs fourteen rounds for them, 2.6 s."""
    overrides = ("path.rate=10 Gbit/s", "path.rtt=180 ms", "path.buffer=0.25 bdp", "path.sender_interface=40 Gbit/s")
    plan, directory, checks = valid(engine, *overrides, "duration=3.2 s", "collect.qdisc=100 ms")
    assert plan.path.bdp_packets == 148_612
    found = metrics(directory)
    assert found[1, "peak_cwnd_packets"] > 100_000
    assert checks["accounting softnet drops"].ok is True
    assert checks["before buffer"].ok is True


def test_a_policer_drops_what_exceeds_its_bucket_and_nothing_waits(engine: UmlEngine) -> None:
    """100 kB at once and 5 Mbit/s from then on, by the receiver's own count of what came."""
    plan, directory, checks = valid(engine, "path.policer={rate: 5 Mbit/s, burst: 100 kB}", "duration=4 s")
    dropped = metrics(directory)[None, "policer_drops_packets"]
    assert dropped > 0
    assert f"{dropped} at the policer of left:left-eth0" in checks["accounting packets forward"].message
    assert f"dropped {dropped} packets" in checks["during policer"].message
    assert metrics(directory)[None, "bottleneck_drops_packets"] == 0
    for stage in ("before", "after"):
        assert checks[f"{stage} policer burst"].ok is True
        assert checks[f"{stage} policer rate"].ok is True
    came = bottleneck(plan, directory)["sent_bytes"]
    assert int(came[-1] - came[0]) <= 100_000 + 5_000_000 / 8 * 4.5


def test_a_queue_counts_packets_and_the_way_back_has_a_queue_of_its_own(engine: UmlEngine) -> None:
    """CAKE drops ACKs on a way back that carries a third of them; forward no byte limit stands in the way."""
    back = ("path.reverse_rate=200 kbit/s", "path.reverse_buffer=30 kB")
    queue = ("path.queue={kind: fifo, counts: packets}", "path.buffer=50 packets")
    filtered = "path.reverse_queue={kind: cake, ack_filter: aggressive}"
    plan, directory, checks = valid(engine, *queue, *back, filtered)
    assert plan.path.buffer_packets == 50
    assert bottleneck(plan, directory)["backlog_packets"].max() == 50
    assert checks["before buffer"].measured == pytest.approx(50 * plan.path.frame_bytes, abs=plan.path.frame_bytes)
    accounts = json.loads((directory.raw / "accounting.json").read_text())["after"]["nodes"]["right"]["qdiscs"]
    (cake,) = [item for item in accounts if item["kind"] == "cake"]
    assert cake["drops"] > 0
    assert f"{cake['drops']} at the queue of right:right-eth0" in checks["accounting packets reverse"].message


def test_a_shallow_buffer_is_measured_where_packets_are_not_split(engine: UmlEngine) -> None:
    """A packet of 60 kB that has begun to leave would make the one behind it wait longer than ten frames do."""
    _plan, _directory, checks = valid(engine, "path.gso_max_segs=kernel", "path.buffer=10 packets")
    for stage in ("before", "after"):
        assert checks[f"{stage} buffer"].ok is True
