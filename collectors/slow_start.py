# SPDX-License-Identifier: Apache-2.0
"""The howdah:slow_start tracepoint: decisions that the slow-start modules report."""

from __future__ import annotations

from collectors.collector import Surroundings
from collectors.tracepoint import TracepointCollector

# Holds some 40 000 events; a flow has hundreds at most. A lost event makes a run invalid.
BUFFER_BYTES = 4 << 20


class SlowStartCollector(TracepointCollector):
    """Fields: addresses and ports, ``event`` and ``reason`` (modules/include/slow_start_event.h), ``cwnd`` and
    ``ssthresh`` (packets), ``quantity`` and ``threshold`` (units by reason), ``round``, ``min_rtt_us``, ``mstamp_us``
    (tcp_mstamp), ``cookie``. A record is the state at the event. All are read at the end: a read that finds a record
    reads the clock, which moves virtual time by a step of 256 ns, and an ACK with it. Runs if the module
    howdah_slow_start is loaded. Becomes the table ``slow_start``.
    """

    name = "slow_start"
    event = "howdah/slow_start"
    account = "slow_start.json"
    record_bytes = 96  # actual size: 72

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings, BUFFER_BYTES)
        self.interval_ns = 0
