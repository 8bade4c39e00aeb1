# SPDX-License-Identifier: Apache-2.0
"""The events and reasons of ``howdah:slow_start``: their names, what they mean, and the units of their numbers.

The numbers are those of modules/include/slow_start_event.h; a position in these tuples is a number there.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EventName:
    """What happened, in words for a report."""

    name: str
    words: str


@dataclass(frozen=True)
class Reason:
    """Why, in words; ``unit`` is that of the quantity times ``factor``.

    ``threshold_unit`` is that of the threshold times the same factor; None where the algorithm compares with nothing.
    """

    name: str
    words: str
    unit: str = ""
    threshold_unit: str | None = None
    factor: float = 1.0

    def quantity(self, value: int | None) -> float | None:
        """A quantity of the table ``slow_start`` in ``unit``; None where nobody told it."""
        return None if value is None else _plain(value * self.factor)

    def threshold(self, value: int | None) -> float | None:
        """A threshold of the table in ``threshold_unit``, or None without a threshold, or where nobody reports it."""
        if self.threshold_unit is None or value is None:
            return None
        # A count or a window that stands beside a rate is no rate.
        return _plain(value * (self.factor if self.threshold_unit == self.unit else 1.0))


def _plain(value: float) -> float:
    """Thousandths without the digits that binary fractions add."""
    rounded = round(value, 6)
    return int(rounded) if rounded == int(rounded) else rounded


_EVENTS = (
    EventName("exit", "left slow start"),
    EventName("phase", "another phase of slow start"),
    EventName("resume", "back to the phase before"),
    EventName("estimate", "ssthresh set from an estimate"),
    EventName("jump", "window set at once"),
    EventName("jump-end", "flight of the jump is out"),
    EventName("drain-end", "window has been drained"),
    EventName("retreat", "jump was too large"),
    EventName("share", "part of the window went to newer connections"),
    EventName("roll-back", "part of the window was taken back"),
)

_REASONS = (
    Reason("none", "no reason given"),
    Reason("ack-train", "the train of ACKs grew too long", "us", "us"),
    Reason("delay", "the round-trip time rose", "us", "us"),
    Reason("loss", "segments were lost", "packets"),
    Reason("rto", "the retransmission timer fired", "us"),
    Reason("congestion-signal", "ECN, or a drop in the sender's own queue"),
    Reason("initial-ssthresh", "the window reached a threshold set before", "packets", "packets"),
    Reason("delivery-rate", "deliveries fell behind what was sent", "ratio", "ratio", 0.001),
    Reason("css-rounds", "conservative slow start has lasted its rounds", "rounds", "rounds"),
    Reason("queue-estimate", "packets stood in the queue", "packets", "packets", 0.001),
    Reason("packet-pair", "bandwidth from the spacing of ACKs", "bit/s", "samples", 1000.0),
    Reason("rate-estimate", "estimated eligible rate", "bit/s", "packets", 1000.0),
    Reason("inflight-limit", "the limit of packets in flight", "packets", "packets"),
    Reason("jump-size", "the size of the jump", "packets", "packets"),
    Reason("cached", "a remembered window or threshold", "packets", "packets"),
    Reason("rtt-growth", "the round-trip time grew", "us", "us"),
    Reason("spurious", "the congestion was a false alarm", "packets"),
)

EVENTS = tuple(each.name for each in _EVENTS)
REASONS = tuple(each.name for each in _REASONS)
_EVENT_BY_NAME = {each.name: each for each in _EVENTS}
_REASON_BY_NAME = {each.name: each for each in _REASONS}

# Reasons that the core tells for any algorithm: the network answered, no detector did.
CONGESTION = ("loss", "rto", "congestion-signal")


def name_of(number: int, names: tuple[str, ...]) -> str:
    """The name of an event or reason; one that is newer than this program is ``unknown-N``."""
    return names[number] if 0 <= number < len(names) else f"unknown-{number}"


def event(name: str) -> EventName:
    """The event of a name; one that this program does not know speaks for itself."""
    return _EVENT_BY_NAME.get(name, EventName(name, name))


def reason(name: str) -> Reason:
    """The reason of a name; of one that this program does not know the numbers have no unit."""
    return _REASON_BY_NAME.get(name, Reason(name, name, "", ""))
