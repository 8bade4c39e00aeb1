# SPDX-License-Identifier: Apache-2.0
"""Explain one flow, whatever recorded it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from pydantic import ConfigDict, Field, InstanceOf

from howdah.explain.bucket import Bucket
from howdah.explain.connection import Options, TapConnection
from howdah.explain.course import SenderCourse, sender_course
from howdah.explain.delay import SENDER, RoundTrips, Tap, round_trips
from howdah.explain.estimate import Estimate, absent
from howdah.explain.holding import holding_of
from howdah.explain.loss import LossBy
from howdah.explain.path import SeenPath, path_of
from howdah.explain.repairs import CUBIC, RENO, repairs_of
from howdah.explain.seen import FILLS, LATE, Seen, seen_of
from howdah.explain.startup import StartUp, start_up
from howdah.frame import STAMPED_TCP_BYTES, frame_bytes
from howdah.held import NOTABLE_SHARE, ORDINARY, HeldBy
from howdah.ingest.capture import MOST_SCALE
from howdah.measure.cause import ACK_TRAIN, BBR_DRAIN, DELAY, LOSS, UNKNOWN
from howdah.measure.held import Holding
from howdah.quantity import bdp_bytes
from howdah.record.model import FilePart

Source = Literal["capture", "tcp_probe", "ss", "iperf3", "qlog"]
_ROUNDS_AFTER_EXIT = 2  # rounds after the exit that belong to the start-up
_FEW_BLOCKS = 3  # SACK blocks of unsent bytes from which on a note says so


@dataclass(frozen=True)
class ExplainedExit:
    """When a flow left its start-up, and what it had in flight; ``time_s`` counts from its first packet, at the
    sender."""

    time_s: float
    packets: Estimate
    round: int | None
    cause: str | None
    sure: bool
    evidence: str


class FlowFacts(FilePart):
    """What was found out of one flow, as ``howdah explain --json`` prints it. What a source cannot tell is null, and
    ``unknown`` says why by the name of the field."""

    name: str
    file: str
    source: Source
    at: Tap | None
    duration_s: float
    data_bytes: int
    opener: str | None
    mss_bytes: int | None
    initial_window_packets: int | None
    handshake_rtt_us: float | None
    goodput_bits_per_second: float
    growth: float | None
    round_flights_packets: list[float]
    why_no_exit: str
    limit: str | None = Field(description="what ended the growth without an exit: receive-window, application")
    retransmitted_packets: int | None
    spurious_packets: int | None
    late_packets: int | None
    lost_before_packets: int | None
    loss_by: LossBy | None
    loss_words: str
    timeouts: int | None
    receive_window_least_bytes: int | None
    receive_window_most_bytes: int | None
    segments_per_ack: float | None
    paced: bool | None
    algorithm: list[str] = Field(description="those that fit, the likeliest first")
    algorithm_words: str
    notes: list[str]
    unknown: dict[str, str] = Field(description="what the recording cannot tell, and why")


class Explained(FlowFacts):
    """One explained flow. ``parts`` are what pictures are drawn from, if there are packets; ``policer`` is the token
    bucket that dropped packets; ``hosts`` are sender and receiver, and ``begins_s`` the time of the first packet, if
    recorded. ``lost_before_packets`` were missing when the tap saw later ones.
    """

    model_config = ConfigDict(extra="forbid")

    notes: list[str] = Field(default_factory=list)
    unknown: dict[str, str] = Field(default_factory=dict)
    options: dict[str, Options | None]
    base_rtt_us: Estimate
    rate_bits_per_second: Estimate
    sender_interface_bits_per_second: Estimate
    buffer_bytes: Estimate
    delay_variation_us: Estimate
    peak_packets: Estimate
    overshoot_packets: Estimate
    exit: ExplainedExit | None
    holding: Holding | None
    policer: Bucket | None = None
    hosts: tuple[str, str] | None = None
    begins_s: float | None = None
    parts: tuple[InstanceOf[Seen], InstanceOf[RoundTrips], InstanceOf[SenderCourse], InstanceOf[StartUp]] | None = None

    @property
    def bdp_bytes(self) -> float | None:
        """Rate x base round trip; None if one of them is not known."""
        rate, rtt_us = self.rate_bits_per_second.value, self.base_rtt_us.value
        return bdp_bytes(rate, rtt_us) if rate and rtt_us else None

    @property
    def bdp_packets(self) -> float | None:
        if self.bdp_bytes is None or self.mss_bytes is None:
            return None
        return self.bdp_bytes / frame_bytes(self.mss_bytes + STAMPED_TCP_BYTES)

    @property
    def held_back_by(self) -> HeldBy | None:
        """The kind with the largest share, of the notable kinds if there is one (as in metrics.json)."""
        if self.holding is None:
            return None
        shares = {kind: self.holding.share(kind) for kind in self.holding.seconds}
        notable = {kind: share for kind, share in shares.items() if kind not in ORDINARY and share > NOTABLE_SHARE}
        return max(notable or shares, key=lambda kind: shares[kind], default=None)


def partly_known(reason: str, **facts: Any) -> Explained:
    """A flow of which only ``facts`` are known; every other estimate is absent for this reason."""
    fields = Explained.model_fields
    nothing: dict[str, Any] = dict.fromkeys(name for name, each in fields.items() if each.is_required())
    nothing |= {name: absent(reason) for name, each in fields.items() if each.annotation is Estimate}
    nothing |= {"round_flights_packets": [], "why_no_exit": reason, "loss_words": ""}
    return Explained(**(nothing | {"algorithm": [], "algorithm_words": reason} | facts))


def explain_connection(connection: TapConnection) -> Explained | None:
    """Explain a connection; return None if nothing acknowledges its data."""
    seen = seen_of(connection)
    if seen is None:
        return None
    trips = round_trips(seen)
    if trips.base_ns.value is not None and not seen.has_stamps:
        seen = seen_of(connection, int(trips.base_ns.value)) or seen
        trips = round_trips(seen)
    course = sender_course(seen, trips)
    first, last = int(seen.sent.time_ns[0]), int(seen.acks.time_ns[-1])
    begin = next((stamp for stamp in seen.syn_ns if stamp is not None), first)
    finished = seen.closed and seen.acks.una[-1] > seen.sent.top[-1]  # a FIN takes a sequence number, and is no data
    acked = int(seen.acks.una[-1] - finished - min(seen.acks.una[0], seen.sent.begin[0]))
    duration_s = (last - begin) / 1e9
    windows = seen.acks.window_bytes
    known = bool(windows.size) and windows.min() >= 0
    found = partly_known(
        trips.base_ns.reason or "too few ACKs",
        name=f"{connection.ends[0]} > {connection.ends[1]}",
        file=connection.file,
        source="capture",
        at=trips.at,
        duration_s=duration_s,
        data_bytes=acked,
        opener=seen.opener,
        options=connection.options,
        mss_bytes=seen.mss_bytes,
        base_rtt_us=_scaled(trips.base_ns, 1e-3),
        goodput_bits_per_second=acked * 8 / max(duration_s, 1e-9),
        retransmitted_packets=seen.sent_again,
        spurious_packets=seen.spurious,
        late_packets=int((seen.sent.kind == LATE).sum()),
        lost_before_packets=int((seen.sent.kind == FILLS).sum()),
        receive_window_least_bytes=int(windows.min()) if known else None,
        receive_window_most_bytes=int(windows.max()) if known else None,
        segments_per_ack=_segments_per_ack(seen),
    )
    if course is not None and len(course) >= 2:
        found.goodput_bits_per_second = acked * 8e9 / max(last - begin, 1)
        found.receive_window_least_bytes = int(windows[1:].min()) if known and windows.size > 1 else None
        found.hosts = (_host(connection.ends[0]), _host(connection.ends[1]))
        found.begins_s = begin / 1e9
        _add_course(found, seen, trips, course, begin)
    _add_notes(found, connection, seen, trips)
    return found


def _add_course(found: Explained, seen: Seen, trips: RoundTrips, course: SenderCourse, begin: int) -> None:
    start, path = start_up(seen, course, trips), path_of(seen, course, trips)
    found.parts = (seen, trips, course, start)
    found.initial_window_packets, found.growth = start.initial_window_packets, start.growth
    found.handshake_rtt_us = trips.handshake_ns / 1e3 if trips.handshake_ns is not None else None
    found.round_flights_packets = [each.flight_bytes / course.mss_bytes for each in start.rounds[:40]]
    found.exit, found.why_no_exit, found.limit = _exit(course, start, trips, begin), start.why_not, start.limit
    found.peak_packets, found.overshoot_packets = _peak(course, start), _overshoot(course, path, trips, start)
    found.rate_bits_per_second, found.buffer_bytes = path.rate, path.buffer
    found.sender_interface_bits_per_second = path.sender_interface
    found.delay_variation_us = _scaled(path.delay_variation_ns, 1e-3)
    found.loss_by, found.loss_words, found.policer = path.loss_by, path.loss_words, path.policer
    found.paced = start.paced
    found.algorithm, found.algorithm_words = fitting_algorithms(course, start, trips)
    found.holding = holding_of(seen, course, trips, start, path)
    found.timeouts = _timeouts(course, trips) if found.holding is not None else None


def _host(end: str) -> str:
    return end.rpartition(":")[0]


def _scaled(found: Estimate, by: float) -> Estimate:
    value, low, high = (None if each is None else each * by for each in (found.value, found.low, found.high))
    return Estimate(value, low, high, found.how, found.reason)


def _exit(course: SenderCourse, start: StartUp, trips: RoundTrips, begin: int) -> ExplainedExit | None:
    if start.at is None or start.round is None:
        return None
    packets = course.flight[start.at] / course.mss_bytes
    doubt = max(2.0, 0.02 * packets) if trips.at == SENDER else max(4.0, 0.05 * packets)
    near = trips.near_ns or 0
    time = (int(course.time_ns[start.at]) - begin + near) / 1e9
    estimate = Estimate(float(packets), packets - doubt, packets + doubt, "what was in flight when the ACK came")
    cause = start.cause if start.sure else None
    return ExplainedExit(time, estimate, start.round, cause, start.sure, start.evidence)


def _start_up_end(course: SenderCourse, start: StartUp) -> int:
    """The ACK two rounds after the exit, as in howdah/measure/overshoot.py; else the end."""
    following = course.rounds[course.rounds > start.at] if start.at is not None else course.rounds[:0]
    return int(following[_ROUNDS_AFTER_EXIT]) if following.size > _ROUNDS_AFTER_EXIT else len(course)


def _peak(course: SenderCourse, start: StartUp) -> Estimate:
    peak = float(course.flight[: _start_up_end(course, start)].max() / course.mss_bytes)
    if not course.of_sender:
        return absent("what the sender had sent is not known")
    return Estimate(peak, peak, peak + max(2.0, 0.02 * peak), "the most in flight when an ACK of the start-up came")


def _overshoot(course: SenderCourse, path: SeenPath, trips: RoundTrips, start: StartUp) -> Estimate:
    """The peak beyond BDP + buffer, as howdah/measure/overshoot.py defines it."""
    if not (path.rate.known and path.buffer.known and trips.base_ns.known and course.of_sender):
        return absent("rate, base round trip or buffer is not known")
    assert path.rate.value is not None and path.buffer.value is not None and trips.base_ns.value is not None
    frame = course.mss_bytes / path.payload_share
    hold = (path.rate.value * trips.base_ns.value / 8e9 + path.buffer.value) / frame
    peak = float(course.flight[: _start_up_end(course, start)].max() / course.mss_bytes)
    doubt = 0.03 * hold
    return Estimate(
        peak - hold, peak - hold - doubt, peak - hold + doubt, "the peak, less rate × round trip and buffer"
    )


def _segments_per_ack(seen: Seen) -> float | None:
    advanced = int((seen.acks.una[1:] > seen.acks.una[:-1]).sum())
    return (int(seen.acks.una[-1]) - int(seen.acks.una[0])) / seen.mss_bytes / advanced if advanced else None


def _timeouts(course: SenderCourse, trips: RoundTrips) -> int:
    """Number of silences of a round trip plus 200 ms (TCP_RTO_MIN) with data outstanding, followed by a
    retransmission."""
    silent = np.flatnonzero(np.diff(course.time_ns) >= int(trips.base_ns.value or 0) + 200_000_000)
    return int(np.isin(silent, np.unique(np.maximum(course.again, 0))).sum())


def fitting_algorithms(course: SenderCourse, start: StartUp, trips: RoundTrips) -> tuple[list[str], str]:
    """The algorithms of kernels that fit, the likeliest first, and why."""
    if start.cause == BBR_DRAIN and start.sure:
        return ["bbr"], "it paces, and what was in flight fell to a third of its rate without a timeout"
    if start.cause in (ACK_TRAIN, DELAY) and start.sure:
        return ["cubic"], "it left where HyStart of cubic finds the end"
    if start.paced:
        return ["bbr", "cubic"], "it paces"
    if start.at is not None:
        spoke = start.hystart is not None and bool([each for each in (*start.hystart.trains, *start.hystart.delays)
                                                    if each < start.at - 4])  # fmt: skip
        cubics = ["cubic-no-hystart", "cubic"] if spoke else ["cubic", "cubic-no-hystart"]
        repairs = repairs_of(course, trips)
        if repairs.reduces_like == RENO:
            return ["reno"], f"{repairs.words}; reno keeps 0.5"
        if repairs.reduces_like == CUBIC:
            return cubics if start.cause == UNKNOWN else cubics[:1], f"{repairs.words}; cubic keeps 0.7"
        if start.cause == LOSS:
            return [cubics[0], "reno"], "it left by a loss"
    why = "its exit does not show, so" if start.at is None else "neither how it left nor a repair shows;"
    return ["cubic", "reno", "bbr"], f"{why} nothing tells them apart"


def _add_notes(found: Explained, connection: TapConnection, seen: Seen, trips: RoundTrips) -> None:
    if trips.is_split and trips.handshake_ns is not None:
        found.notes.append(
            f"the handshake took {trips.handshake_ns / 1e6:.1f} ms, the data's round trip at least "
            f"{(trips.base_ns.value or trips.far_ns or 0) / 1e6:.1f} ms: somebody on the path answered the handshake"
        )
    if seen.excess_scale:
        found.notes.append(
            f"the receiver said a window scale of {MOST_SCALE + seen.excess_scale}, and TCP has at most {MOST_SCALE} "
            "(RFC 7323): a sender that takes it at its word stops at a window of 2 GiB and more"
        )
    if seen.copies:
        found.notes.append(f"{seen.copies} segments are in the capture twice; each counts once")
    if seen.unsent_blocks >= _FEW_BLOCKS:
        found.notes.append(
            f"{seen.unsent_blocks} blocks of SACK name bytes that were not sent: something on the path changes the "
            "numbers of segments and not those of blocks, so that the sender cannot use them"
        )
    if seen.missing_bytes:
        found.notes.append(f"the capture lost {seen.missing_bytes} bytes that were acknowledged")
    if connection.backward_stamps:
        found.notes.append(f"{connection.backward_stamps} stamps are before the one in front of them; they were sorted")
    if connection.later_segments:
        found.notes.append(f"{connection.later_segments} segments behind the first ones are not looked at")
    if trips.clock_ns >= 1_000_000:
        found.notes.append(f"the clock of the capture counts in steps of {trips.clock_ns / 1e6:g} ms")
    if seen.opener is None:
        found.notes.append("the capture begins after the connection did")
    if found.at is None:
        found.unknown["at"] = "nothing divides the round trip: no handshake, no time stamps, or too coarse a clock"
    if found.receive_window_most_bytes is None:
        found.unknown["receive_window"] = "no SYN says the scale of the window"
    if found.initial_window_packets is None:
        found.unknown["initial_window"] = "the first flight is not in the capture, or was all that the application had"
    if found.holding is None:
        found.unknown["held"] = found.why_no_exit or "the base round trip is not known"
