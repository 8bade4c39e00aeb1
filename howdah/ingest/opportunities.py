# SPDX-License-Identifier: Apache-2.0
"""opportunities.bin to the table ``opportunities``: what links that follow a trace carried, from RTM_NEWQDISC.

Layout: struct tcmsg, TCA_KIND and, in TCA_STATS2, TCA_STATS_APP: struct link_stats of modules/link/link.h.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from howdah.hooks import Reader
from howdah.ingest.framed import parse, read_frames
from howdah.ingest.qdisc import locate_counters
from howdah.ingest.source import Context, SourceReport, nullable, texts
from howdah.linux.netlink.discipline.howdah_link import TraceLink
from howdah.record import table as store
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
_NAMES = ("began_ns", "until_ns", "passed", "used", "carried_bytes", "unused_bytes", "sent_packets")
_LOCATE = partial(locate_counters, TraceLink.kind, "link", _NAMES)


def ingest_opportunities(context: Context) -> tuple[pa.Table, SourceReport]:
    """One row a reading and link."""
    report = SourceReport()
    frames = read_frames(context.directory.raw / "opportunities.bin")
    records = parse(frames, _LOCATE, _NAMES)
    report.problems.extend(str(item) for item in frames.damage)
    begun = records.columns["began_ns"] != 0
    columns: dict[str, object] = {name: nullable(records.columns[name], records.known[name]) for name in _NAMES}
    for name in ("began_ns", "until_ns"):
        known = np.asarray(records.known[name]) & begun
        columns[name] = nullable(records.columns[name] - context.epoch_ns, known)
    columns |= {"node": texts(records.node, context.node_names()), "time_ns": records.time_ns - context.epoch_ns}
    table = store.table_of("opportunities", columns)
    report.rows = table.num_rows
    return table, report


# howdah/judge/link.py says what must be there of it.
READER = Reader(SCHEMA, ingest_opportunities, must_have_rows=lambda _plan: False, whole_run=False)
