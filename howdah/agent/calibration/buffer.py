# SPDX-License-Identifier: Apache-2.0
"""The depth of the bottleneck's buffer: overfill it and take the longest wait."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, replace

from howdah.agent.calibration.udp import (
    NUMBER,
    SAMPLED_PORT,
    SEND_BUFFER_BYTES,
    UNREAD_PORT,
    arrivals,
    departures,
    open_receiver,
    open_sender,
    open_unread,
    send,
    stamp_departures,
)
from howdah.agent.loop import Loop
from howdah.frame import UDP_FRAME_BYTES
from howdah.linux.clock import MS, SECOND, now_ns
from howdah.linux.kernelfile import parse_snmp, read_again
from howdah.linux.namespace import Namespace
from howdah.plan.plan import Calibration, CalibrationTarget, Plan

_FILL_SHARE = 0.9  # share of the buffer filled by large sends; single frames fill the rest, to the last place
_OVERFILL_SHARE = 0.15  # load beyond a full buffer, as a share of the buffer
_OVERFILL_LEAST_FRAMES = 64
_OVER_PART_FRAMES = 4  # load beyond a part of the buffer, for rounding and the frame being sent
_MOST_SINGLE_FRAMES = 8000  # most single frames of growth: half to fill the buffer, half to overfill it
_MOST_SAMPLES = 20_000  # most time-stamped frames; a socket holds some 50 000 time stamps
_LARGEST_SEND_BYTES = 65_000
_SEGMENTS_PER_SEND = 40
_MARGIN_NS = 50 * MS
_PAUSES_PER_BUFFER = 4  # a full socket holds at least half of its nominal buffer
_LEAST_EXCESS = 1.1  # least ratio of the senders' total rate to the bottleneck's


@dataclass(frozen=True)
class BufferResult:
    """The measured depth. ``why`` says why it is missing; ``offered_bytes`` are all frames sent."""

    bytes: int | None
    offered_bytes: int
    delivered_packets: int
    dropped_packets: int
    why: str | None = None


@dataclass(frozen=True)
class BufferLoad:
    """One sender's load: frames in large sends of at most ``together``, then frames one by one.

    ``pause_ns`` is how long it waits for a full socket when poll() cannot tell: a fraction of the time in which the
    socket's buffer drains, so that its interface always has something to send.
    """

    bulk_frames: int
    single_frames: int
    pause_ns: int
    together: int = _SEGMENTS_PER_SEND

    def is_sampled(self, number: int) -> bool:
        """Whether the frame is time-stamped. Which frame takes the last place depends on the interfaces' rates, so all
        are sampled; of very many, a quarter without a pattern (Knuth's multiplicative hash)."""
        return self.single_frames <= _MOST_SAMPLES or (number * 40503 & 0xFFFF) < 0x4000


def divide_load(
    buffer_bytes: int, frame_bytes: int, rate: int, interface_rate: int | None, senders: int, *, in_part: bool = False
) -> BufferLoad | None:
    """Return each sender's load, which makes the queue grow to 1.15 buffers; None if the senders are too slow for it.

    ``in_part``: fill to a few frames more than ``buffer_bytes``; one of them has left when the last one arrives. While
    ``X`` bytes arrive at the senders' rate I, the bottleneck forwards X R / I, so the queue grows by X (1 - R / I).
    """
    growth = 1.0
    if interface_rate is not None:
        total = interface_rate * senders
        if total < _LEAST_EXCESS * rate:
            return None
        growth = 1 - rate / total
    most = _MOST_SINGLE_FRAMES // 2 * frame_bytes
    room = min((1 - _FILL_SHARE) * buffer_bytes, most)
    overfill = min(max(_OVERFILL_SHARE * buffer_bytes, _OVERFILL_LEAST_FRAMES * frame_bytes), most)
    if in_part:
        overfill = _OVER_PART_FRAMES * frame_bytes
    per_sender = growth * frame_bytes * senders
    bulk = int((buffer_bytes - room) / per_sender)
    single = int((room + overfill) / per_sender) + 1
    pause_ns = SEND_BUFFER_BYTES * 8 * SECOND // (_PAUSES_PER_BUFFER * (interface_rate or rate))
    return BufferLoad(bulk, single, pause_ns)


class Filler:
    """Sends one sender's share as fast as its sockets take it, and counts arrivals. Skips ends in other kernels."""

    def __init__(
        self,
        calibration: Calibration,
        target: CalibrationTarget,
        namespaces: dict[str, Namespace],
        loop: Loop,
        load: BufferLoad,
    ) -> None:
        self._address = target.receiver_address
        self._loop = loop
        self._payload_bytes = calibration.frame_bytes - calibration.overhead_bytes - UDP_FRAME_BYTES
        self._segments = min(load.together, max(_LARGEST_SEND_BYTES // self._payload_bytes, 1))
        self._bulk_left = load.bulk_frames
        self._single_left = load.single_frames
        self._is_sampled = load.is_sampled
        self._single = bytearray(self._payload_bytes)
        self._pause_ns = load.pause_ns
        self._bulk = memoryview(bytes(self._payload_bytes * self._segments))
        self._samples = 0
        self._senders: list[socket.socket] = []
        self._receivers: list[socket.socket] = []
        self._snmp: int | None = None
        self._delivered_before = 0
        self.sent_frames = 0
        host, far = namespaces.get(target.sender), namespaces.get(target.receiver)
        if host is not None:
            self._open_senders(host, target.sender_address)
        else:
            self._bulk_left = self._single_left = 0
        if far is not None:
            self._receivers = [
                open_receiver(far, self._address, SAMPLED_PORT),
                open_unread(far, self._address, UNREAD_PORT),
            ]
            self._snmp = far.open_file("/proc/net/snmp")
            self._delivered_before = self._delivered()

    def _open_senders(self, host: Namespace, address: str) -> None:
        self._bulk_sender = open_sender(host, address, self._payload_bytes)
        self._sender = open_sender(host, address)
        self._sample_sender = open_sender(host, address)
        stamp_departures(self._sample_sender)
        self._senders = [self._bulk_sender, self._sender, self._sample_sender]

    def _delivered(self) -> int:
        return 0 if self._snmp is None else parse_snmp(read_again(self._snmp))["IpInDelivers"]

    @property
    def done(self) -> bool:
        return not self._bulk_left and not self._single_left

    def pump(self, now: int) -> None:
        """Send until a socket is full, and continue when it has room."""
        blocked: socket.socket | None = None
        while blocked is None and not self.done:
            blocked = self._send_bulk() if self._bulk_left else self._send_single()
        if blocked is not None and blocked is self._sample_sender:
            # poll() always returns for this socket, because time stamps wait in its error queue.
            self._loop.at(now + self._pause_ns, self.pump)
            blocked = None
        for sender in self._senders:
            self._loop.when_writable(sender.fileno(), self.pump if sender is blocked else None)

    def _send_bulk(self) -> socket.socket | None:
        frames = min(self._bulk_left, self._segments)
        if not send(self._bulk_sender, self._bulk[: frames * self._payload_bytes], self._address, UNREAD_PORT):
            return self._bulk_sender
        self._bulk_left -= frames
        self.sent_frames += frames
        return None

    def _send_single(self) -> socket.socket | None:
        if self._is_sampled(self._single_left):
            NUMBER.pack_into(self._single, 0, self._samples)
            if not send(self._sample_sender, self._single, self._address, SAMPLED_PORT):
                return self._sample_sender
            self._samples += 1
        elif not send(self._sender, self._single, self._address, UNREAD_PORT):
            return self._sender
        self._single_left -= 1
        self.sent_frames += 1
        return None

    def finish(self) -> FillResult:
        departed = departures(self._sample_sender) if self._senders else {}
        arrived = arrivals(self._receivers[0]) if self._receivers else []
        delivered = self._delivered() - self._delivered_before
        if self._snmp is not None:
            os.close(self._snmp)
        for opened in self._senders:
            self._loop.when_writable(opened.fileno(), None)
        for opened in (*self._senders, *self._receivers):
            opened.close()
        self._senders = []
        self._bulk_left = self._single_left = 0  # pump() may still be called after a pause
        return FillResult(self.sent_frames, delivered, departed, [(item.number, item.time_ns) for item in arrived])


@dataclass(frozen=True)
class FillResult:
    """Frames sent and delivered, and for sampled frames, by number, the times at which they left the sender's interface
    and reached the receiver's. Ends in other kernels are left out."""

    sent_frames: int
    delivered_frames: int
    left_ns: dict[int, int]
    came_ns: list[tuple[int, int]]

    @property
    def delays_ns(self) -> list[int]:
        return [time_ns - self.left_ns[number] for number, time_ns in self.came_ns if number in self.left_ns]


def measure_buffer(
    plan: Plan,
    base_delays_ns: list[int | None],
    rate: float | None,
    namespaces: dict[str, Namespace],
    loop: Loop,
    phase_end_ns: int,
) -> BufferResult:
    """Measure the buffer. ``base_delays_ns`` are the targets' one-way delays without a queue, ``rate`` is the measured
    rate.

    Stops at ``phase_end_ns``, by which the buffer is empty: a small buffer at a low rate refuses most of the load at
    once. If the plan fills only a part, nothing overflows, and the depth is the amount sent: the buffer holds at least
    that.

    Depth = (longest one-way delay - base) x rate + half a frame. The packet that waited longest found the buffer full
    but for its own place. Ahead of it were the frames of all other places and the rest of the frame being sent, which
    is between nothing and a whole frame. If one sender cannot outrun the bottleneck, several send at once.
    """
    calibration = plan.calibration
    frame_bytes, configured_rate = calibration.frame_bytes, calibration.rate_bits_per_second
    if calibration.train_rate_bits_per_second is not None:
        rate = configured_rate  # the interface spaced the train out; several senders may still fill the buffer
    if calibration.buffer_unknown:
        return BufferResult(None, 0, 0, 0, calibration.buffer_unknown)
    if rate is None:
        return BufferResult(None, 0, 0, 0, "the rate could not be measured")
    load, indices = choose_load(plan)
    if load is None:
        return BufferResult(None, 0, 0, 0, too_slow_message(plan))
    fillers = [Filler(calibration, calibration.targets[number], namespaces, loop, load) for number in indices]
    start = now_ns()
    for filler in fillers:
        filler.pump(start)
    offered = (load.bulk_frames + load.single_frames) * frame_bytes * len(fillers)
    drain_ns = int((offered + filled_bytes(calibration)) * 8 * SECOND / configured_rate)
    loop.run_until(phase_end_ns, finished=lambda: all(filler.done for filler in fillers))
    waited = max(calibration.targets[number].forward_delay_us for number in indices) * 1000
    loop.run_until(min(max(start + drain_ns, now_ns()) + waited + _MARGIN_NS, phase_end_ns))
    filled = [filler.finish() for filler in fillers]
    return depth_of(filled, [base_delays_ns[number] for number in indices], rate, frame_bytes)


def filled_bytes(calibration: Calibration) -> int:
    """How much of the buffer is filled: all of it, or the part that the plan names."""
    return calibration.part_bytes or calibration.buffer_bytes


def choose_load(plan: Plan) -> tuple[BufferLoad | None, list[int]]:
    """Return the load of each sender and the indices of the targets whose senders are used; no load if all senders
    together are too slow."""
    calibration = plan.calibration
    by_sender = {target.sender: number for number, target in enumerate(calibration.targets)}
    for count in range(1, len(by_sender) + 1):
        load = divide_load(
            filled_bytes(calibration),
            calibration.frame_bytes,
            calibration.rate_bits_per_second,
            plan.path.sender_interface_bits_per_second,
            count,
            in_part=calibration.part_bytes is not None,
        )
        if load is not None:
            # If frames sent together cross the path unsplit, one that takes the last place waits for all the others.
            together = load.together if plan.path.gso_max_segs == 1 else 1
            return replace(load, together=together), list(by_sender.values())[:count]
    return None, []


def too_slow_message(plan: Plan) -> str:
    calibration = plan.calibration
    senders = len({target.sender for target in calibration.targets})
    interface = plan.path.sender_interface_bits_per_second
    return f"{senders} sender(s) of {interface} bit/s cannot outrun {calibration.rate_bits_per_second} bit/s"


def depth_of(filled: list[FillResult], bases: list[int | None], rate: float, frame_bytes: int) -> BufferResult:
    sent = delivered = 0
    longest_wait: int | None = None
    for item, base in zip(filled, bases, strict=True):
        delays = item.delays_ns
        sent += item.sent_frames
        delivered += item.delivered_frames
        if delays and base is not None:
            longest_wait = max(longest_wait or 0, max(delays) - base)
    depth = None if longest_wait is None else round(longest_wait * rate / 8 / SECOND + frame_bytes / 2)
    why = "no sampled packet arrived" if longest_wait is None else None
    return BufferResult(depth, sent * frame_bytes, delivered, sent - delivered, why)
