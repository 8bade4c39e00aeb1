# SPDX-License-Identifier: Apache-2.0
"""Ingest opportunities.bin into the table ``opportunities``: what trace-driven links carried, from RTM_NEWQDISC.

Layout: struct tcmsg, TCA_KIND and, in TCA_STATS2, TCA_STATS_APP: struct link_stats of modules/link/link.h.
"""

from __future__ import annotations

import pyarrow as pa

from howdah.hooks import Reader
from howdah.ingest.qdisc import ingest_own
from howdah.ingest.source import Context, SourceReport
from howdah.linux.netlink.discipline.howdah_link import TraceLink
from howdah.record.schema import TEXT

# From when the trace began; all columns of a row but time_ns are of one instant.
SCHEMA = pa.schema(
    [
        ("node", TEXT),
        ("time_ns", pa.int64()),
        ("began_ns", pa.int64()),  # when the trace began; null before
        ("until_ns", pa.int64()),  # the instant of the row, or when the trace ended
        ("passed", pa.int64()),  # opportunities
        ("used", pa.int64()),  # of them, those that carried something
        ("carried_bytes", pa.int64()),  # as the link counts packets
        ("unused_bytes", pa.int64()),
        ("sent_packets", pa.int64()),  # whose last byte was carried
    ]
)


def ingest_opportunities(context: Context) -> tuple[pa.Table, SourceReport]:
    """Make the table: one row per reading and link."""
    names = tuple(SCHEMA.names[2:])
    return ingest_own(context, "opportunities", TraceLink, "link", names, instants=("began_ns", "until_ns"))


# howdah/judge/link.py says what must be there of it.
READER = Reader(SCHEMA, ingest_opportunities, must_have_rows=lambda _plan: False, whole_run=False)
