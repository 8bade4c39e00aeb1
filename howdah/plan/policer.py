# SPDX-License-Identifier: Apache-2.0
"""The policer of a path: what is planned for it, how it is measured, and its words. Standard library only."""

from __future__ import annotations

from dataclasses import field

from howdah.codec import OCCASIONAL, planned

INGRESS_HANDLE = "ffff:"  # of clsact, on which it hangs and which counts what comes to it and what it drops

_SENT_SHARE = 2  # of its rate, at which the train that measures it is sent
_LEAST_EXCESS = 1.05
_STEADY_FRAMES = 100  # that pass at its rate
_LONGEST_US = 60_000_000
_MOST_FRAMES = 100_000
# A rate limit lets two frames pass at once after a pause, so the rate of a shorter train is not the bottleneck's.
_LEAST_TRAIN_FRAMES = 6


@planned
class Policer:
    """A bucket of tokens in front of the bottleneck's queue, forward.

    It is measured by ``packets`` full frames, one each ``spacing_ns``: those until the first drop tell its burst, and
    those that pass afterwards its rate. ``unmeasured`` says why it is not.
    """

    rate_bits_per_second: int
    burst_bytes: int
    spacing_ns: int = 0
    packets: int = 0
    unmeasured: str | None = field(default=None, metadata=OCCASIONAL)

    @property
    def full_us(self) -> int:
        """In which an empty bucket fills."""
        return -(-self.burst_bytes * 8_000_000 // self.rate_bits_per_second)

    @property
    def measuring_us(self) -> int:
        """What a measurement of the path takes longer: its bucket fills before each train, and the trains' time."""
        return 2 * self.full_us + self.spacing_ns * self.packets // 1000

    def train_packets(self, frame_bytes: int) -> int:
        """The longest train that passes a full bucket; 1 where that is too short to tell a rate."""
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
    """With the train that measures it, which comes no faster than the bottleneck sends: the queue behind the policer
    stays empty, and all that is lost the policer dropped."""
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
