# SPDX-License-Identifier: Apache-2.0
"""The policer of a path: its planned values and the train that measures it. Standard library only."""

from __future__ import annotations

from dataclasses import field

from howdah.codec import OCCASIONAL, planned

INGRESS_HANDLE = "ffff:"  # handle of the policer's clsact, which counts arriving and dropped packets

_SENT_SHARE = 2  # rate of the measuring train, as a multiple of the policer's
_LEAST_EXCESS = 1.05  # least rate of a train that can measure the policer, as a multiple of the policer's
_STEADY_FRAMES = 100  # frames that pass at the policer's rate, after the burst
_LONGEST_US = 60_000_000  # longest train
_MOST_FRAMES = 100_000  # most frames of a train
# A rate limit passes two frames at once after a pause, so a shorter train does not show the bottleneck's rate.
_LEAST_TRAIN_FRAMES = 6


@planned
class Policer:
    """A token bucket in front of the bottleneck's queue, forward.

    A train of ``packets`` full frames, one each ``spacing_ns``, measures it: the frames before the first drop give its
    burst, the frames that pass afterwards its rate. ``unmeasured`` is the reason if there is no train.
    """

    rate_bits_per_second: int
    burst_bytes: int
    spacing_ns: int = 0
    packets: int = 0
    unmeasured: str | None = field(default=None, metadata=OCCASIONAL)

    @property
    def full_us(self) -> int:
        """The time in which an empty bucket fills."""
        return -(-self.burst_bytes * 8_000_000 // self.rate_bits_per_second)

    @property
    def measuring_us(self) -> int:
        """How much longer a measurement of the path takes: the trains, and filling the bucket before each."""
        return 2 * self.full_us + self.spacing_ns * self.packets // 1000

    def train_packets(self, frame_bytes: int) -> int:
        """Return the longest train that passes a full bucket; 1 if that is too short to measure a rate."""
        frames = self.burst_bytes // frame_bytes
        return frames if frames >= _LEAST_TRAIN_FRAMES else 1


def settled(
    rate_bits_per_second: int,
    burst_bytes: int,
    *,
    frame_bytes: int,
    bottleneck: int,
    interface: int | None,
    lossy: bool,
    several_kernels: bool,
) -> Policer:
    """Return the policer with the train that measures it. The train is no faster than the bottleneck, so that the queue
    behind the policer stays empty and every loss is the policer's."""
    plain = Policer(rate_bits_per_second, burst_bytes)
    sent = min(_SENT_SHARE * rate_bits_per_second, bottleneck, interface or bottleneck)
    why = None
    if several_kernels:
        why = "the measurement of several kernels has no such train"
    elif lossy:
        why = "random loss behind it hides which packets it drops"
    elif sent < _LEAST_EXCESS * rate_bits_per_second:
        why = "it is hardly slower than the bottleneck or the sender's interface"
    if why is None:
        spacing_ns = -(-frame_bytes * 8_000_000_000 // sent)
        draining_us = burst_bytes * 8_000_000 // (sent - rate_bits_per_second)
        steady_us = _STEADY_FRAMES * frame_bytes * 8_000_000 // rate_bits_per_second
        packets = (draining_us + steady_us) * 1000 // spacing_ns
        if draining_us + steady_us <= _LONGEST_US and packets <= _MOST_FRAMES:
            return Policer(rate_bits_per_second, burst_bytes, spacing_ns, packets)
        why = "its bucket takes too long to empty"
    return Policer(plain.rate_bits_per_second, plain.burst_bytes, unmeasured=why)
