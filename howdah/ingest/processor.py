# SPDX-License-Identifier: Apache-2.0
"""Ingest processor.bin into the table ``processor``: what the hosts' processors did, from RTM_NEWQDISC.

Layout: struct tcmsg, TCA_KIND and, in TCA_STATS2, TCA_STATS_APP: struct processor_stats of
modules/processor/processor.h.
"""

from __future__ import annotations

import pyarrow as pa

from howdah.hooks import Reader
from howdah.ingest.qdisc import ingest_own
from howdah.ingest.source import Context, SourceReport
from howdah.linux.netlink.discipline.howdah_cpu import HostProcessor
from howdah.record.schema import TEXT

# From when the processor was made; all columns of a row are of one instant.
SCHEMA = pa.schema(
    [
        ("node", TEXT),
        ("time_ns", pa.int64()),
        ("arrived_packets", pa.int64()),  # = served + dropped + waiting
        ("served_packets", pa.int64()),
        ("dropped_packets", pa.int64()),  # at a full queue
        ("waiting_packets", pa.int64()),  # with the one in service
        ("begun_packets", pa.int64()),  # served, and the one in service
        ("acks_packets", pa.int64()),  # without data, of those begun
        ("searched_packets", pa.int64()),  # passed in searches for those begun
        ("cost_ns", pa.int64()),  # of those begun
        ("busy_ns", pa.int64()),  # what of it is done
        ("rests", pa.int64()),  # times that nothing was left to do
    ]
)


def ingest_processor(context: Context) -> tuple[pa.Table, SourceReport]:
    """Make the table: one row per reading and host."""
    return ingest_own(context, "processor", HostProcessor, "processor", tuple(SCHEMA.names[2:]))


# howdah/judge/host_processor.py says what must be there of it.
READER = Reader(SCHEMA, ingest_processor, must_have_rows=lambda _plan: False, whole_run=False)
