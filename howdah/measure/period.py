# SPDX-License-Identifier: Apache-2.0
"""The period with which a path's round-trip time varies most, in round trips (SEARCH slides, choice of the window)."""

from __future__ import annotations

import numpy as np

from howdah.measure.exit_rows import NO_ACKS
from howdah.measure.rounds import raw_rtt
from howdah.measure.row import Sheet
from howdah.measure.trace import FlowTrace, Integers, Reals

SAMPLES_PER_RTT = 20
LEAST_RTTS, MOST_RTTS = 1.0, 10.0  # periods that are looked at: a window of SEARCH is some round trips long
_LEAST_SAMPLES = 2 * SAMPLES_PER_RTT * int(MOST_RTTS)  # two of the longest periods


def dominant_period_rtts(time_ns: Integers, rtt_ns: Integers, path_rtt_us: int) -> float | None:
    """Period (path round trips) of the highest peak of the RTT's spectrum between :data:`LEAST_RTTS` and ``MOST_RTTS``.

    The RTT samples, one an ACK, are put on a grid of 1/20 of the path's RTT (linear between samples), lose their
    linear trend, get a Hann window and are transformed (FFT). A peak is higher than its neighbours; a spectrum that
    only falls has none, and None is returned, as it is for less than twenty round trips of samples.
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


def period_rows(sheet: Sheet, trace: FlowTrace) -> None:
    """``rtt_period_rtts`` of a flow, from all its RTT samples."""
    rtt, good = raw_rtt(trace)
    value = dominant_period_rtts(trace.time_ns[good], rtt[good], trace.flow.rtt_us)
    why = "too few RTT samples, or no peak between 1 and 10 round trips" if len(trace) else NO_ACKS
    sheet.add(trace.flow.id, "rtt_period_rtts", value, "round trips", why, algorithm=trace.flow.algorithm)
