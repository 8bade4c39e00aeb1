# SPDX-License-Identifier: Apache-2.0
"""calibration-before.json and calibration-after.json: the path as the agent measured it. The agent writes these
records, and the judge reads them with ``howdah/record/reading.py``. Standard library only. docs/data-format.md has
these descriptions.
"""

from __future__ import annotations

from collections.abc import Sequence

from howdah.codec import described, occasional, planned

CALIBRATION_FORMAT = 2
Number = int | float


@planned
class TargetDelays:
    """Delays between two hosts: the least, the median and the largest; null if no probe arrived."""

    sender: str = described("The host that sends.")
    receiver: str = described("The host that receives.")
    forward_delay_ns: Sequence[Number] | None = described("Towards the receiver.", default=None)
    reverse_delay_ns: Sequence[Number] | None = described("Towards the sender.", default=None)
    samples: int | None = described("Probes that arrived.", default=None)
    lost: int | None = described("Probes that did not.", default=None)

    def delays_ns(self, direction: str) -> Sequence[Number] | None:
        return self.forward_delay_ns if direction == "forward" else self.reverse_delay_ns


@planned
class ProbesLost:
    """Counts of delay probes and frames of the train together."""

    sent: int | None = described("How many were sent.", default=None)
    received: int | None = described("How many arrived.", default=None)


@planned
class PolicerTrain:
    """What a policer let through of a train that is faster than its bucket fills."""

    sent: int = described("How many frames were sent.", default=0)
    passed: int | None = described("How many arrived.", default=None)
    first_dropped: int | None = described("The number of the first that did not; null if all did.", default=None)
    first_dropped_ns: int | None = described("When that was sent, since the first frame.", default=None)
    passed_after: int = described("How many arrived after it.", default=0)
    passed_after_ns: list[int] | None = described("When the first and the last of these were sent.", default=None)


@planned
class DrawnDelays:
    """Packets in one direction whose delays are drawn at random. Times count from the first one's departure."""

    sender: str = described("The sender of the pair.")
    receiver: str = described("The receiver of the pair.")
    way: str = described("`forward` or `reverse`.")
    sent_ns: list[int] = described("When each was sent.")
    came_ns: list[int | None] = described("When each arrived; null if it did not.")


@planned
class RoundTrip:
    """Round trips to a host on another machine, by echo."""

    sender: str = described("The host that sends the echo.")
    receiver: str = described("The host that answers.")
    round_trip_ns: Sequence[Number] | None = described("The least, the median and the largest; null if none arrived.")
    sent: int | None = described("How many echoes were sent.", default=None)
    received: int | None = described("How many arrived.", default=None)


@planned
class EchoRecord:
    """echo-before.json and echo-after.json of a machine."""

    format: int
    round_trips: list[RoundTrip]


@planned
class CalibrationRecord:
    """The content of the file. Times count from the epoch."""

    format: int | None = described("The version of this record.", default=None)
    start_ns: int | None = described("When the measurement began.", default=None)
    end_ns: int | None = described("When it ended.", default=None)
    rate_bits_per_second: Number | None = described(
        "The rate of a train of frames, by its steady three quarters.", default=None
    )
    rate_train_packets: int | None = described("How many frames the train had.", default=None)
    rate_train_received: int | None = described("How many arrived.", default=None)
    buffer_bytes: Number | None = described(
        "The depth of the bottleneck's buffer, by that rate; null: not measured.", default=None
    )
    buffer_why: str | None = described("Why it was not measured.", default=None)
    buffer_offered_bytes: int | None = described("What was sent to fill the buffer.", default=None)
    buffer_delivered_packets: int | None = described("How many frames of it arrived.", default=None)
    buffer_dropped_packets: int | None = described("How many did not.", default=None)
    silent: bool = described("Whether the network fell silent afterwards.", default=True)
    targets: list[TargetDelays] = described("The delays of each pair of hosts.", default_factory=list)
    loss: ProbesLost | None = described("Probes on a path whose buffer does not overflow.", default=None)
    policer: PolicerTrain | None = occasional("For a path with a policer.", default=None)
    jitter: list[DrawnDelays] | None = occasional("For a path with random delays.", default=None)
    round_trips: list[RoundTrip] | None = occasional("For several machines, what a flow meets.", default=None)
