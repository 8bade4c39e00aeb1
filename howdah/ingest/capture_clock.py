# SPDX-License-Identifier: Apache-2.0
"""What the clock of captures is by that of the run: raw/pcap.json has both at two instants."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from howdah.ingest.pcap import ACCOUNT
from howdah.record.raw import raw_value, read_raw_bytes

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CaptureClock:
    """What CLOCK_REALTIME, of captures, is by CLOCK_MONOTONIC, of the run: read at two instants, even in between."""

    realtime_ns: tuple[int, int]
    offset_ns: tuple[int, int]

    def monotonic(self, realtime_ns: Integers) -> Integers:
        (begin, end), (first, last) = self.realtime_ns, self.offset_ns
        gain = (last - first) / (end - begin) if end > begin else 0.0
        moved: Integers = realtime_ns - first - np.rint(gain * (realtime_ns - begin)).astype(np.int64)
        return moved


def read_clock(place: Path) -> CaptureClock | None:
    """Of the kernel whose captures are in ``place``; None where pcap.json is missing, damaged or without clocks, as
    that of older versions is."""
    try:
        first, *_, last = raw_value(read_raw_bytes(place / ACCOUNT))["clocks"]
        realtime = (int(first["realtime_ns"]), int(last["realtime_ns"]))
        monotonic = (int(first["monotonic_ns"]), int(last["monotonic_ns"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return CaptureClock(realtime, (realtime[0] - monotonic[0], realtime[1] - monotonic[1]))
