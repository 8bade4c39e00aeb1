# SPDX-License-Identifier: Apache-2.0
"""How a path changes with time: steps written out, a trace, drawn rates, hand-overs; and packets out of order."""

from __future__ import annotations

import itertools
from fractions import Fraction

from pydantic import Field, model_validator

from howdah.profile.field import Duration, FieldError, PositiveDuration, Rate, Ratio, Section, Text, fixed

SHORTEST_STEP_US = 1000
MOST_CHANGES = 50_000  # of the path in one run: a plan of so many takes a second to make
CHANGING = ("rate", "reverse_rate", "rtt", "forward_delay", "reverse_delay", "loss", "reverse_loss")
JITTER_INTERVAL_US = 20_000  # of the perturbation


class StepSection(Section):
    """One step of ``schedule``: from ``at`` on, what is given here holds. What no step gives stays as the path says.

    At the end of the run the path is again what it was, so that it can be measured. Packets keep their order when a
    delay falls.
    """

    at: Duration = Field(description="time after the epoch")
    rate: Rate | None = Field(default=None, description="of the bottleneck; its queue is kept")
    reverse_rate: Rate | None = Field(default=None, description="of the way back, where path.reverse_rate is set")
    rtt: PositiveDuration | None = Field(default=None, description="round trip, split as the path's")
    forward_delay: Duration | None = Field(default=None, description="instead of rtt: delay from sender to receiver")
    reverse_delay: Duration | None = Field(default=None, description="instead of rtt: delay from receiver to sender")
    loss: Ratio | None = Field(default=None, description="random loss, forward; 100 % loses everything")
    reverse_loss: Ratio | None = Field(default=None, description="random loss of the way back")
    loss_for: PositiveDuration | None = Field(
        default=None,
        description="the losses of this step hold for this time; then those hold that would without it",
    )
    outage: PositiveDuration | None = Field(default=None, description="both directions lose everything for this time")

    @model_validator(mode="after")
    def _something(self) -> StepSection:
        if all(getattr(self, name) is None for name in (*CHANGING, "outage")):
            raise FieldError("this step changes nothing; give it a rate, rtt, forward_delay, loss or outage")
        if self.loss_for is not None and self.loss is None and self.reverse_loss is None:
            raise FieldError("there is no loss that could end; give loss or reverse_loss", "loss_for")
        if self.rtt is not None and (self.forward_delay is not None or self.reverse_delay is not None):
            raise FieldError("rtt and a one-way delay are both given; give one", "rtt")
        return self


def check_steps(steps: list[StepSection], *place: str) -> None:
    """Raise FieldError unless times grow, by at least a millisecond."""
    for index, (earlier, later) in enumerate(itertools.pairwise(steps), start=1):
        if later.at < earlier.at + SHORTEST_STEP_US:
            what = "this step is not at least 1 ms after the one before it; steps are in order of time"
            raise FieldError(what, *place, index, "at")


class TraceSection(Section):
    """A path that changes as a file says. The file is CSV with a header (columns ``time`` and any of ``rate``,
    ``reverse_rate``, ``rtt``, ``forward_delay``, ``reverse_delay``, ``loss``, ``reverse_loss``, values with units), or
    a trace of Mahimahi. That has the time of each packet of 1500 bytes that may be sent, one a line, in
    milliseconds."""

    file: Text = fixed(description="relative to the profile; .csv, or anything else for Mahimahi's format")
    interval: PositiveDuration = Field(
        default=100_000,
        description="Mahimahi: the rate is the mean over this time",
        json_schema_extra={"x-default": "100 ms"},
    )
    repeat: PositiveDuration | None = Field(
        default=None, description="repeat the trace after this time; by default the last value stays"
    )
    scale: Ratio | None = Field(default=None, description="factor applied to the trace's rates")


class RateVariationSection(Section):
    """A bottleneck whose rate changes, as a radio link's: every ``interval`` a rate between ``least`` and the path's
    rate, uniform, correlated in time as ``delay_variation`` is. The series is drawn from the seed."""

    least: Rate = Field(description="lowest rate; the path's rate is the highest")
    correlation_time: Duration = Field(description="time in which the autocorrelation falls to 1/e; 0: independent")
    interval: PositiveDuration = Field(
        default=100_000, description="time between changes", json_schema_extra={"x-default": "100 ms"}
    )
    source: Text = fixed(description="where the numbers come from: a publication, a measurement, a choice")

    @model_validator(mode="after")
    def _rare(self) -> RateVariationSection:
        if self.interval < SHORTEST_STEP_US:
            raise FieldError("expected an interval of at least 1 ms", "interval")
        return self


class HandoverSection(Section):
    """Satellites in low orbit, each left for the next one after ``every``. Nothing arrives for ``outage``, then the
    delay is another one, between the path's and ``delay`` above it: uniform, half each way, drawn from the seed."""

    every: PositiveDuration = Field(description="time between hand-overs")
    first: PositiveDuration | None = Field(default=None, description="time of the first one; every by default")
    delay: Duration = Field(description="largest round trip added")
    outage: Duration = Field(default=0, description="time without any delivery", json_schema_extra={"x-default": "0"})
    source: Text = fixed(description="where the numbers come from: a publication, a measurement, a choice")

    @model_validator(mode="after")
    def _short(self) -> HandoverSection:
        if self.every < 10 * SHORTEST_STEP_US or self.outage >= self.every:
            raise FieldError("expected at least 10 ms between hand-overs, and an outage shorter than that", "every")
        return self


class ReorderSection(Section):
    """Packets that overtake: forward, netem lets some go at once, past those that wait for the forward delay.

    After each of them ``gap`` - 1 packets keep their place; then each goes at once with probability ``share``, until
    one has. Of all packets, 1 / (gap - 1 + 1 / share) overtake (net/sched/sch_netem.c, netem_enqueue).
    """

    share: Ratio = Field(description="probability that a packet overtakes")
    gap: int = Field(
        default=1, ge=1, le=1_000_000, description="least distance between two overtaking packets, in packets"
    )

    @model_validator(mode="after")
    def _rare(self) -> ReorderSection:
        if self.share == 0 or self.of_all > Fraction(1, 5):
            raise FieldError("expected that more than none and at most 20 % of all packets overtake", "share")
        return self

    @property
    def of_all(self) -> Fraction:
        """Share of all packets that overtake, in the long run."""
        return 1 / (self.gap - 1 + 1 / self.share)
