# SPDX-License-Identifier: Apache-2.0
"""Ingest tcp_info.bin into the table ``tcp_info``: struct tcp_info of both ends of every flow, from inet_diag.

If the congestion control answers with struct tcp_bbr_info, whatever its name, that is read too.

The kernel appends fields to struct tcp_info, so its length decides: fields that a kernel lacks are null, and bytes
after the last known field are counted. Layout: include/uapi/linux/tcp.h and inet_diag.h.
"""

from __future__ import annotations

import ipaddress
import struct
from collections import Counter

import numpy as np
import pyarrow as pa

from howdah.hooks import Reader
from howdah.ingest.framed import Item, MalformedMessageError, Slot, attributes, parse, read_frames, skeleton_of
from howdah.ingest.source import Context, SourceReport, nullable, texts
from howdah.linux.netlink.diag import (
    INET_DIAG_BBRINFO,
    INET_DIAG_INFO,
    INET_DIAG_MSG_BYTES,
    SOCK_DIAG_BY_FAMILY,
    TCP_LISTEN,
)
from howdah.plan.plan import Plan
from howdah.record import table as store
from howdah.record.schema import INFINITE_SSTHRESH, TCP_INFO

_AF_INET = 2
_SOCKET_ID = struct.Struct(">HH4s12x4s12x")
NO_MIN_RTT = 0xFFFFFFFF  # tcpi_min_rtt before the first sample

# The kernel's order; (name of the column or None, size in bytes).
_FIELDS: tuple[tuple[str | None, int], ...] = (
    ("state", 1),
    ("ca_state", 1),
    (None, 1),  # retransmits
    (None, 1),  # probes
    (None, 1),  # backoff
    (None, 1),  # options
    (None, 1),  # window scales
    ("flags", 1),  # bit 0: delivery_rate_app_limited
    ("rto_us", 4),
    (None, 4),  # ato
    ("mss_bytes", 4),
    (None, 4),  # rcv_mss
    ("unacked_packets", 4),
    ("sacked_packets", 4),
    ("lost_packets", 4),
    ("retrans_packets", 4),
    (None, 4),  # fackets
    (None, 16),  # last data and ACK, sent and received
    (None, 4),  # pmtu
    (None, 4),  # rcv_ssthresh
    ("rtt_us", 4),
    ("rttvar_us", 4),
    ("ssthresh_packets", 4),
    ("cwnd_packets", 4),
    (None, 4),  # advmss
    ("reordering_packets", 4),
    (None, 4),  # rcv_rtt
    ("rcv_space_bytes", 4),
    ("total_retrans_packets", 4),
    ("pacing_rate_bytes_per_second", 8),
    (None, 8),  # max_pacing_rate
    ("bytes_acked_bytes", 8),
    ("bytes_received_bytes", 8),
    ("segs_out_packets", 4),
    (None, 4),  # segs_in
    ("notsent_bytes", 4),
    ("min_rtt_us", 4),
    ("data_segs_in_packets", 4),
    ("data_segs_out_packets", 4),
    ("delivery_rate_bytes_per_second", 8),
    ("busy_time_us", 8),
    ("rwnd_limited_us", 8),
    ("sndbuf_limited_us", 8),
    ("delivered_packets", 4),
    (None, 4),  # delivered_ce
    ("bytes_sent_bytes", 8),
    ("bytes_retrans_bytes", 8),
    (None, 4),  # dsack_dups
    (None, 4),  # reord_seen
    ("rcv_ooopack_packets", 4),
    ("snd_wnd_bytes", 4),
    ("rcv_wnd_bytes", 4),  # since 6.2
    (None, 4),  # rehash
    (None, 4),  # total_rto, total_rto_recoveries, since 6.7
    (None, 4),  # total_rto_time
)


# struct tcp_bbr_info. Versions 2 and 3 have further fields behind those of version 1, their number at one offset.
_BBR_FIELDS: tuple[tuple[str | None, int], ...] = (
    ("bbr_bandwidth_bytes_per_second", 8),  # its two halves, the lower first
    ("bbr_min_rtt_us", 4),
    ("bbr_pacing_gain_256ths", 4),
    ("bbr_cwnd_gain_256ths", 4),
    (None, 19),  # bw_hi, bw_lo, mode, phase
    ("bbr_version", 1),
)


def _slots(fields: tuple[tuple[str | None, int], ...]) -> tuple[dict[str, Slot], int]:
    """Offsets of the fields in a structure, and its known length."""
    slots: dict[str, Slot] = {}
    offset = 0
    for name, size in fields:
        if name is not None:
            slots[name] = Slot(offset, size)
        offset += size
    return slots, offset


_SLOTS, KNOWN_BYTES = _slots(_FIELDS)
_BBR_SLOTS, _ = _slots(_BBR_FIELDS)
_NAMES = (*_SLOTS, *_BBR_SLOTS)


