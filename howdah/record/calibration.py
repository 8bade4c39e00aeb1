# SPDX-License-Identifier: Apache-2.0
"""calibration-before.json and calibration-after.json as the judge reads them: the path, measured by the agent.

``howdah/agent/calibration`` writes them, with the standard library alone. docs/data-format.md has these descriptions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from howdah.errors import HowdahError
from howdah.record.model import checked
from howdah.record.raw import read_raw_json

Number = int | float


def _told(description: str) -> Any:
    """A field that may be missing."""
    return Field(default=None, description=description)


class _Measured(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True, defer_build=True)


class TargetDelays(_Measured):
    """The delays between two hosts: the least, the median and the largest; null where no probe came."""

    sender: str = Field(description="The host that sends.")
    receiver: str = Field(description="The host that receives.")
    forward_delay_ns: list[Number] | None = _told("Towards the receiver.")
    reverse_delay_ns: list[Number] | None = _told("Towards the sender.")
    samples: int | None = _told("How many probes came.")
    lost: int | None = _told("How many did not.")

    def delays_ns(self, direction: str) -> list[Number] | None:
        """Of ``forward`` or ``reverse``."""
        return self.forward_delay_ns if direction == "forward" else self.reverse_delay_ns


class ProbesLost(_Measured):
    """Probes of delays and frames of the train together."""

    sent: int | None = _told("How many were sent.")
    received: int | None = _told("How many came.")


class PolicerTrain(_Measured):
    """What passed a policer of a train that is faster than its bucket fills."""

    sent: int = Field(default=0, description="How many frames were sent.")
    passed: int | None = _told("How many came.")
    first_dropped: int | None = _told("The number of the first that did not; null where all came.")
    first_dropped_ns: int | None = _told("When that was sent, from the first frame on.")
    passed_after: int = Field(default=0, description="How many came after it.")
    passed_after_ns: list[int] | None = _told("When the first and the last of these were sent.")


class DrawnDelays(_Measured):
    """Packets of one way whose delays are drawn. Times count from when the first was sent."""

    sender: str = Field(description="The sender of the pair.")
    receiver: str = Field(description="The receiver of the pair.")
    way: str = Field(description="`forward` or `reverse`.")
    sent_ns: list[int] = Field(description="When each was sent.")
    came_ns: list[int | None] = Field(description="When each came; null of one that did not.")


class RoundTrip(_Measured):
    """The echo of a host that another machine has."""

    sender: str = Field(description="Who asks.")
    receiver: str = Field(description="Who answers.")
    round_trip_ns: list[Number] | None = _told("The least, the median and the largest; null where no echo came.")


class CalibrationRecord(_Measured):
    """The file. Times count from the epoch."""

    format: int | None = _told("The version of this record.")
    start_ns: int | None = _told("When the measurement began.")
    end_ns: int | None = _told("When it ended.")
    rate_bits_per_second: Number | None = _told("Of a train of frames, by the steady three quarters of it.")
    rate_train_packets: int | None = _told("How many frames the train had.")
    rate_train_received: int | None = _told("How many came.")
    buffer_bytes: Number | None = _told("The depth of the bottleneck's buffer, by that rate; null: not measured.")
    buffer_why: str | None = _told("Why it was not measured.")
    buffer_offered_bytes: int | None = _told("What was sent to fill the buffer.")
    buffer_delivered_packets: int | None = _told("How many frames of it came.")
    buffer_dropped_packets: int | None = _told("How many did not.")
    silent: bool = Field(default=True, description="Whether the network fell silent afterwards.")
    targets: list[TargetDelays] = Field(default=[], description="The delays of each pair of hosts.")
    loss: ProbesLost | None = _told("Probes on a path whose buffer does not overflow.")
    policer: PolicerTrain | None = _told("Of a path with a policer.")
    jitter: list[DrawnDelays] | None = _told("Of a path whose packets draw their delays.")
    round_trips: list[RoundTrip] | None = _told("With several machines, what a flow meets.")


def read_calibration(path: Path) -> CalibrationRecord | None:
    """One of the files; None where it is missing, or no such record."""
    try:
        return checked(CalibrationRecord, read_raw_json(path), path)
    except (OSError, ValueError, HowdahError):
        return None
