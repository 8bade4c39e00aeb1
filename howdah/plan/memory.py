# SPDX-License-Identifier: Apache-2.0
"""Sizes that must never limit a flow: socket buffers, tcp_mem, device backlog, trace buffer, guest memory."""

from __future__ import annotations

from dataclasses import dataclass

from howdah.plan.path import Path
from howdah.plan.plan import CAPTURE_BUFFER_BYTES, Flow
from howdah.plan.quic import STACKS

PAGE_BYTES = 4096
OPPORTUNITY_MEMORY_BYTES = 20  # 4 in the kernel; the agent holds a few copies while it sets the link up
BASE_MEMORY_BYTES = 256 << 20  # kernel, tmpfs, agent
# Memory of the agent per flow: its part of plan.json, as text and decoded (5 kB), its driver and record (1.5 kB), its
# sockets in TIME_WAIT. The base includes that of some flows.
FLOW_MEMORY_BYTES, FLOWS_IN_BASE = 8000, 2000
CAPTURE_MEMORY_BYTES = CAPTURE_BUFFER_BYTES + (16 << 20)  # plus the program; the engine holds the files
LEAST_BUFFER_MAXIMUM_BYTES = 268435456
LARGEST_SYSCTL = 2**31 - 1

# Memory that the kernel charges for a segment beyond its frame: struct sk_buff, the header's room and skb_shared_info
# (about 790 bytes for an MTU of 1500 on 64-bit kernels), rounded up.
SEGMENT_OVERHEAD_BYTES = 1024

# tcp_sndbuf_expand() lets the send queue grow to two windows; the receiver's out-of-order queue can hold one.
SENDER_WINDOWS, RECEIVER_WINDOWS = 2, 1

TRACE_RECORD_BYTES = 150  # one tcp:tcp_probe record in the ring buffer, header included
# Assumed limit of the time in which a connection of a group holds memory: a multiple of the transfer's time alone, and
# a time for its data in buffers. A longer time uses up spare memory; the judge reports it if that matters.
TRANSFER_SLOWDOWN, LINGER_US = 20, 10_000_000
# A second limit: the path, at half of its rate, has carried all earlier connections, plus this time.
SHORT_LINGER_US, SHORT_LINGER_RTTS = 2_000_000, 16

# Hybla multiplies its window per round trip by 2 to the power of RTT / 25 ms (net/ipv4/tcp_hybla.c), up to its bound,
# before it detects a loss. Below this RTT the window that is assumed for every flow has been enough.
HYBLA, HYBLA_LONG_US, HYBLA_MOST_PACKETS = "hybla", 125_000, 65_535

LEAST_TRACE_BYTES, LARGEST_TRACE_BYTES = 4 << 20, 64 << 20


def with_captures(guest_memory_bytes: int, captures: int) -> int:
    """Return the memory of a guest in which this number of interfaces is captured."""
    return guest_memory_bytes + captures * CAPTURE_MEMORY_BYTES


@dataclass(frozen=True)
class Sizes:
    """Values of the ``Plan`` fields and sysctls of these names; ``window_packets``: the largest of any flow."""

    window_packets: int
    backlog_packets: int
    tcp_mem_pages: tuple[int, int, int]
    receive_buffer_bytes: int
    send_buffer_bytes: int
    trace_buffer_bytes: int
    guest_memory_bytes: int


def largest_window_packets(path: Path, rtt_us: int) -> int:
    """Return 2 (BDP + buffers), the largest cwnd: slow start ends at the latest one RTT after the buffers are full."""
    bdp_bytes = path.largest_bdp_bytes(rtt_us)
    buffers = path.buffer_bytes + sum(hop.buffer_bytes for hop in path.hops)
    return 2 * (bdp_bytes + buffers) // path.frame_bytes + 64