def _inside(slots: dict[str, Slot], offset: int, length: int) -> dict[str, Slot]:
    """Slots of a structure's fields in an answer, as far as the structure reaches."""
    return {
        name: Slot(offset + slot.offset, slot.size) for name, slot in slots.items() if slot.offset + slot.size <= length
    }


def locate(answer: bytes, kind: int, start: int, end: int) -> Item | None:
    """The layout of one inet_diag answer; its identity is (source, port, destination, port, bytes of struct
    tcp_info)."""
    if kind != SOCK_DIAG_BY_FAMILY:
        return None
    if end - start < INET_DIAG_MSG_BYTES:
        raise MalformedMessageError(f"an inet_diag answer of {end - start} bytes")
    family, state = answer[start], answer[start + 1]
    decisive = [(start, start + 2)]  # family and state
    if family != _AF_INET or state == TCP_LISTEN:
        return Item((), {}, decisive, wanted=False)
    found = attributes(answer, start + INET_DIAG_MSG_BYTES, end)
    if INET_DIAG_INFO not in found:
        # TIME_WAIT and SYN_RECV sockets have no tcp_info.
        return Item((), {}, [*decisive, *skeleton_of(found)], wanted=False)
    source_port, destination_port, source, destination = _SOCKET_ID.unpack_from(answer, start + 4)
    offset, length = found[INET_DIAG_INFO]
    identity = (
        str(ipaddress.IPv4Address(source)),
        str(source_port),
        str(ipaddress.IPv4Address(destination)),
        str(destination_port),
        str(length),
    )
    slots = _inside(_SLOTS, offset, length)
    if INET_DIAG_BBRINFO in found:
        slots |= _inside(_BBR_SLOTS, *found[INET_DIAG_BBRINFO])
    # A socket that turns to LISTEN or TIME_WAIT would be another message; other states have the same layout.
    return Item(identity, slots, [(start, start + 1), (start + 4, start + 44), *skeleton_of(found)])


def ingest_tcp_info(context: Context) -> tuple[pa.Table, SourceReport]:
    """Make the table: one row per reading and end of a flow. Sockets of no flow are counted."""
    report = SourceReport()
    frames = read_frames(context.directory.raw / "tcp_info.bin")
    records = parse(frames, locate, _NAMES)
    report.problems.extend(str(item) for item in frames.damage)
    ends: dict[tuple[str, ...], tuple[int, str]] = {}
    for flow in context.plan.flows:
        sender = (flow.source_address, str(context.source_port(flow)))
        receiver = (flow.destination_address, str(flow.destination_port))
        ends[sender + receiver] = (flow.id, "sender")
        ends[receiver + sender] = (flow.id, "receiver")
    matched = [ends.get(identity[:4]) for identity in records.identities]
    known = np.array([match is not None for match in matched], dtype=bool)
    keep = np.flatnonzero(known[records.identity]) if known.size else np.zeros(0, dtype=np.int64)
    identity = records.identity[keep]
    unknown = Counter(records.identity[~known[records.identity]].tolist() if known.size else [])
    report.counts["unknown_rows"] = sum(unknown.values())
    report.counts["unknown_sockets"] = sorted(" ".join(records.identities[code][:4]) for code in unknown)
    lengths = [int(item[4]) for item in records.identities]
    report.counts["struct_bytes"] = sorted(set(lengths))
    report.counts["unknown_tail_bytes"] = max(
        [length - KNOWN_BYTES for length in lengths if length > KNOWN_BYTES], default=0
    )
    flow_of = np.array([match[0] if match else -1 for match in matched], dtype=np.int64)
    end_of = [match[1] if match else "" for match in matched]
    columns: dict[str, object] = {
        name: nullable(records.columns[name][keep], records.known[name][keep]) for name in _NAMES
    }
    flags, has_flags = records.columns["flags"][keep], records.known["flags"][keep]
    finite = records.known["ssthresh_packets"][keep] & (records.columns["ssthresh_packets"][keep] < INFINITE_SSTHRESH)
    rtt = records.columns["min_rtt_us"][keep]
    columns |= {
        "flow": flow_of[identity] if flow_of.size else identity,
        "end": texts(identity, end_of),
        "time_ns": records.time_ns[keep] - context.epoch_ns,
        "ssthresh_packets": nullable(records.columns["ssthresh_packets"][keep], finite),
        "min_rtt_us": nullable(rtt, records.known["min_rtt_us"][keep] & (rtt != NO_MIN_RTT)),
        "app_limited": pa.array((flags & 1) != 0, pa.bool_(), mask=~has_flags),
    }
    table = store.table_of("tcp_info", columns)
    report.rows = table.num_rows
    return table, report


def _has_tcp(plan: Plan) -> bool:
    return any(flow.is_tcp and flow.sender_stack is None for flow in plan.flows)


READER = Reader(TCP_INFO, ingest_tcp_info, must_have_rows=_has_tcp, whole_run=False)
