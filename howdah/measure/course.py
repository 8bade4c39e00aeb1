# SPDX-License-Identifier: Apache-2.0
"""Rows of a flow's start-up besides its exit: growth, early downloads, decision against capacity, period of its RTT."""

from __future__ import annotations

import numpy as np

from howdah.measure.capacity import FairCapacity, share_of_bdp
from howdah.measure.exit import Decision, Exit
from howdah.measure.exit_rows import NO_ACKS, Startup
from howdah.measure.measured import Measured
from howdah.measure.queue import backlog_bytes
from howdah.measure.rounds import raw_rtt, rounds, sent_once
from howdah.measure.row import Sheet
from howdah.measure.sampled import Samples
from howdah.measure.throughput import completion_time_s, time_to_share_s
from howdah.measure.trace import SECOND_NS, FlowTrace, Integers, Reals
from howdah.plan.path import Path


def course_rows(
    sheet: Sheet,
    data: Measured,
    trace: FlowTrace,
    startup: Startup,
    goodput_bits_per_second: float | None,
    window_end_ns: int,
) -> None:
    """Add all rows; goodput and end are those of the profile's measurement window, as far as the flow is active."""
    path = data.plan.path
    growth_rows(sheet, path, data.capacity, trace, startup.exit, window_end_ns)
    download_rows(sheet, path, trace, goodput_bits_per_second)
    crossing_rows(sheet, trace, data.capacity, startup.decision, startup.why)
    exit_queue_row(sheet, trace, data.bottleneck, startup.decision, startup.why)
    period_rows(sheet, trace, data.info[trace.flow.id])


def delivery_share(trace: FlowTrace, capacity: FairCapacity, at_ns: int) -> float | None:
    """Return bytes acknowledged in the last RTT window before ``at_ns`` over what the path can carry in it; a ratio.

    The window is the smoothed RTT of that moment, at least the path's own. None before the first ACK, and if the path
    carries nothing in the window.
    """
    record = int(np.searchsorted(trace.time_ns, at_ns, side="right")) - 1
    if record < 0:
        return None
    begin = at_ns - int(trace.window_ns[record])
    carried = capacity.whole_bytes(begin, at_ns)
    return float(trace.acked_bytes(at_ns) - trace.acked_bytes(begin)) / carried if carried else None


def crossing_rows(
    sheet: Sheet, trace: FlowTrace, capacity: FairCapacity, decision: Decision | None, no_exit: str
) -> None:
    """Add ``exit_delivery_share`` and ``exit_after_capacity_rtts``.

    The second is the time from the beginning of the first RTT window with 90 % of the fair capacity to the decision, in
    round trips of the path. It is negative for a flow that left before the path was full. (SEARCH slides: "crosses the
    threshold near capacity", "detects the congestion point in less than 2 RTTs".)
    """
    flow = trace.flow
    at_ns = None if decision is None else decision.time_ns
    share = None if at_ns is None else delivery_share(trace, capacity, at_ns)
    why = no_exit or "no ACK before, or a path that carried nothing"
    sheet.add(flow, "exit_delivery_share", share, why)
    full_s = time_to_share_s(trace, capacity) if len(trace) else None
    after = None
    if at_ns is not None and full_s is not None:
        after = ((at_ns - trace.start_ns) / SECOND_NS - full_s) * 1e6 / flow.rtt_us
    why = why if at_ns is None else "no RTT window reached 90 % of the fair capacity"
    sheet.add(flow, "exit_after_capacity_rtts", after, why)


def exit_queue_row(
    sheet: Sheet, trace: FlowTrace, bottleneck: Samples, decision: Decision | None, no_exit: str
) -> None:
    """Add ``exit_queue_bytes``: the bottleneck's backlog, of all flows, at its last reading before the decision."""
    held = None if decision is None else backlog_bytes(bottleneck, decision.time_ns)
    why = no_exit or "the queue was not read before"
    sheet.add(trace.flow, "exit_queue_bytes", held, why)


# Sizes for which the time is measured that a transfer would have taken. The SEARCH slides plot this curve ("time to
# download"); the Adaptive Start paper's introduction is about short connections.
AMOUNTS_BYTES = {"100_kb": 100_000, "1_mb": 1_000_000, "10_mb": 10_000_000}


def packet_throughput(goodput_bits_per_second: float | None, path: Path) -> float | None:
    """Return throughput in whole frames (bit/s): goodput times frame / MSS.

    A simulator's paper that counts packets of 1000 bytes counts their headers too (Adaptive Start paper, section III:
    3.61 of 40 Mbit/s is 9 % there).
    """
    return None if goodput_bits_per_second is None else goodput_bits_per_second * path.frame_bytes / path.mss_bytes


def download_rows(sheet: Sheet, path: Path, trace: FlowTrace, goodput_bits_per_second: float | None) -> None:
    """Add ``packet_throughput_bits_per_second`` and ``time_to_100_kb_s``, ``time_to_1_mb_s``, ``time_to_10_mb_s``."""
    flow = trace.flow
    rate = packet_throughput(goodput_bits_per_second, path)
    why = "the flow was not active in the window" if len(trace) else NO_ACKS
    sheet.add(flow, "packet_throughput_bits_per_second", rate, why)
    for label, amount in AMOUNTS_BYTES.items():
        why = f"fewer than {amount} bytes were acknowledged" if len(trace) else NO_ACKS
        sheet.add(flow, f"time_to_{label}_s", completion_time_s(trace, amount), why)


# Least growth of the window in a round of exponential growth: delayed ACKs without a limit per ACK give 2, with
# RFC 5681's limit of one packet 1.5.
EXPONENTIAL = 1.45


