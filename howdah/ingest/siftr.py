# SPDX-License-Identifier: Apache-2.0
"""SIFTR's logs, raw/siftr/NODE.log with NODE.json, as rows of ``tcp_info`` and, of senders, of ``tcp_probe``.

SIFTR is FreeBSD's; its format is that of siftr(4). The fields have changed twice and are distinguished by the line
itself:

========== ==================================== ===========================================
version    fields                               round-trip time and timeout
========== ==================================== ===========================================
1.2, old   25: with a hash                      in ticks (``hz``, ``tcp_rtt_scale``)
1.2        26 to 28: and the reassembly queue,  in ticks
           flow id and flow type
1.3        27: as before, without the hash      in microseconds
========== ==================================== ===========================================

A record is the control block when a packet passes IP: of one that comes in, before TCP sees it, which is what tcp_probe
records too. SIFTR has no sequence numbers, so those columns of ``tcp_probe`` are null. Windows are in bytes there; they
become packets of the connection's segment size, rounded down, and what is in flight rounded up.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from howdah.ingest.source import Context, Made, SourceReport, add_rows
from howdah.linux.netlink.diag import TCP_ESTABLISHED
from howdah.record import table as store
from howdah.record.raw import SUFFIXES, content_name, raw_value, read_raw_bytes, read_raw_text

# TCP_MAXWIN << TCP_MAX_WINSHIFT, what FreeBSD begins with: no threshold yet.
INFINITE_SSTHRESH_BYTES = 65535 << 14
# FreeBSD's states (netinet/tcp_fsm.h) in Linux' numbers, which the table has: CLOSED, LISTEN, SYN_SENT, SYN_RECEIVED,
# ESTABLISHED, CLOSE_WAIT, FIN_WAIT_1, CLOSING, LAST_ACK, FIN_WAIT_2, TIME_WAIT.
_LINUX_STATE = (7, 10, 2, 3, 1, 8, 4, 11, 9, 5, 6)
# Packets that SIFTR saw and could not record. Those without a control block belong to every begin and end.
_LOST = ("skipped_pkts_malloc", "skipped_pkts_mtx")
_WITH_HASH = (25, 26, 28)
_WITHOUT_HASH = (27,)
_MOST_EXAMPLES = 3

Connection = tuple[str, int, str, int]


@dataclass(frozen=True)
class SiftrLine:
    """One line. Times are the host's wall clock; ``incoming``: the packet was received."""

    connection: Connection
    time_ns: int
    incoming: bool
    state: int
    cwnd_bytes: int
    ssthresh_bytes: int
    snd_wnd_bytes: int
    rcv_wnd_bytes: int
    mss_bytes: int
    srtt_us: int
    rto_us: int
    inflight_bytes: int


@dataclass
class Log:
    records: list[SiftrLine] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Units:
    """Units per second of two fields."""

    srtt: int
    rto: int


def read_log(path: Path) -> Log:
    """Read a log. Malformed lines are counted, and the first few are reported.

    A missing or unreadable file is a problem too.
    """
    log = Log()
    try:
        lines = read_raw_text(path, "ascii", "replace").splitlines()
    except OSError as error:
        log.problems.append(f"{path.name} cannot be read: {error.strerror}")
        return log
    units: _Units | None = None
    wrong: list[str] = []
    for number, line in enumerate(lines, 1):
        try:
            if line.startswith("enable_time_secs="):
                units = _units(_pairs(line))
            elif line.startswith("disable_time_secs="):
                _account(log, _pairs(line))
                units = None
            elif units is None:
                raise ValueError("a record outside of an enabled time")
            else:
                log.records.append(_record(line, units))
        except (ValueError, IndexError) as error:
            wrong.append(f"{path.name}:{number}: {error}")
    log.counts |= {"lines": len(lines), "records": len(log.records), "wrong_lines": len(wrong)}
    log.problems += wrong[:_MOST_EXAMPLES]
    if len(wrong) > _MOST_EXAMPLES:
        log.problems.append(f"{path.name}: {len(wrong) - _MOST_EXAMPLES} more lines that cannot be read")
    if units is not None:
        log.problems.append(f"{path.name} has no last line: SIFTR was not switched off, or the file is cut")
    return log


