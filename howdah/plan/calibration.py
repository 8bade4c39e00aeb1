# SPDX-License-Identifier: Apache-2.0
"""Times, hosts and expected results of the measurement of the path."""

from __future__ import annotations

from fractions import Fraction

from howdah.linux.netlink.discipline.discipline import HopQueue, Room
from howdah.plan.flow import Delays
from howdah.plan.network import Network, bare
from howdah.plan.path import MOST_FILLED_US, PROBE_EVERY_US, PROBES, Path
from howdah.plan.plan import Calibration, CalibrationTarget
from howdah.plan.qdisc import LEAF_HANDLE
from howdah.plan.schedule import Schedule
from howdah.profile.model import Scenario

SETTLE_US = 1_000_000
# Extra wait of separate machines: each counts packets at a fixed instant and cannot see when the others are silent.
SEPARATE_US = 4_000_000
# Time in which an agent stores its records, at one instruction per nanosecond. It is multiplied for slower processors;
# it is zero if computing takes no virtual time.
PUT_AWAY_US = 1_000_000


def calibration(
    scenario: Scenario,
    network: Network,
    pairs: list[tuple[str, str]],
    path: Path,
    delays: Delays,
    varying: Schedule,
    queues: list[HopQueue],
    *,
    several_clocks: bool = False,
    processor_shift: int = 0,
) -> Calibration:
    """Return when the path is measured, and the expected results.

    One calibration consists of probes, a train at the sender interface's rate that overfills the buffer, its drain, and
    a wait for silence: 2 s + 6 RTT + 3 buffer drains + the time to fill the buffer. Probes of a slow path take longer.
    A buffer that takes longer than ``MOST_FILLED_US`` to drain is filled only in part. The second calibration starts
    when the rest of the flows' send queues (at most two windows), and of the queues in both directions, can have
    drained.
    """
    part_bytes = _part(path)
    drain_us = min(path.forward_queue_us, MOST_FILLED_US)
    crossing = [pair for pair in pairs if network.bottleneck_ends(*pair)]
    rtt_us = max(delays.of_host[receiver] + delays.of_host[sender] for sender, receiver in pairs)
    extra_us = varying.forward_largest_us + varying.reverse_largest_us
    filled_bytes = part_bytes or path.buffer_bytes
    fill_us = _fill_us(path, filled_bytes, len({sender for sender, _ in crossing}))
    measured = len(dict.fromkeys(crossing))
    slow_us = PROBES * max(measured * path.probe_gap_us(measured) - PROBE_EVERY_US, 0)
    phase_us = 2_000_000 + 6 * rtt_us + 3 * drain_us + fill_us + slow_us
    settle_us = SETTLE_US + rtt_us + drain_us
    if path.policer is not None:
        phase_us += path.policer.measuring_us
        settle_us += path.policer.full_us  # the last train leaves the bucket empty
    if path.jitter is not None:
        phase_us += path.jitter.measuring_us
    linger_us = SETTLE_US + extra_us + path.leaving_us(rtt_us) + (SEPARATE_US if several_clocks else 0)
    linger_us += PUT_AWAY_US * ((1 << processor_shift) - 1)
    targets = []
    for sender, receiver in dict.fromkeys(crossing):
        ends = (network.access_link(sender).at(sender), network.access_link(receiver).at(receiver))
        targets.append(
            CalibrationTarget(
                sender=sender,
                receiver=receiver,
                sender_address=bare(ends[0].second_address or ends[0].address),
                receiver_address=bare(ends[1].second_address or ends[1].address),
                forward_delay_us=delays.of_host[receiver],
                reverse_delay_us=delays.of_host[sender],
                variation_us=varying.forward_largest_us,
                variation_reverse_us=varying.reverse_largest_us,
            )
        )
    bottleneck = network.bottleneck_ends(*pairs[0])
    assert bottleneck is not None  # endpoints() refused flows that do not cross it
    return Calibration(
        enabled=scenario.calibrate,
        before_us=-(phase_us + settle_us) if scenario.calibrate else 0,
        after_us=scenario.duration + linger_us,
        phase_us=phase_us,
        settle_us=settle_us,
        rate_bits_per_second=path.rate_bits_per_second,
        buffer_bytes=path.buffer_bytes,
        frame_bytes=path.frame_bytes,
        bottleneck_node=bottleneck[0].node,
        bottleneck_interface=bottleneck[0].name,
        bottleneck_handle=LEAF_HANDLE,
        targets=targets,
        buffer_unknown=_unknown(path, queues[0]),
        train_rate_bits_per_second=_slower(path),
        train_packets=_train(path, queues),
        early_us=scenario.path.early_us,
        part_bytes=part_bytes,
        overhead_bytes=path.tunnel_bytes,
    )


def _part(path: Path) -> int | None:
    """Return how many bytes of the bottleneck's buffer are filled, None for all of it."""
    if path.buffer_bytes * 8_000_000 // path.rate_bits_per_second <= MOST_FILLED_US:
        return None
    whole_frames = MOST_FILLED_US * path.rate_bits_per_second // 8_000_000 // path.frame_bytes
    return max(whole_frames, 2) * path.frame_bytes


def _slower(path: Path) -> int | None:
    """Return the rate of the sender's interface if it is the one that spaces a train, else None."""
    interface = path.sender_interface_bits_per_second
    return interface if interface is not None and interface < path.rate_bits_per_second else None


def _train(path: Path, queues: list[HopQueue]) -> int | None:
    """Return the longest train that no queue on the path drops from; None: limited by the bottleneck's buffer alone."""
    part = [] if (filled := _part(path)) is None else [filled]
    room = Room(path.buffer_bytes, path.rate_bits_per_second, path.frame_bytes, Fraction(path.bdp_bytes), path.ecn)
    limits = [queue.train_packets(room) for queue in queues]
    limits += [] if path.policer is None else [path.policer.train_packets(path.frame_bytes)]
    limits += [max(room * 4 // 5 // path.frame_bytes, 2) for room in [hop.buffer_bytes for hop in path.hops] + part]
    return min((limit for limit in limits if limit is not None), default=None)


def _unknown(path: Path, queue: HopQueue) -> str | None:
    """Return why a queue's depth cannot be measured: it cannot be filled, or not be distinguished from another."""
    if not queue.fills:
        return f"{queue.name} drops before its buffer is full"
    if path.policer is not None:
        return "the policer drops what would fill it"
    if any(hop.place == "before" for hop in path.hops):
        return "a hop before the bottleneck keeps what would fill its queue"
    if any(hop.rate_bits_per_second * 10 < path.rate_bits_per_second * 11 for hop in path.hops):
        return "another hop is as slow as the bottleneck, so that its queue fills with this one's"
    return None


def _fill_us(path: Path, filled_bytes: int, senders: int) -> int:
    """Return how long all senders take to overfill the buffer by a fifth; 0 if they cannot, or do so at once."""
    if path.sender_interface_bits_per_second is None:
        return 0
    excess = senders * path.sender_interface_bits_per_second - path.rate_bits_per_second
    return filled_bytes * 8_000_000 * 6 // (5 * excess) if excess * 10 >= path.rate_bits_per_second else 0
