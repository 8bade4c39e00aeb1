# SPDX-License-Identifier: Apache-2.0
"""Write the twin of a recorded flow: a profile that reproduces its path, its ends and its size.

Each number has a comment with how it was estimated and its interval; what stays open is in ``unknown:`` with a grid.
The profile holds no address, no file name and no payload.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from howdah.errors import HowdahError
from howdah.explain.course import capture_points
from howdah.explain.estimate import Estimate
from howdah.explain.explained import Explained
from howdah.explain.loss import RANDOM
from howdah.explain.overlay import ALIKE
from howdah.explain.startup import GROWING
from howdah.frame import IP_AND_TCP_BYTES, STAMPED_TCP_BYTES, TIME_STAMP_BYTES, frame_bytes
from howdah.held import RECEIVE_WINDOW, HeldBy
from howdah.measure.cause import ACK_TRAIN, DELAY, LOSS, UNKNOWN
from howdah.measure.limit import APPLICATION
from howdah.number import counted, duration, rate, rounded, significant
from howdah.profile.draft import align_comment
from howdah.profile.link import LEAST_RATE
from howdah.quantity import bdp_bytes
from howdah.report.table import cause_text

_LEAST_DURATION_S, _MOST_DURATION_S = 2.0, 60.0  # of the twin's run
_MOST_SIZE_BYTES = 400_000_000  # of the twin's transfer
_FEW_PACKETS = 32  # buffers of fewer packets are written in packets
_LEAST_LATER_S, _MOST_LATER_S = 0.001, 10.0  # time that earlier flows run before the twin's flow starts
_WINDOW_SHARE = 0.6285  # window as a share of tcp_rmem, for full segments: tcp_win_from_space() with 1448 of 2304 bytes
_USUAL_WINDOW_BYTES = 81_920  # what a receive buffer of 131 072 bytes offers
_LEAST_BUFFER_BYTES = 4500  # smallest buffer to try
_STRETCHED = 4.0  # segments per ACK from which on the receiver stretches ACKs
_INITIAL_WINDOW = 10  # the kernel's, in segments


@dataclass(frozen=True)
class _Unknown:
    """A field that the recording leaves open, with the values to try; ``what`` says why it is open."""

    name: str
    what: str
    field: str
    values: list[str]


@dataclass
class _Twin:
    path: list[str] = field(default_factory=list)
    rest: list[str] = field(default_factory=list)
    flow: list[str] = field(default_factory=list)
    host: list[str] = field(default_factory=list)
    unknown: list[_Unknown] = field(default_factory=list)

    def sections(self, background: list[str]) -> list[str]:
        lines = ["path:", *(f"  {line}" for line in self.path), "", *self.rest]
        if self.flow:
            lines += ["flows:", f"  - {self.flow[0]}", *(f"    {line}" for line in self.flow[1:])]
        lines += background
        if self.host:
            lines += ["host:", *(f"  {line}" for line in self.host)]
        if self.unknown:
            lines += [
                "",
                "# What the recording leaves open; --unknowns runs every combination.",
                "unknown:",
                "  fields:",
            ]
        for each in self.unknown:
            lines += [f"    {each.name}:", f"      what: {_plain(each.what)}", f"      field: {each.field}"]
            lines += [f"      values: [{', '.join(each.values)}]"]
        return lines


def twin_text(flow: Explained, name: str, recorded: Sequence[Explained] = ()) -> str:
    """Return the profile as YAML; ``recorded`` are the flows of the recording, some of which may have competed with
    ``flow``.

    Raise HowdahError if the recording has no round trip.
    """
    if flow.base_rtt_us.value is None:
        what = f"the recording does not tell the base round trip: {flow.base_rtt_us.reason}"
        raise HowdahError(what, hint="A capture at the sender tells it, or one with the handshake.")
    duration_s = min(max(flow.duration_s, _LEAST_DURATION_S), _MOST_DURATION_S)
    beside, elsewhere = competitors(flow, recorded)
    earlier_s = min(max((-each.start_s for each in beside), default=0.0), _MOST_LATER_S)
    later_s = earlier_s if earlier_s > _LEAST_LATER_S else 0.0
    twin = _Twin()
    _add_path(twin, flow)
    _add_ends(twin, flow)
    if later_s:
        twin.flow.append(f"start: {round(later_s * 1e3)} ms # others were there before it")
    _add_size(twin, flow, duration_s, later_s)
    lines = [
        "# The twin of a recorded transfer: howdah wrote it, each number with how it was estimated.",
        "# It holds no address, no name and no payload of the recording.",
        "howdah: 1",
        f"name: {name} # results go to runs/{name}",
        f"description: {_description(flow)}",
        "",
        *twin.sections(_background(beside, elsewhere, later_s)),
        "",
        "collect:",
        "  tcp_info: 20 ms",
        "  qdisc: 20 ms",
        "",
        *claim_lines(flow, duration_s, alone=not beside),
        *recorded_lines(flow),
    ]
    return "\n".join(align_comment(line) for line in lines) + "\n"


def _description(flow: Explained) -> str:
    ended = "left slow start" if flow.exit is not None else "did not leave slow start"
    return f"The twin of a recorded flow that {ended}"


def _add_path(twin: _Twin, flow: Explained) -> None:
    rtt = flow.base_rtt_us
    assert rtt.value is not None
    rate = _rate(twin, flow)
    twin.path.append(f"rate: {_plain_number(rate / 1e6)} Mbit/s # {_found(flow.rate_bits_per_second, 1e-6, 'Mbit/s')}")
    twin.path.append(f"rtt: {_whole_us(rtt.value)} ms # {_found(rtt, 1e-3, 'ms')}")
    _add_buffer(twin, flow, bdp_bytes(rate, rtt.value))
    if flow.mss_bytes is not None and (mtu := _mtu(flow)) != 1500:
        twin.path.append(f"mtu: {mtu} # segments of {flow.mss_bytes} bytes")
    interface = flow.sender_interface_bits_per_second
    if interface.value is not None and not 0.9e9 < interface.value < 1.1e9:
        value = _plain_number(max(interface.value, rate) / 1e6)
        twin.path.append(f"sender_interface: {value} Mbit/s # {_found(interface, 1e-6, 'Mbit/s')}")
    _add_delay_variation(twin, flow.delay_variation_us, rtt.value)
    _add_losses(twin, flow)


def _add_buffer(twin: _Twin, flow: Explained, bdp: float) -> None:
    buffer = flow.buffer_bytes
    if buffer.value is not None:
        twin.path.append(f"buffer: {_buffer(flow, buffer.value)} # {_found(buffer, 1e-3, 'kB')}")
        return
    least = max(buffer.low or 0.0, _LEAST_BUFFER_BYTES)
    default = max(bdp, 1.2 * least)
    values = [f"{round(each)} B" for each in (max(1.05 * least, bdp / 4), 2 * default, 4 * default)]
    twin.path.append(f"buffer: {round(default)} B # open: {_reason(buffer)}")
    twin.unknown.append(_Unknown("buffer", f"the buffer does not show: {_reason(buffer)}", "path.buffer", values))


def _add_delay_variation(twin: _Twin, varies: Estimate, rtt_us: float) -> None:
    if not varies.value:
        return
    twin.path += [
        f"delay_variation: # uniform, {_found(varies, 1e-3, 'ms')}",
        "  distribution: uniform",
        f"  amplitude: {_whole_us(varies.value)} ms",
        f"  correlation_time: {_whole_us(rtt_us)} ms # open; a round trip",
        "  interval: 2 ms",
        "  direction: forward # open",
        "  source: The recording",
    ]


def _add_losses(twin: _Twin, flow: Explained) -> None:
    if flow.policer is not None:
        policed = f"{_plain_number(flow.policer.rate_bits_per_second / 1e6, 6)} Mbit/s"
        burst = _plain_number(flow.policer.burst_bytes / 1e3, 5)
        twin.path.append(f"policer: {{rate: {policed}, burst: {burst} kB}} # {_plain(flow.loss_words)}")
    again = flow.retransmitted_packets or 0
    if not flow.mss_bytes or not again:
        return
    segments = max(flow.data_bytes / flow.mss_bytes, 1.0)
    lost = again - (flow.spurious_packets or 0)
    if lost > 0 and flow.loss_by is None:
        percent = _plain_number(100 * lost / segments, 3)
        what = f"what dropped {counted(lost, 'segment')} does not show, {flow.loss_words}"
        twin.unknown.append(_Unknown("loss", what, "path.loss", [f"{percent} %"]))
    if flow.loss_by == RANDOM:
        share = again / segments
        error = share / math.sqrt(again)
        twin.path.append(
            f"loss: {_plain_number(100 * share, 3)} % # {again} segments; "
            f"+-{_plain_number(100 * error, 2)} %; {flow.loss_words}"
        )


def _buffer(flow: Explained, value: float) -> str:
    """Write a small buffer in whole packets, because a part of a frame holds none."""
    frame = frame_bytes((flow.mss_bytes or 1448) + STAMPED_TCP_BYTES)
    packets = max(round(value / frame), 1)
    return f"{packets} packets" if packets < _FEW_PACKETS else f"{round(value)} B"


def _rate(twin: _Twin, flow: Explained) -> float:
    rate = flow.rate_bits_per_second
    if rate.value is not None:
        return rate.value
    least = max(rate.low or 0.0, flow.goodput_bits_per_second, 100_000.0)
    values = [f"{_plain_number(least * by / 1e6)} Mbit/s" for by in (1.05, 4.0, 10.0)]
    twin.unknown.append(_Unknown("rate", f"the path's rate does not show: {_reason(rate)}", "path.rate", values))
    return 2 * least


def _mtu(flow: Explained) -> int:
    said = flow.options.get("sender")
    stamps = said.time_stamps if said is not None else True
    assert flow.mss_bytes is not None
    return min(max(flow.mss_bytes + IP_AND_TCP_BYTES + TIME_STAMP_BYTES * stamps, 576), 9000)


def _add_ends(twin: _Twin, flow: Explained) -> None:
    first, *others = flow.algorithm or ["cubic", "reno", "bbr"]
    twin.rest.append(f"algorithm: {first} # {flow.algorithm_words}")
    if others:
        what = f"the algorithm does not show: {flow.algorithm_words}"
        twin.unknown.append(_Unknown("algorithm", what, "algorithm", others))
    ratio = flow.segments_per_ack
    if ratio is not None and ratio > _STRETCHED:
        twin.rest.append(f"receiver: stretch-ack # {significant(ratio, 3)} segments for an ACK")
    window = flow.initial_window_packets
    if window is not None and window != _INITIAL_WINDOW and window <= 1000:
        twin.flow.append(f"initial_window: {window} # segments before the first ACK")
    limited = flow.held_back_by in RECEIVE_WINDOW or flow.limit == "receive-window"
    most = flow.holding.window_bytes if flow.holding is not None else None
    if limited and most:
        space = max(round((most - 4096) / _WINDOW_SHARE), 4608)
        begin = 131_072 if most >= _USUAL_WINDOW_BYTES and flow.held_back_by is not HeldBy.HANDSHAKE_WINDOW else space
        begin = min(begin, space) if most < _USUAL_WINDOW_BYTES else begin
        twin.host.append(f"tcp_rmem: 4096 {begin} {max(space, begin)} # a window of {most} bytes held it back")


def _add_size(twin: _Twin, flow: Explained, duration_s: float, later_s: float) -> None:
    ended = flow.limit == "application" and flow.exit is None
    size = min(flow.data_bytes, _MOST_SIZE_BYTES)
    if ended:
        pieces = ", piece by piece; the twin writes it at once" if flow.held_back_by is HeldBy.APPLICATION else ""
        twin.flow.append(f"size: {size} B # what was transferred{pieces}")
    before = f", and {round(later_s * 1e3)} ms before it" if later_s else ""
    twin.rest.append(f"duration: {_plain_number(duration_s + later_s, 3)} s # as long as it was recorded{before}")
    twin.rest.append("repetitions: 1 # one run is the path as it is")


def _background(beside: list[Competitor], elsewhere: int, later_s: float) -> list[str]:
    """The flows that competed with the flow, which itself starts at ``later_s``. No claim is made about them."""
    lines = ["background: # flows between the same hosts, the same way, at the same time"] if beside else []
    for each in beside:
        algorithm = each.flow.algorithm[0] if each.flow.algorithm else "cubic"
        start_s = each.start_s + later_s
        told = [f"start: {max(round(start_s * 1e3), 0)} ms", f"algorithm: {algorithm}"]
        told += [f"size: {min(each.flow.data_bytes, _MOST_SIZE_BYTES)} B"] if each.ended else []
        before = f" # open: it began {-start_s:.1f} s before" if start_s < -_LEAST_LATER_S else ""
        lines.append(f"  - {{{', '.join(told)}}}{before}")
    if elsewhere:
        lines.append(
            f"# open: {counted(elsewhere, 'flow')} between other hosts at the same time; did they share the path?"
        )
    return lines


def _found(found: Estimate, by: float, unit: str) -> str:
    if found.value is None:
        least = f"at least {_plain_number((found.low or 0) * by)} {unit}; " if found.low else ""
        return f"open: {least}{_reason(found)}"
    if found.low is None or found.high is None:
        return found.how
    return f"{_plain_number(found.low * by)} ... {_plain_number(found.high * by)} {unit}; {found.how}"


def _reason(found: Estimate) -> str:
    return _plain(found.reason)


def _plain(text: str) -> str:
    """Remove what YAML would read as more than text."""
    return text.replace(": ", ", ").replace(" #", "")


def _whole_us(value_us: float) -> str:
    return f"{round(value_us) / 1000:g}" if round(value_us) >= 1 else "0.001"


def _plain_number(value: float, digits: int = 4) -> str:
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


_WINDOW_LIKE = 1.4  # factor for exit windows: equal paths differ by less, one round of growth is a factor of 2


def claim_lines(flow: Explained, duration_s: float, *, alone: bool) -> list[str]:
    """The claims section, about the first ``duration_s``, which is the twin's. A flow that is not ``alone`` gets a
    share of the path that depends on chance, so nothing is claimed about its goodput."""
    lines: list[str] = []
    leaves = flow.exit
    is_timed = "time" not in flow.unknown
    if leaves is not None and is_timed and 0 < leaves.time_s < duration_s and flow.base_rtt_us.value is not None:
        trips = flow.parts[1] if flow.parts is not None else None
        queue_ns = int(trips.queue_ns.max()) if trips is not None and trips.queue_ns.size else 0
        round_trip_us = flow.base_rtt_us.value + queue_ns / 1e3
        least, most = (max(1e6 * leaves.time_s + sign * round_trip_us, 1) for sign in (-1, 1))
        lines += _claim(
            "exit-time",
            f"The flow leaves slow start within one round trip of {duration(1e6 * leaves.time_s)}.",
            "exit_time_s",
            f"{{between: [{round(least)} us, {round(most)} us]}}",
        )
        if leaves.cause not in (None, UNKNOWN):
            says = f"The flow leaves slow start by {cause_text(leaves.cause)}."
            lines += _claim("exit-cause", says, "exit_cause", f"{{is: {leaves.cause}}}")
        if leaves.cause in (ACK_TRAIN, DELAY, LOSS) and flow.limit is None and leaves.packets.value:
            packets = leaves.packets.value
            least, most = packets / _WINDOW_LIKE, packets * _WINDOW_LIKE
            says = f"The flow leaves slow start with {packets:.0f} packets, within a factor of {_WINDOW_LIKE}."
            lines += _claim("exit-window", says, "exit_cwnd_packets", f"{{between: [{least:.4g}, {most:.4g}]}}")
    as_long = flow.duration_s == duration_s and alone
    if flow.goodput_bits_per_second >= LEAST_RATE and as_long and not (flow.limit == "application" and leaves is None):
        lines += _claim(
            "goodput",
            f"The flow carries {rate(flow.goodput_bits_per_second)}.",
            "goodput_bits_per_second",
            f"{{equals: {round(flow.goodput_bits_per_second)} bit/s, within: {100 * ALIKE:g} %}}",
        )
    if not lines:
        return []
    return ["# What the recorded flow did, for 'howdah bisect' and 'howdah nightly'.", "claims:", *lines, ""]


def _claim(name: str, says: str, metric: str, expect: str) -> list[str]:
    value = f"    value: {{metric: {metric}, flow: 1}}"
    return [f"  - id: {name}", f"    says: {says}", "    source: the recording", value, f"    expect: {expect}"]


_MOST_COMPETITORS = 8
_LEAST_SHARE = 0.02  # share of the recorded flow's bytes: flows with less do not count


@dataclass(frozen=True)
class Competitor:
    """A flow that shared the path. ``start_s`` counts from the first packet of the recorded flow and is negative if
    this one began earlier. ``ended``: it ended first."""

    flow: Explained
    start_s: float
    ended: bool


def competitors(flow: Explained, flows: Sequence[Explained]) -> tuple[list[Competitor], int]:
    """Return those of ``flows`` that shared the path of ``flow`` at the same time, the largest first; and how many more
    flows of that size ran between other hosts."""
    if flow.begins_s is None or flow.hosts is None:
        return [], 0
    names, found, elsewhere = {flow.name}, [], 0
    for each in sorted(flows, key=lambda other: -other.data_bytes):
        if each.begins_s is None or each.file != flow.file or each.name in names:
            continue
        start_s = each.begins_s - flow.begins_s
        overlaps = start_s < flow.duration_s and start_s + each.duration_s > 0
        if not overlaps or each.data_bytes < _LEAST_SHARE * flow.data_bytes:
            continue
        names.add(each.name)  # two taps may have recorded it
        if each.hosts == flow.hosts:
            found.append(Competitor(each, start_s, start_s + each.duration_s < flow.duration_s))
        else:
            elsewhere += 1
    return found[:_MOST_COMPETITORS], elsewhere


_WIDTH = 116  # columns of wrapped lists


def recorded_lines(flow: Explained) -> list[str]:
    lines = ["# What the recording shows; 'howdah run' lays it over what the twin does.", "recorded:"]
    if flow.goodput_bits_per_second >= LEAST_RATE:
        lines.append(f"  goodput: {round(flow.goodput_bits_per_second)} bit/s")
    if flow.retransmitted_packets is not None:
        lines.append(f"  retransmitted_packets: {flow.retransmitted_packets}")
    if flow.held_back_by is not None:
        lines.append(f"  held_back_by: {flow.held_back_by.value}")
    leaves = flow.exit
    if leaves is not None and leaves.packets.value is not None and leaves.time_s > 0:
        parts = [f"time: {max(round(leaves.time_s * 1e6), 1)} us", f"packets: {rounded(leaves.packets.value, 5)}"]
        parts += [f"round: {leaves.round}"] if leaves.round is not None else []
        parts += [f"cause: {leaves.cause}"] if leaves.cause is not None else []
        lines.append(f"  exit: {{{', '.join(parts)}}}")
    elif leaves is None and (flow.limit == APPLICATION or flow.why_no_exit == GROWING):
        lines.append("  startup_left: false")
    if flow.parts is not None:
        seen, trips, course, _ = flow.parts
        points = capture_points(seen, trips, course)
        if points is not None and points.time_s.size > 1:
            lines.append("  course:")
            lines += _list("time_ms", points.time_s * 1e3)
            lines += _list("in_flight_packets", points.in_flight_packets)
            lines += _list("acknowledged_kb", points.acknowledged_bytes / 1e3)
            lines += _list("rtt_ms", points.rtt_s * 1e3)
    return lines if len(lines) > 2 else []


def _list(name: str, values: Iterable[float]) -> list[str]:
    text = ", ".join(str(rounded(round(float(value), 3), 5)) for value in values)
    return [f"    {name}:", *textwrap.wrap(f"[{text}]", _WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 7)]