def _pairs(line: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in line.split("\t") if "=" in pair)


def _units(pairs: dict[str, str]) -> _Units:
    if "hz" not in pairs:
        return _Units(1_000_000, 1_000_000)
    hz, scale = int(pairs["hz"]), int(pairs["tcp_rtt_scale"])
    if hz <= 0 or scale <= 0:
        raise ValueError(f"hz={hz} and tcp_rtt_scale={scale} cannot be")
    return _Units(hz * scale, hz)


def _account(log: Log, pairs: dict[str, str]) -> None:
    lost = sum(int(value) for name, value in pairs.items() if name.endswith(_LOST))
    total = int(pairs["total_tcp_pkts"]) if "total_tcp_pkts" in pairs else 0
    log.counts["packets"] = log.counts.get("packets", 0) + total
    log.counts["lost_records"] = log.counts.get("lost_records", 0) + lost
    if lost:
        log.problems.append(f"SIFTR lost {lost} of {total} records")


def _record(line: str, units: _Units) -> SiftrLine:
    fields = line.split(",")
    hashed = len(fields) > 1 and fields[1].startswith("0x")
    if len(fields) not in (_WITH_HASH if hashed else _WITHOUT_HASH):
        raise ValueError(f"a record of {len(fields)} fields")
    if fields[0] not in ("i", "o"):
        raise ValueError(f"a direction {fields[0]!r}")
    rest = fields[2:] if hashed else fields[1:]
    seconds, _, fraction = rest[0].partition(".")
    if len(fraction) != 6:
        raise ValueError(f"a time {rest[0]!r}")
    numbers = [int(text) for text in rest[5:]]
    state = numbers[7]
    if not 0 <= state < len(_LINUX_STATE):
        raise ValueError(f"a TCP state {state}")
    return SiftrLine(
        connection=(_address(rest[1]), int(rest[2]), _address(rest[3]), int(rest[4])),
        time_ns=(int(seconds) * 1_000_000 + int(fraction)) * 1000,
        incoming=fields[0] == "i",
        state=_LINUX_STATE[state],
        ssthresh_bytes=numbers[0],
        cwnd_bytes=numbers[1],
        snd_wnd_bytes=numbers[3],
        rcv_wnd_bytes=numbers[4],
        mss_bytes=numbers[8],
        srtt_us=numbers[9] * 1_000_000 // units.srtt,
        rto_us=numbers[12] * 1_000_000 // units.rto,
        inflight_bytes=numbers[17],
    )


def _address(text: str) -> str:
    return str(ipaddress.ip_address(text))


@dataclass(frozen=True)
class Placed:
    """A record with its flow and end, and its time on the plan's clock."""

    flow: int
    end: str
    time_ns: int
    record: SiftrLine


def place(context: Context, report: SourceReport) -> list[Placed]:
    """Return the records that belong to flows, of all hosts, in order of time; report what is lost or left out.

    A log whose note lacks ``epoch_realtime_ns`` cannot be placed in the run and is left out, with a problem.
    """
    ends: dict[Connection, tuple[int, str]] = {}
    for flow in context.plan.flows:
        sender = (str(ipaddress.ip_address(flow.source_address)), context.source_port(flow))
        receiver = (str(ipaddress.ip_address(flow.destination_address)), flow.destination_port)
        ends[*sender, *receiver] = (flow.id, "sender")
        ends[*receiver, *sender] = (flow.id, "receiver")
    placed: list[Placed] = []
    for path in sorted(_logs(context.directory.raw / "siftr")):
        epoch_ns = _epoch(path.with_suffix(".json"), report)
        log = read_log(path)
        report.problems += log.problems
        for name, count in log.counts.items():
            report.counts[f"siftr_{name}"] = report.counts.get(f"siftr_{name}", 0) + count
        if epoch_ns is None:
            continue
        ours = [(ends.get(record.connection), record) for record in log.records]
        placed += [Placed(*end, record.time_ns - epoch_ns, record) for end, record in ours if end is not None]
        unknown = sum(end is None for end, _record in ours)
        report.counts["siftr_unknown_rows"] = report.counts.get("siftr_unknown_rows", 0) + unknown
    return sorted(placed, key=lambda item: item.time_ns)


