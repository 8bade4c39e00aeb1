# SPDX-License-Identifier: Apache-2.0
"""``recorded:`` what a recording showed of the flow whose twin the profile is; 'howdah new --from' writes it.

It enters no plan: ``howdah run`` lays it over what the runs show.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, WithJsonSchema, model_validator

from howdah.profile.field import FieldError, PositiveDuration, Rate, Section, Text, fixed

MOST_POINTS = 1000
Number = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=False)]
Numbers = Annotated[
    list[Number],
    Field(min_length=2, max_length=MOST_POINTS),
    WithJsonSchema({"type": "array", "minItems": 2, "maxItems": MOST_POINTS, "x-value": "list of numbers"}),
]


class RecordedExitSection(Section):
    """Where the recorded flow left its start-up."""

    time: PositiveDuration = fixed(description="since it began to connect")
    packets: Number = fixed(description="in flight")
    round: int | None = fixed(None, ge=0, description="counted from 0")
    cause: Text | None = fixed(None, description="as `exit_cause` of docs/measures.md; without it nothing tells")


class RecordedCourseSection(Section):
    """The recorded flow at the sender, at some times since it began to connect."""

    time_ms: Numbers = fixed(description="times")
    in_flight_packets: Numbers = fixed(description="sent and not acknowledged, when the last ACK came")
    acknowledged_kb: Numbers = fixed(description="bytes acknowledged, in thousands")
    rtt_ms: Numbers = fixed(description="round trip of the last segment acknowledged")

    @model_validator(mode="after")
    def _equal(self) -> RecordedCourseSection:
        for name in ("in_flight_packets", "acknowledged_kb", "rtt_ms"):
            if len(getattr(self, name)) != len(self.time_ms):
                raise FieldError(f"{name} has {len(getattr(self, name))} values for {len(self.time_ms)} times", name)
        if any(later <= time for time, later in zip(self.time_ms, self.time_ms[1:], strict=False)):
            raise FieldError("the times do not rise", "time_ms")
        return self


class RecordedSection(Section):
    """What the recording showed of the flow."""

    goodput: Rate | None = fixed(None, description="acknowledged data over its time")
    retransmitted_packets: int | None = fixed(None, ge=0, description="segments sent again")
    held_back_by: Text | None = fixed(None, description="as `held_back_by` of docs/measures.md")
    exit: RecordedExitSection | None = fixed(None, description="where it left its start-up")
    startup_left: bool | None = fixed(None, description="false: it did not; without either that does not show")
    course: RecordedCourseSection | None = fixed(
        None, description="its course at the sender, since it began to connect, where the recording has packets"
    )
