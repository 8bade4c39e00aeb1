# SPDX-License-Identifier: Apache-2.0
"""DualPI2 in a real kernel, packet by packet: what captures on both sides of the queue say of waits, marks and drops,
against the rules of RFC 9332 and the controller's probability as the kernel tells it."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.ingest.capture import read_clock
from howdah.ingest.framed import messages, read_frames
from howdah.linux.netlink.message import parse_attributes
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from howdah.record.verdict import Check
from tests.guest import guest_run
from tests.guest.guest_run import NEWEST
from tests.guest.packets import frames
from tests.guest.shared_run import shared_run, valid_run

pytestmark = pytest.mark.guest

Numbers = npt.NDArray[Any]
LOW, CLASSIC = 2, 4  # flows of each kind
SIDES = [f"left:left-eth{number}" for number in range(LOW + CLASSIC + 1)]
FLOWS = [*["{algorithm: dctcp}"] * LOW, *["{algorithm: cubic}"] * CLASSIC]
STEP_NS, CLOCK_NS = 1_000_000, 2048  # eight steps of a user-mode kernel's clock
FRAME = 1514
BEGIN_NS, END_NS = 1_000_000_000, 8_000_000_000
CE = 3
ONE = 2**32


@dataclass(frozen=True)
class Passed:
    """A packet of data: when it came to the queue and when it left, None where it did not; its ECN field then."""

    low_latency: bool
    came_ns: int
    left_ns: int | None
    ecn: int
    size: int


@pytest.fixture(scope="module")
def engine() -> Iterator[UmlEngine]:
    yield guest_run.require_newest()


def _asked(*more: str) -> Plan:
    path = (
        "path.rate=20 Mbit/s",
        "path.rtt=20 ms",
        "path.buffer=200 packets",
        "path.queue={kind: dualpi2, low_latency: any}",
    )
    captures = f"collect.pcap=[{', '.join(repr(side) for side in SIDES)}]"
    return guest_run.plan_of(
        "duration=8 s", f"flows=[{', '.join(FLOWS)}]", "collect.qdisc=2 ms", captures, NEWEST, *path, *more
    )


@cache
def _run(engine: UmlEngine) -> tuple[RunDirectory, Plan, dict[str, Check]]:
    plan, directory, checks = valid_run(engine, _asked())
    return directory, plan, checks


def _packets(directory: RunDirectory, plan: Plan) -> list[Passed]:
    """Full packets of data of all flows that came while they ran. A retransmission has another IP identification."""
    clock = read_clock(directory.raw)
    assert clock is not None
    kinds = {bytes(map(int, flow.source_address.split("."))): flow.kernel_algorithm == "dctcp" for flow in plan.flows}
    seen: list[dict[tuple[bytes, bytes], tuple[int, int, int]]] = []
    for sides in (SIDES[1:], SIDES[:1]):
        found = {}
        for side in sides:
            for stamp_ns, frame in frames(directory, side.replace(":", "-")):
                (size,) = struct.unpack_from("!H", frame, 16)
                if frame[12:14] != b"\x08\x00" or frame[26:30] not in kinds or size < 1000:
                    continue
                at_ns = int(clock.monotonic(np.array([stamp_ns]))[0]) - plan.epoch_us * 1000
                found[frame[26:30], frame[18:20] + frame[34:42]] = (at_ns, frame[15] & 3, size + 14)
        seen.append(found)
    came, left = seen
    assert set(left) <= set(came)
    return [
        Passed(kinds[key[0]], at_ns, left[key][0] if key in left else None, left[key][1] if key in left else 0, size)
        for key, (at_ns, _ecn, size) in came.items()
    ]


def _probability(directory: RunDirectory, plan: Plan) -> tuple[Numbers, Numbers]:
    """The controller's, as the kernel told it at each reading of the queue, and when."""
    found = read_frames(directory.raw / "qdisc.bin")
    times, values = [], []
    for at_ns, offset, length in zip(found.time_ns, found.offset, found.length, strict=True):
        answer = found.data[offset : offset + length].tobytes()
        for _kind, start, end in messages(answer):
            of = parse_attributes(answer[start + 20 : end])
            if of.get(1, b"").rstrip(b"\0") == b"dualpi2":
                times.append(at_ns - plan.epoch_us * 1000)
                values.append(struct.unpack_from("=I", parse_attributes(of[7])[4])[0] / ONE)
    return np.array(times), np.array(values)


def _held_bytes(packets: list[Passed]) -> tuple[Numbers, Numbers]:
    """What both queues hold after each change, and when. A dropped packet is not held: for how long is not known."""
    steps = [(each.came_ns, each.size) for each in packets if each.left_ns is not None]
    steps += [(each.left_ns, -each.size) for each in packets if each.left_ns is not None]
    times, sizes = np.array(sorted(steps)).T
    return times, np.cumsum(sizes)


def _expected(times: Numbers, read: Numbers, values: Numbers, power: int, factor: int) -> tuple[float, float]:
    """How many of the packets that leave then meet their chance, with the smaller and with the larger of the
    probabilities that were read before and after each: it may have changed in between."""
    after = np.clip(np.searchsorted(read, times), 1, len(read) - 1)
    both = np.minimum(np.sort(np.array([values[after - 1], values[after]]), axis=0) ** power * factor, 1)
    return float(both[0].sum()), float(both[1].sum())


