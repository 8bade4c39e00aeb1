# SPDX-License-Identifier: Apache-2.0
"""Explained flows as text for a terminal, a sentence and the numbers with their intervals; and the models of ``howdah
explain --json``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pydantic import Field

from howdah.explain.bucket import Bucket
from howdah.explain.connection import Options
from howdah.explain.delay import MIDDLE, RECEIVER, SENDER
from howdah.explain.estimate import Estimate
from howdah.explain.explained import Explained, FlowFacts
from howdah.explain.joined import Joined, Leg, leg_rows
from howdah.explain.loss import LossBy
from howdah.explain.sender_log import STAYED
from howdah.explain.startup import BEYOND, GROWING
from howdah.held import NOTABLE_SHARE, held_words
from howdah.ingest.capture import MOST_SCALE
from howdah.measure.cause import UNKNOWN
from howdah.number import counted, delay, duration, rate, significant, size
from howdah.record.model import FilePart
from howdah.report.table import cause_text

_TAPS = {SENDER: "at the sender", RECEIVER: "at the receiver", MIDDLE: "between sender and receiver"}
_NAME_WIDTH = 18  # columns of the names


def sentence(flow: Explained) -> str:
    """Say where the start-up ended and why, what was lost, and what held the flow back."""
    parts = [_exit_words(flow)]
    if flow.retransmitted_packets:
        parts.append(f"retransmitted {counted(flow.retransmitted_packets, 'packet')}")
    said = " and ".join(parts) + "."
    held = _held_back_words(flow)
    return f"{said} {held[0].upper()}{held[1:]}." if held else said


def _exit_words(flow: Explained) -> str:
    leaves = flow.exit
    if leaves is None:
        stayed = flow.limit is not None or flow.why_no_exit in (GROWING, STAYED, BEYOND)
        said = "The flow did not leave its start-up" if stayed else "Where the flow left its start-up does not show"
        return f"{said}: {flow.why_no_exit}"
    bdp = flow.bdp_packets
    share = f" ({significant(leaves.packets.value / bdp, 3)} BDP)" if bdp and leaves.packets.value else ""
    phase = "start-up" if leaves.cause == "bbr-drain" else "slow start"
    when = f"before reading {round(leaves.time_s) + 1}" if "time" in flow.unknown else None
    where = f"The flow left {phase} {when or f'after {duration(leaves.time_s * 1e6)}'} at "
    where += f"{significant(leaves.packets.value or 0, 3)} packets{share}"
    if leaves.cause in (None, UNKNOWN):
        return f"{where}; why does not show"
    return f"{where} by {cause_text(str(leaves.cause))}"


def _held_back_words(flow: Explained) -> str:
    kind, holding = flow.held_back_by, flow.holding
    if kind is None or holding is None or holding.share(kind) <= NOTABLE_SHARE:
        return ""
    window = float(holding.window_bytes) if holding.window_bytes is not None else None
    return held_words(kind, holding.share(kind), {"held_window_bytes": window})


def text(flows: list[Explained], problems: list[str], others: int, joined: list[Joined]) -> str:
    lines = [f"caution: {problem}" for problem in problems]
    for flow in flows:
        lines += ["", f"{flow.name}  ({flow.file})", sentence(flow)]
        lines += [f"  {name:<{_NAME_WIDTH}} {value}" for name, value in rows(flow)]
    for each in joined:
        for leg in each.legs:
            lines += ["", f"{each.name}  from {leg.near} to {leg.far}"]
            lines += [f"  {name:<{_NAME_WIDTH}} {value}" for name, value in leg_rows(leg)]
    if others:
        lines += ["", f"{counted(others, 'further connection')} with less data: --flows N shows more"]
    return "\n".join(line for number, line in enumerate(lines) if line or number) + "\n"


def rows(flow: Explained) -> Iterator[tuple[str, str]]:
    yield ("recorded", _TAPS.get(flow.at or "", "somewhere on the path") if flow.source == "capture" else flow.source)
    options = [f"{side} {_options(said)}" for side, said in flow.options.items() if said is not None]
    if options:
        yield ("options", "; ".join(options))
    yield ("base RTT", _estimate(flow.base_rtt_us, delay))
    yield ("rate of the path", _estimate(flow.rate_bits_per_second, rate))
    yield ("buffer", _estimate(flow.buffer_bytes, size))
    if flow.delay_variation_us.value:
        yield ("delay varies by", _estimate(flow.delay_variation_us, delay))
    if flow.source == "capture":
        yield ("sender's interface", _estimate(flow.sender_interface_bits_per_second, rate))
    if flow.round_flights_packets:
        rounds = " ".join(significant(each, 3) for each in flow.round_flights_packets[:12])
        yield ("in flight by round", f"{rounds} packets")
    if flow.exit is not None:
        where = f"round {flow.exit.round + 1}: " if flow.exit.round is not None else ""
        yield ("exit", f"{where}{flow.exit.evidence}")
    if flow.overshoot_packets.known:
        yield ("overshoot", _estimate(flow.overshoot_packets, lambda value: f"{significant(value, 3)} packets"))
    if flow.retransmitted_packets is not None:
        yield ("losses", _losses(flow))
    if flow.receive_window_most_bytes is not None:
        least = flow.receive_window_least_bytes or flow.receive_window_most_bytes
        ends = dict.fromkeys((size(least), size(flow.receive_window_most_bytes)))  # one if both print alike
        yield ("receive window", " … ".join(ends))
    if flow.segments_per_ack is not None:
        yield ("segments per ACK", significant(flow.segments_per_ack, 3))
    if flow.algorithm:
        yield ("algorithm", f"{' or '.join(flow.algorithm)}: {flow.algorithm_words}")
    if flow.duration_s > 0:
        yield ("goodput", f"{rate(flow.goodput_bits_per_second)} over {duration(flow.duration_s * 1e6)}")
    if flow.holding is not None:
        shares = sorted(((flow.holding.share(kind), kind) for kind in flow.holding.seconds), reverse=True)
        yield (
            "held back by",
            ", ".join(f"{kind.words} {significant(100 * share, 2)} %" for share, kind in shares if share > 0.005),
        )
    for name, why in flow.unknown.items():
        yield ("not known", f"{name}: {why}")
    for note in flow.notes:
        yield ("note", note)


def _options(said: Options) -> str:
    parts = [f"MSS {said.mss_bytes}" if said.mss_bytes is not None else "no MSS"]
    scale = f"window scale {said.scale}" if said.scale is not None else "no window scale"
    parts.append(scale + (f" (taken for {MOST_SCALE})" if (said.scale or 0) > MOST_SCALE else ""))
    parts += ["SACK"] * said.sack_permitted + ["time stamps"] * said.time_stamps
    return ", ".join(parts)


def _losses(flow: Explained) -> str:
    found = f"{counted(flow.retransmitted_packets or 0, 'segment')} sent again"
    if flow.spurious_packets:
        found += f", {flow.spurious_packets} of them for nothing"
    if flow.late_packets:
        found += f"; {counted(flow.late_packets, 'segment')} overtaken, not lost"
    if flow.lost_before_packets and flow.at != SENDER:
        found += f"; {counted(flow.lost_before_packets, 'packet')} lost before the tap"
    if flow.timeouts:
        found += f"; {counted(flow.timeouts, 'timeout')}"
    return f"{found}: {flow.loss_words}" if flow.loss_words else found


def _estimate(found: Estimate, show: Callable[[float], str]) -> str:
    if found.value is None:
        least = f"at least {show(found.low)}; " if found.low is not None else ""
        return f"not known: {least}{found.reason}"
    span = ""
    if found.low is not None and found.high is not None:
        span = f" ({show(found.low)} … {show(found.high)})"
    return f"{show(found.value)}{span}" + (f": {found.how}" if found.how else "")


class EstimateShape(FilePart):
    value: float | None = Field(description="null where the recording cannot tell; 'reason' says why")
    low: float | None = Field(description="null: open")
    high: float | None
    how: str | None
    reason: str | None


class ExplainedExitShape(FilePart):
    time_s: float = Field(description="since the first packet, at the sender")
    packets: EstimateShape
    round: int | None
    cause: str | None = Field(description="as exit_cause of metrics.json; null where nothing tells")
    evidence: str


class PolicerShape(FilePart):
    rate_bits_per_second: float
    burst_bytes: float


class ExplainedFlow(FlowFacts):
    """One flow of a recording; docs/explain.md."""

    base_rtt_us: EstimateShape
    rate_bits_per_second: EstimateShape
    sender_interface_bits_per_second: EstimateShape
    buffer_bytes: EstimateShape
    delay_variation_us: EstimateShape
    peak_packets: EstimateShape
    overshoot_packets: EstimateShape
    policer: PolicerShape | None
    options: dict[str, Options | None]
    exit: ExplainedExitShape | None
    held: dict[str, float] | None = Field(description="held_*_share of docs/measures.md")
    held_back_by: str | None
    held_window_bytes: float | None


class LegShape(FilePart):
    """The path between two neighbouring taps, in the direction of the data."""

    near: str = Field(description="the file of the tap nearer to the sender")
    far: str
    packets: int = Field(description="that the near tap saw; offloaded segments count as what they hold")
    lost_packets: int = Field(description="that the far tap did not see, and that were sent again")
    unseen_packets: int = Field(description="that the far capture lacks though they arrived")
    acks: int | None
    lost_acks: int | None
    loss_by: LossBy | None
    loss_words: str
    policer: PolicerShape | None
    queue_most_us: float = Field(description="the largest one-way delay of the data beyond the least")
    queue_back_most_us: float | None
    one_way_us: EstimateShape
    clock_offset_us: EstimateShape = Field(description="the far clock less the near one")
    clock_skew_ppm: EstimateShape


class JoinedShape(FilePart):
    """A connection that several taps saw, with its files in order from the sender."""

    name: str
    files: list[str]
    legs: list[LegShape]


def shown_flow(flow: Explained) -> ExplainedFlow:
    holding, held_by = flow.holding, flow.held_back_by
    found = {name: getattr(flow, name) for name in ExplainedFlow.model_fields if hasattr(flow, name)}
    return ExplainedFlow.made_of(
        flow,
        **{name: _estimate_shape(value) for name, value in found.items() if isinstance(value, Estimate)},
        policer=_policer_shape(flow.policer),
        exit=None
        if flow.exit is None
        else ExplainedExitShape.made_of(flow.exit, packets=_estimate_shape(flow.exit.packets)),
        held=None if holding is None else {kind.metric: holding.share(kind) for kind in holding.seconds},
        held_back_by=None if held_by is None else held_by.value,
        held_window_bytes=None if holding is None else holding.window_bytes,
    )


def _estimate_shape(found: Estimate, per: float = 1.0) -> EstimateShape:
    value, low, high = (None if each is None else each / per for each in (found.value, found.low, found.high))
    return EstimateShape(value=value, low=low, high=high, how=found.how or None, reason=found.reason or None)


def shown_joined(joined: Joined) -> JoinedShape:
    return JoinedShape.made_of(joined, legs=[_leg_shape(leg) for leg in joined.legs])


def _leg_shape(leg: Leg) -> LegShape:
    clocks = leg.clocks
    return LegShape.made_of(
        leg,
        packets=int(leg.data.near_ns.size),
        lost_packets=leg.lost,
        unseen_packets=leg.data.unseen,
        acks=int(leg.acks.near_ns.size) if leg.acks is not None else None,
        lost_acks=leg.acks_lost,
        policer=_policer_shape(leg.bucket),
        queue_most_us=float(clocks.data_ns.max()) / 1e3,
        queue_back_most_us=float(clocks.ack_ns.max()) / 1e3 if clocks.ack_ns.size else None,
        one_way_us=_estimate_shape(clocks.data_least_ns, 1e3),
        clock_offset_us=_estimate_shape(clocks.offset_ns, 1e3),
        clock_skew_ppm=_estimate_shape(clocks.skew_ppm),
    )


def _policer_shape(bucket: Bucket | None) -> PolicerShape | None:
    return None if bucket is None else PolicerShape.made_of(bucket)