def sizes(
    path: Path, flows: list[Flow], duration_us: int, added_us: int = 0, *, fixed_send_buffers: bool = False
) -> Sizes:
    """Return the sizes for all flows together, from each flow's RTT plus the largest delay that a schedule adds.

    With ``fixed_send_buffers``, a send buffer has its largest size from the beginning, and a sender that always has
    data fills it.
    """
    windows = [_largest_window_packets(path, flow, added_us) for flow in flows]
    window = max(windows)
    together = _together(path, flows, windows)
    truesize = path.frame_bytes + SEGMENT_OVERHEAD_BYTES
    # Twice what tcp_sndbuf_expand() requests (BBR multiplies by 3 instead of 2); half of a receive buffer is window.
    send_buffer = min(max(LEAST_BUFFER_MAXIMUM_BYTES, 2 * SENDER_WINDOWS * window * truesize), LARGEST_SYSCTL)
    socket_bytes = together * truesize * (SENDER_WINDOWS + RECEIVER_WINDOWS)
    if fixed_send_buffers:
        # Fixed buffers do not grow on demand, so a factor of 1 is enough.
        send_buffer = min(max(LEAST_BUFFER_MAXIMUM_BYTES, SENDER_WINDOWS * window * truesize), LARGEST_SYSCTL)
        # The path holds no further copy of queued data: the receiver's part of a window is the same data.
        bulk = sum(flow.group is None for flow in flows)
        socket_bytes = max(socket_bytes, bulk * send_buffer + together * truesize * RECEIVER_WINDOWS)
    network_bytes = window * truesize
    pages = -(-socket_bytes // PAGE_BYTES) + 16384
    receive_buffer = min(max(LEAST_BUFFER_MAXIMUM_BYTES, 2 * window * truesize), LARGEST_SYSCTL)
    trace = _trace_bytes(path, duration_us)
    links = sum(link.opportunities for link in (path.link, path.reverse_link) if link is not None)
    held = _packets(path, duration_us) * max(STACKS[flow.quic].held_packet_bytes if flow.quic else 0 for flow in flows)
    held += links * OPPORTUNITY_MEMORY_BYTES + max(len(flows) - FLOWS_IN_BASE, 0) * FLOW_MEMORY_BYTES
    return Sizes(
        window_packets=window,
        backlog_packets=max(10_000, 2 * together),
        tcp_mem_pages=(pages, pages, pages + pages // 4),
        receive_buffer_bytes=receive_buffer,
        send_buffer_bytes=send_buffer,
        trace_buffer_bytes=trace,
        guest_memory_bytes=_round_up(BASE_MEMORY_BYTES + socket_bytes + network_bytes + trace + held, 16 << 20),
    )


def _largest_window_packets(path: Path, flow: Flow, added_us: int) -> int:
    rtt_us = flow.rtt_us + added_us
    bursts = flow.kernel_algorithm == HYBLA and rtt_us >= HYBLA_LONG_US
    return max(largest_window_packets(path, rtt_us), HYBLA_MOST_PACKETS if bursts else 0)


def _together(path: Path, flows: list[Flow], windows: list[int]) -> int:
    """Return the largest sum of the windows of flows that exist at the same time, in packets.

    A flow of the profile counts all the time. A connection of a group counts while it lasts and for some time after,
    and with no more than it transfers.
    """
    constant = sum(window for flow, window in zip(flows, windows, strict=True) if flow.group is None)
    changes = []
    carried_us = 0  # when the path has carried all connections so far
    each = (pair for pair in zip(flows, windows, strict=True) if pair[0].group is not None)
    for flow, window in sorted(each, key=lambda pair: pair[0].start_us):
        packets, lasts_us = window, flow.stop_us - flow.start_us
        if flow.size_bytes is not None:
            packets = min(window, flow.size_bytes // path.mss_bytes + 16)
            ideal_us = flow.size_bytes * 8_000_000 // path.rate_bits_per_second
            carried_us = max(carried_us, flow.start_us) + 2 * ideal_us
            waits_us = carried_us - flow.start_us + SHORT_LINGER_US + SHORT_LINGER_RTTS * flow.rtt_us
            lasts_us = min(lasts_us + LINGER_US, TRANSFER_SLOWDOWN * ideal_us + 2 * LINGER_US, waits_us)
        else:
            lasts_us += LINGER_US
        changes += [(flow.start_us, packets), (flow.start_us + lasts_us, -packets)]
    most = now = constant
    for _, packets in sorted(changes):
        now += packets
        most = max(most, now)
    return most


def _trace_bytes(path: Path, duration_us: int) -> int:
    """Return room for one ACK per two packets of the run, at most 64 MiB: the agent drains it during the run."""
    expected = _packets(path, duration_us) // 2 * TRACE_RECORD_BYTES
    return min(max(_round_up(2 * expected, 1 << 20), LEAST_TRACE_BYTES), LARGEST_TRACE_BYTES)


def _packets(path: Path, duration_us: int) -> int:
    """Return the most packets that the path carries in a run."""
    carried = path.carried_bits_per_second or path.rate_bits_per_second
    return carried * duration_us // (8_000_000 * path.frame_bytes)


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step