def test_a_run_of_two_queues_is_valid_and_its_counters_agree(engine: UmlEngine) -> None:
    directory, _plan, checks = _run(engine)
    (queue,) = [
        item
        for item in json.loads((directory.raw / "accounting.json").read_text())["after"]["nodes"]["left"]["qdiscs"]
        if item["kind"] == "dualpi2"
    ]
    assert queue["low_latency"] > 1000 < queue["classic"]
    assert queue["marked"] >= queue["step_marks"] > 0 < queue["drops"]
    assert checks["accounting two queues left:left-eth0"].ok is True
    assert checks["accounting marks forward"].ok is True
    assert checks["engine queues"].ok is True


def test_every_packet_of_low_latency_that_waits_a_millisecond_is_marked(engine: UmlEngine) -> None:
    directory, plan, _checks = _run(engine)
    low = [each for each in _packets(directory, plan) if each.low_latency and each.left_ns is not None]
    waits = np.array([each.left_ns - each.came_ns for each in low if each.left_ns is not None])
    marked = np.array([each.ecn == CE for each in low])
    assert marked[waits > STEP_NS + CLOCK_NS].all()
    assert (waits > STEP_NS + CLOCK_NS).sum() > 100
    told = json.loads((directory.raw / "accounting.json").read_text())
    counts = [
        item["step_marks"]
        for state in ("before", "after")
        for item in told[state]["nodes"]["left"]["qdiscs"]
        if item["kind"] == "dualpi2"
    ]
    # Small packets, such as those of a handshake, are not among these; they wait as long.
    assert (waits > STEP_NS + CLOCK_NS).sum() <= counts[1] - counts[0] <= (waits > STEP_NS - CLOCK_NS).sum() + 20


def test_marks_of_low_latency_are_coupled_to_drops_of_the_classic_queue(engine: UmlEngine) -> None:
    """Twice the probability, and its square, where both queues hold two frames or more."""
    directory, plan, _checks = _run(engine)
    packets = _packets(directory, plan)
    read, values = _probability(directory, plan)
    assert 0.01 < values[(read > BEGIN_NS) & (read < END_NS)].mean() < 0.4
    times, held = _held_bytes(packets)

    def subject(each: Passed) -> bool:
        at_ns = each.left_ns or each.came_ns
        before = max(int(np.searchsorted(times, at_ns, "right")) - 1, 0)
        return BEGIN_NS < at_ns < END_NS and bool(held[before] >= 2 * FRAME)

    low = [each for each in packets if each.low_latency and subject(each) and each.left_ns is not None]
    early = [each for each in low if each.left_ns - each.came_ns < STEP_NS - CLOCK_NS]  # type: ignore[operator]
    marked = sum(each.ecn == CE for each in early)
    least, most = _expected(np.array([each.left_ns for each in early]), read, values, 1, 2)
    assert least > 50
    assert least - 4 * least**0.5 <= marked <= most + 4 * most**0.5

    classic = [each for each in packets if not each.low_latency and subject(each)]
    dropped = sum(each.left_ns is None for each in classic)
    least, most = _expected(np.array([each.left_ns or each.came_ns for each in classic]), read, values, 2, 1)
    assert least > 30
    assert least - 4 * least**0.5 <= dropped <= most + 4 * most**0.5
    assert all(each.ecn == 0 for each in classic if each.left_ns is not None), "cubic asks for no ECN here"


def test_the_table_has_what_the_kernel_told(engine: UmlEngine) -> None:
    directory, plan, _checks = _run(engine)
    table = store.read(directory, "two_queues")
    times, values = _probability(directory, plan)
    assert table["time_ns"].to_pylist() == times.tolist()
    assert table["probability"].to_pylist() == values.tolist()
    assert set(table["interface"].to_pylist()) == {"left-eth0"}
    inside = (times > BEGIN_NS) & (times < END_NS)
    low, classic = (np.array(table[f"{name}_delay_us"])[inside] for name in ("low_latency", "classic"))
    assert np.median(low) < 2_000 < 8_000 < np.median(classic) < 25_000
    assert table["classic_packets"][-1].as_py() > 1000 < table["low_latency_packets"][-1].as_py()


def test_the_queue_of_low_latency_waits_less(engine: UmlEngine) -> None:
    directory, plan, _checks = _run(engine)
    waits = {
        low: np.array(
            [
                each.left_ns - each.came_ns
                for each in _packets(directory, plan)
                if each.low_latency is low and each.left_ns is not None and BEGIN_NS < each.came_ns < END_NS
            ]
        )
        for low in (True, False)
    }
    assert np.median(waits[True]) < 2_000_000
    assert 8_000_000 < np.median(waits[False]) < 25_000_000, "the controller's target is 15 ms"


@pytest.mark.parametrize(
    "queue", ["step_packets: 5, coupling: 3, classic_share: 25 %, overload: fill", "decide: enqueue"]
)
def test_each_parameter_arrives_in_the_kernel(engine: UmlEngine, queue: str) -> None:
    """The check of queues compares what the kernel tells with the plan, and would fail."""
    plan = guest_run.plan_of("algorithm=dctcp", f"path.queue={{kind: dualpi2, low_latency: any, {queue}}}", NEWEST)
    directory, verdict = shared_run(engine, plan)
    assert guest_run.failures(verdict) == {}
    (shown,) = [
        item
        for item in json.loads((directory.raw / "agent.json").read_text())["qdiscs"]["left"]["qdiscs"]
        if item["kind"] == "dualpi2"
    ]
    assert shown["options"]["target"] == 15_000
    assert (shown["options"].get("step of packets"), shown["options"]["decision"]) in (
        (5, "dequeue"),
        (None, "enqueue"),
    )