def round_growth(trace: FlowTrace, found: Exit | None) -> float | None:
    """Return the mean factor by which cwnd grew per whole round of slow start; a ratio.

    The n-th root of (cwnd at the beginning of the last round that begins before the exit / cwnd at the beginning of the
    first), n rounds apart. It is 2 if cwnd doubles every round, the root of 2 if it doubles every other one (Adaptive
    Start paper, section III.D, on Vegas). None without an exit or a whole round.
    """
    if found is None or not len(trace):
        return None
    starts = rounds(trace)
    starts = starts[starts < max(found.record, 1)]
    if starts.size < 2:
        return None
    first, last = float(trace.cwnd[starts[0]]), float(trace.cwnd[starts[-1]])
    return float((last / first) ** (1 / (starts.size - 1)))


def exponential_growth_s(trace: FlowTrace) -> float | None:
    """Return the seconds from when the flow could send (from its start if that is unknown) to the end of its first
    consecutive rounds that grew by :data:`EXPONENTIAL` or more. No window grows in a handshake.

    0 if the first round grew less; None without two rounds.
    """
    starts = rounds(trace)
    if starts.size < 2:
        return None
    windows = trace.cwnd[starts].astype(np.float64)
    slow = np.flatnonzero(windows[1:] < EXPONENTIAL * windows[:-1])
    count = int(slow[0]) if slow.size else starts.size - 1
    begin = trace.start_ns if trace.connected_ns is None else trace.connected_ns
    return float(trace.time_ns[starts[count]] - begin) / SECOND_NS if count else 0.0


def final_cwnd(trace: FlowTrace, end_ns: int) -> int | None:
    """Return cwnd at the last ACK not later than ``end_ns``; None before the first one."""
    record = int(np.searchsorted(trace.time_ns, end_ns, side="right")) - 1
    return int(trace.cwnd[record]) if record >= 0 else None


def growth_rows(
    sheet: Sheet, path: Path, capacity: FairCapacity, trace: FlowTrace, found: Exit | None, end_ns: int
) -> None:
    """Add ``round_growth``, ``exponential_growth_s``, and ``final_cwnd_packets`` and ``_bdp`` at ``end_ns``."""
    flow = trace.flow
    why = "there was no whole round before the exit" if len(trace) else NO_ACKS
    sheet.add(flow, "round_growth", round_growth(trace, found), why)
    why = "there were not two rounds" if len(trace) else NO_ACKS
    sheet.add(flow, "exponential_growth_s", exponential_growth_s(trace), why)
    why = "no ACK before the end of the window" if len(trace) else NO_ACKS
    window = final_cwnd(trace, end_ns)
    sheet.add(flow, "final_cwnd_packets", window, why)
    share = share_of_bdp(window, capacity, flow, path, end_ns)
    why = why if window is None else "the link carried nothing in the round trip before"
    sheet.add(flow, "final_cwnd_bdp", share, why)


SAMPLES_PER_RTT = 20
LEAST_RTTS, MOST_RTTS = 1.0, 10.0  # range of periods: a window of SEARCH is some round trips long
_LEAST_SAMPLES = 2 * SAMPLES_PER_RTT * int(MOST_RTTS)  # two of the longest periods


def dominant_period_rtts(time_ns: Integers, rtt_ns: Integers, path_rtt_us: int) -> float | None:
    """Return the period (path round trips) of the highest peak of the RTT's spectrum from :data:`LEAST_RTTS` to
    ``MOST_RTTS``.

    The RTT samples, one per ACK, are put on a grid of 1/20 of the path's RTT (linear between samples), lose their
    linear trend, get a Hann window and are transformed (FFT). A peak is higher than its neighbours. None if the
    spectrum only falls, and for less than twenty round trips of samples.
    """
    if time_ns.size < 2:
        return None
    step_ns = path_rtt_us * 1000 / SAMPLES_PER_RTT
    grid = np.arange(float(time_ns[0]), float(time_ns[-1]), step_ns)
    if grid.size < _LEAST_SAMPLES:
        return None
    value: Reals = np.interp(grid, time_ns.astype(np.float64), rtt_ns.astype(np.float64))
    value = value - np.polyval(np.polyfit(grid - grid[0], value, 1), grid - grid[0])
    power = np.abs(np.fft.rfft(value * np.hanning(grid.size))) ** 2
    cycles_per_rtt = np.fft.rfftfreq(grid.size, 1 / SAMPLES_PER_RTT)
    peak = np.zeros(power.size, dtype=bool)
    peak[1:-1] = (power[1:-1] > power[:-2]) & (power[1:-1] >= power[2:])
    peak &= (cycles_per_rtt >= 1 / MOST_RTTS) & (cycles_per_rtt <= 1 / LEAST_RTTS)
    if not peak.any() or not power.any():
        return None
    best = int(np.argmax(np.where(peak, power, -1.0)))
    return float(1 / cycles_per_rtt[best])


def period_rows(sheet: Sheet, trace: FlowTrace, resent: Samples) -> None:
    """Add ``rtt_period_rtts`` of a flow, from the RTT samples of all bytes that were sent once."""
    rtt, good = raw_rtt(trace)
    good = good & sent_once(trace, resent)
    value = dominant_period_rtts(trace.time_ns[good], rtt[good], trace.flow.rtt_us)
    why = "too few RTT samples, or no peak between 1 and 10 round trips" if len(trace) else NO_ACKS
    sheet.add(trace.flow, "rtt_period_rtts", value, why)
