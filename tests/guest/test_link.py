# SPDX-License-Identifier: Apache-2.0
"""A link that follows a trace, packet by packet against a model of mm-link's queue that knows nothing of ours."""

from __future__ import annotations

import random
from collections import deque
from pathlib import Path

import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from tests.guest.guest_run import plan_of, require_engine
from tests.guest.packets import Packet, captured
from tests.guest.shared_run import shared_run

OPPORTUNITY_BYTES = 1504  # as the published program has it: an IP packet of 1500 bytes with its tun device's header
TUN_BYTES, ETHERNET_BYTES = 4, 14
# The kernel's clock has steps of 256 ns, and each clock that a process reads takes one.
LATE_NS = 3000


class MahimahiLink:
    """The queue of mm-link, in whole milliseconds, with a tail drop of so many bytes or packets."""

    def __init__(self, trace_ms: list[int], limit_bytes: int | None, limit_packets: int | None) -> None:
        self.trace_ms, self.base_ms, self.next = trace_ms, 0, 0
        self.limit_bytes, self.limit_packets = limit_bytes, limit_packets
        self.queue: deque[tuple[int, Packet]] = deque()
        self.transit: Packet | None = None
        self.left_bytes = 0
        self.out: list[tuple[int, Packet]] = []
        self.dropped: list[Packet] = []

    def until(self, now_ms: int) -> None:
        while (time_ms := self.base_ms + self.trace_ms[self.next]) <= now_ms:
            self.next += 1
            if self.next == len(self.trace_ms):
                self.next = 0
                self.base_ms += self.trace_ms[-1]
            room = OPPORTUNITY_BYTES
            while room:
                if self.transit is None:
                    if not self.queue:
                        break
                    _, self.transit = self.queue.popleft()
                    self.left_bytes = self.transit.ip_bytes + TUN_BYTES
                sent = min(room, self.left_bytes)
                room -= sent
                self.left_bytes -= sent
                if not self.left_bytes:
                    self.out.append((time_ms, self.transit))
                    self.transit = None

    def arrive(self, packet: Packet) -> None:
        self.until(packet.time_ns // 1_000_000)
        frame_bytes = packet.ip_bytes + ETHERNET_BYTES
        held = sum(size for size, _ in self.queue)
        full = self.limit_bytes is not None and held + frame_bytes > self.limit_bytes
        if full or (self.limit_packets is not None and len(self.queue) >= self.limit_packets):
            self.dropped.append(packet)
        else:
            self.queue.append((frame_bytes, packet))


def trace(length_ms: int, seed: int, *, first_ms: int, stall: tuple[int, int], most: int) -> list[int]:
    """Bursts of several opportunities in a millisecond, silence of a few, and one stall."""
    drawn = random.Random(seed)
    times: list[int] = []
    now = first_ms
    while now < length_ms:
        if not stall[0] <= now < stall[1]:
            times += [now] * drawn.choice([1, 1, 1, 2, 3, most])
        now += drawn.choice([0, 1, 1, 2, 3, 7])
    return [*times, length_ms]


DOWN = trace(3100, 1, first_ms=0, stall=(900, 1500), most=9)
LOOP = trace(370, 2, first_ms=23, stall=(200, 290), most=4)
UP = trace(530, 3, first_ms=11, stall=(300, 420), most=2)


@pytest.fixture(scope="module")
def engine() -> UmlEngine:
    return require_engine()


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("links")
    found = {}
    for name, times in (("down", DOWN), ("loop", LOOP), ("up", UP)):
        found[name] = place / name
        found[name].write_text("".join(f"{time}\n" for time in times), encoding="ascii")
    return found


def profile(place: Path, forward: Path, reverse: Path, buffers: str, algorithm: str, router: str) -> Plan:
    """``router`` is the one both sides of which are captured: left sees data, right what comes back."""
    text = f"""\
howdah: 1
name: link
path: {{link: {forward}, reverse_link: {reverse}, rtt: 30 ms, {buffers}}}
algorithm: {algorithm}
duration: 4 s
collect: {{pcap: ['{router}:{router}-eth0', '{router}:{router}-eth1']}}
"""
    file = place / "link.yaml"
    file.write_text(text, encoding="utf-8")
    return plan_of(profile=file)


def compare(directory: RunDirectory, plan: Plan, times: list[int], *, reverse: bool = False) -> MahimahiLink:
    ends = ("right-right-eth1", "right-right-eth0") if reverse else ("left-left-eth1", "left-left-eth0")
    source = plan.flows[0].destination_address if reverse else plan.flows[0].source_address
    arrived, left = (list(captured(directory, plan, place, source)) for place in ends)
    path = plan.path
    limit = (path.reverse_buffer_bytes, path.reverse_buffer_packets) if reverse else (path.buffer_bytes, None)
    model = MahimahiLink(times, None if limit[1] is not None else limit[0], limit[1])
    for packet in arrived:
        model.arrive(packet)
    model.until(plan.duration_us // 1000 - 1)
    left = [packet for packet in left if packet.time_ns < (plan.duration_us - 1000) * 1000]
    expected = [(time_ms, packet) for time_ms, packet in model.out if time_ms < plan.duration_us // 1000 - 1]
    assert len(left) > 300
    assert [packet.identity for packet in left] == [packet.identity for _, packet in expected]
    late_ns = [packet.time_ns - time_ms * 1_000_000 for packet, (time_ms, _) in zip(left, expected, strict=True)]
    assert min(late_ns) >= 0
    assert max(late_ns) <= LATE_NS
    return model


@pytest.mark.parametrize(
    ("name", "buffers", "algorithm"),
    [
        ("down", "buffer: 60 packets, reverse_buffer: 40 packets", "cubic-no-hystart"),
        ("loop", "buffer: 20 kB, reverse_buffer: 9 kB", "bbr"),
    ],
)
def test_every_packet_leaves_when_mm_link_lets_it(
    engine: UmlEngine, traces: dict[str, Path], tmp_path: Path, name: str, buffers: str, algorithm: str
) -> None:
    """Stalls that keep the queue, several opportunities in a millisecond, rounds that end in the middle of a run, ACKs
    that share opportunities, and drops at a full queue."""
    plan = profile(tmp_path, traces[name], traces["up"], buffers, algorithm, "left")
    directory, verdict = shared_run(engine, plan)
    assert not [check.message for check in verdict.checks if check.ok is False]
    forward = compare(directory, plan, {"down": DOWN, "loop": LOOP}[name])
    assert forward.dropped
    assert forward.base_ms > 0, "the trace has begun again"

    plan = profile(tmp_path, traces[name], traces["up"], buffers, algorithm, "right")
    directory, verdict = shared_run(engine, plan)
    assert not [check.message for check in verdict.checks if check.ok is False]
    back = compare(directory, plan, UP, reverse=True)
    shared = len(back.out) - len({time_ms for time_ms, _ in back.out})
    assert shared > 20, "small packets leave together"
