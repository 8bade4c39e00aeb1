# SPDX-License-Identifier: Apache-2.0
"""The howdah:slow_start tracepoint: what the slow-start modules say of their own decisions."""

from __future__ import annotations

from collectors.collector import Surroundings
from collectors.tracepoint import TracepointCollector

# An algorithm tells of some events a flow, hundreds at worst; this holds some 40 000. A lost one makes a run invalid.
BUFFER_BYTES = 4 << 20


class SlowStartCollector(TracepointCollector):
    """Fields: addresses and ports, ``event`` and ``reason`` (modules/include/slow_start_event.h), ``cwnd`` and
    ``ssthresh`` (packets), ``quantity`` and ``threshold`` (units by reason), ``round``, ``min_rtt_us``, ``mstamp_us``
    (tcp_mstamp), ``cookie``. A record is the state when the event was told. All are read at the end: a read that finds
    one looks at the clock, which moves virtual time by a step of 256 ns, and an ACK with it. Runs where the module
    howdah_slow_start is loaded. Becomes the table ``slow_start``.
    """

    name = "slow_start"
    event = "howdah/slow_start"
    account = "slow_start.json"
    record_bytes = 96  # 72 are used

    def __init__(self, surroundings: Surroundings) -> None:
        super().__init__(surroundings, BUFFER_BYTES)
        self.interval_ns = 0
