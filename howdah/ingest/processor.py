# SPDX-License-Identifier: Apache-2.0
"""processor.bin to the table ``processor``: what the hosts' processors did, from RTM_NEWQDISC.

Layout: struct tcmsg, TCA_KIND and, in TCA_STATS2, TCA_STATS_APP: struct processor_stats of
modules/processor/processor.h.
"""

from __future__ import annotations

from functools import partial

import pyarrow as pa

from howdah.hooks import Reader
from howdah.ingest.framed import parse, read_frames
from howdah.ingest.qdisc import locate_counters
from howdah.ingest.source import Context, SourceReport, nullable, texts
from howdah.linux.netlink.discipline.howdah_cpu import HostProcessor
from howdah.record import table as store
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
_NAMES = (
    "arrived_packets",
    "served_packets",
    "dropped_packets",
    "waiting_packets",
    "begun_packets",
    "acks_packets",
    "searched_packets",
    "cost_ns",
    "busy_ns",
    "rests",
)
_LOCATE = partial(locate_counters, HostProcessor.kind, "processor", _NAMES)


def ingest_processor(context: Context) -> tuple[pa.Table, SourceReport]:
    """One row a reading and host."""
    report = SourceReport()
    frames = read_frames(context.directory.raw / "processor.bin")
    records = parse(frames, _LOCATE, _NAMES)
    report.problems.extend(str(item) for item in frames.damage)
    columns: dict[str, object] = {name: nullable(records.columns[name], records.known[name]) for name in _NAMES}
    columns |= {"node": texts(records.node, context.node_names()), "time_ns": records.time_ns - context.epoch_ns}
    table = store.table_of("processor", columns)
    report.rows = table.num_rows
    return table, report


# howdah/judge/host_processor.py says what must be there of it.
READER = Reader(SCHEMA, ingest_processor, must_have_rows=lambda _plan: False, whole_run=False)