def _logs(folder: Path) -> set[Path]:
    return {
        content_name(path) for path in (file for suffix in ("", *SUFFIXES) for file in folder.glob(f"*.log{suffix}"))
    }


def _epoch(note: Path, report: SourceReport) -> int | None:
    try:
        epoch = raw_value(read_raw_bytes(note))["epoch_realtime_ns"]
    except (OSError, ValueError, KeyError, TypeError):
        epoch = None
    if isinstance(epoch, int) and not isinstance(epoch, bool):
        return epoch
    report.problems.append(f"siftr/{note.name} does not say what the host's clock showed at time zero: log left out")
    return None


def add_siftr(context: Context, made: Made) -> None:
    """Add the rows of raw/siftr to the tables of a run, in order of time; do nothing without that directory."""
    if not (context.directory.raw / "siftr").is_dir():
        return
    report = made["tcp_info"][1]
    placed = place(context, report)
    for name, rows in (("tcp_info", tcp_info_rows(placed)), ("tcp_probe", tcp_probe_rows(placed))):
        if rows.num_rows:
            add_rows(made, name, rows, "siftr")
            made[name][1].rows = made[name][0].num_rows


def tcp_info_rows(placed: list[Placed]) -> pa.Table:
    """One row per record; what SIFTR does not record is null."""
    records = [item.record for item in placed]
    columns: dict[str, list[object]] = {
        "flow": [item.flow for item in placed],
        "end": [item.end for item in placed],
        "time_ns": [item.time_ns for item in placed],
        "state": [record.state for record in records],
        "cwnd_packets": [_packets(record.cwnd_bytes, record) for record in records],
        "ssthresh_packets": [_ssthresh(record) for record in records],
        "rtt_us": [record.srtt_us or None for record in records],
        "rto_us": [record.rto_us for record in records],
        "mss_bytes": [record.mss_bytes for record in records],
        "unacked_packets": [-_packets(-record.inflight_bytes, record) for record in records],
        "snd_wnd_bytes": [record.snd_wnd_bytes for record in records],
        "rcv_wnd_bytes": [record.rcv_wnd_bytes for record in records],
    }
    return store.sparse_table_of("tcp_info", columns)


def tcp_probe_rows(placed: list[Placed]) -> pa.Table:
    """One row per packet that a sender received on an established connection."""
    ours = [
        item
        for item in placed
        if item.end == "sender" and item.record.incoming and item.record.state == TCP_ESTABLISHED
    ]
    records = [item.record for item in ours]
    columns: dict[str, list[object]] = {
        "flow": [item.flow for item in ours],
        "time_ns": [item.time_ns for item in ours],
        "cwnd_packets": [_packets(record.cwnd_bytes, record) for record in records],
        "ssthresh_packets": [_ssthresh(record) for record in records],
        "snd_wnd_bytes": [record.snd_wnd_bytes for record in records],
        "srtt_us": [record.srtt_us for record in records],
        "rcv_wnd_bytes": [record.rcv_wnd_bytes for record in records],
    }
    return store.sparse_table_of("tcp_probe", columns)


def _packets(size_bytes: int, record: SiftrLine) -> int:
    return size_bytes // max(record.mss_bytes, 1)


def _ssthresh(record: SiftrLine) -> int | None:
    return None if record.ssthresh_bytes >= INFINITE_SSTHRESH_BYTES else _packets(record.ssthresh_bytes, record)
