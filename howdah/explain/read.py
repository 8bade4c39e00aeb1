# SPDX-License-Identifier: Apache-2.0
"""Read recordings and explain their flows. The content of a file says what it is, not its name."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from howdah.errors import HowdahError, RecordError
from howdah.explain.capture import Capture, Progress, no_progress, read_captures
from howdah.explain.estimate import Estimate
from howdah.explain.explained import Explained, ExplainedExit, explain_connection
from howdah.explain.joined import Joined, join
from howdah.explain.probe import explain_probe, is_probe
from howdah.explain.records import is_capture, open_recording
from howdah.explain.sender_log import (
    STAYED,
    SenderLog,
    document_of_stream,
    explain_iperf3,
    explain_log,
    explain_sockets,
    is_iperf3,
    is_sockets,
)
from howdah.foreign import LARGEST_JSON_BYTES, is_too_dense
from howdah.ingest.qlog import Qlog, parse_qlog
from howdah.measure.cause import LOSS
from howdah.record.raw import raw_value

MOST_FLOWS = 200  # flows that are explained, at most
_MOST_FILES = 64  # files that are read at once, at most
_HEAD_BYTES = 1 << 16  # start of a file, which shows its kind


@dataclass
class Read:
    """What was read. ``others`` counts connections that are not shown; ``joined`` are those that several taps saw."""

    flows: list[Explained] = field(default_factory=list)
    joined: list[Joined] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    others: int = 0


def read_files(paths: list[Path], most_flows: int, progress: Progress = no_progress) -> Read:
    """Read files; call ``progress`` with the megabytes read of a large one.

    Raise RecordError if a file is not a recording, and HowdahError if no file has a flow.
    """
    if len(paths) > _MOST_FILES:
        raise HowdahError(f"these are {len(paths)} files; at most {_MOST_FILES} are read at once")
    read = Read()
    captures = [path for path in paths if _is_capture(path, most_flows, read)]
    files = [_explain_capture(capture, read) for capture in read_captures(captures, most_flows, progress)]
    if not read.flows:
        said = [each.removeprefix(f"{paths[0].name}: ") for each in read.problems] if len(paths) == 1 else read.problems
        what = "no transfer with data and ACKs was found" + (f": {'; '.join(said)}" if said else "")
        raise RecordError(what, where=", ".join(map(str, paths)))
    read.joined = join(files)
    read.flows.sort(key=lambda flow: -flow.data_bytes)
    read.others += len(read.flows[most_flows:])
    del read.flows[most_flows:]
    return read


def _is_capture(path: Path, most_flows: int, read: Read) -> bool:
    """Whether a file holds packets. Flows of other recordings are added to ``read``."""
    with open_recording(path) as file:
        head = file.read(_HEAD_BYTES)
    if not head:
        raise RecordError(file.problem or "it is empty", where=str(path))
    if is_capture(head):
        return True
    if head.lstrip()[:1] in (b"{", b"\x1e", b"["):
        flows, problems = _read_json(path, most_flows)
    else:
        flows, problems = _read_text(path, head.decode(errors="replace"), most_flows)
    read.flows += flows
    read.problems += [f"{path.name}: {problem}" for problem in problems]
    return False


def _explain_capture(capture: Capture, read: Read) -> list[Explained]:
    read.problems += capture.problems
    found = [each for each in map(explain_connection, capture.connections) if each is not None]
    if not found and (capture.packets or not capture.problems):
        read.problems.append(f"{capture.name}: {capture.why_none}")
    read.others += capture.others + len(capture.connections) - len(found)
    read.flows += found
    return found


def _content(path: Path) -> bytes:
    with open_recording(path) as file:
        return file.read_all(LARGEST_JSON_BYTES)


def _read_json(path: Path, most_flows: int) -> tuple[list[Explained], list[str]]:
    data = _content(path)
    if is_too_dense(data):
        raise RecordError("it has more values than a recording of its size has", where=str(path))
    try:
        document = raw_value(data)
    except ValueError:
        document = document_of_stream(data)  # or the records of a qlog
    if is_iperf3(document):
        return explain_iperf3(document, path.name, most_flows), []
    flows, problems = explain_qlog(data, path.name)
    if not flows and not (isinstance(document, dict) and "traces" in document) and b"\x1e" not in data[:1]:
        raise _unknown(path)
    return flows, problems


def _read_text(path: Path, head: str, most_flows: int) -> tuple[list[Explained], list[str]]:
    reader = explain_probe if is_probe(head) else explain_sockets if is_sockets(head) else None
    if reader is None:
        raise _unknown(path, head)
    lines = _content(path).decode(errors="replace").splitlines()
    return reader(iter(lines), path.name, most_flows), []


_EDITCAP = "'editcap FILE OTHER.pcapng' of Wireshark writes it as pcapng."
# How files of other programs begin, what they are, and how to convert them.
_OTHERS: tuple[tuple[str, str, str], ...] = (
    (r"snoop\0\0\0", "this is a capture of snoop", _EDITCAP),
    (r"GMBU|RTSS", "this is a capture of Microsoft's Network Monitor", _EDITCAP),
    (r"XCP\0|TRSNIFF", "this is a capture of a Sniffer", _EDITCAP),
    (r"PK\x03\x04", "this is a zip archive", "Take the recording out of it."),
    (r"\s*<(!doctype|html|\?xml)", "this is a page or XML, not a recording",
     "Take the packets themselves: 'tcpdump -w FILE.pcap', or Wireshark's own file."),
    (r"\s*(\d\d:\d\d:\d\d\.\d+|\d{10}\.\d+) IP6? ", "this is what tcpdump prints",
     "'tcpdump -w FILE.pcap' writes the packets."),
    (r'"No\."|\s*No\.\s+Time\s', "this is a table that Wireshark exported", "Save the capture itself, as pcapng."),
)  # fmt: skip


def _unknown(path: Path, head: str = "") -> RecordError:
    for begins, what, hint in _OTHERS:
        if re.match(begins, head, re.IGNORECASE):
            return RecordError(what, where=str(path), hint=hint)
    return RecordError(
        "nothing here reads such a file",
        where=str(path),
        hint="Known: pcap, pcapng, tcp_probe as text, ss -tin, iperf3's JSON, qlog; gzip, xz and zstd of them.",
    )


SOURCE: Final = "qlog"


def explain_qlog(data: bytes, file: str) -> tuple[list[Explained], list[str]]:
    """The flow of a qlog, and what is wrong with the file."""
    try:
        found = parse_qlog(data, file)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        return [], ["its events are not those of QUIC's recovery"]
    states = found.acks
    if len(states) < 2:
        return [], found.problems or ["it has no ACK of a sender"]
    size = max(found.datagram_bytes, 1)
    window = np.array([each.cwnd_bytes // size for each in states], np.int64)
    least = [each.min_rtt_us for each in states if each.min_rtt_us]
    log = SenderLog(
        "QUIC connection", file, SOURCE, np.array([each.time_ns for each in states], np.int64), window,
        np.array([-1 if each.ssthresh_bytes is None else each.ssthresh_bytes // size for each in states], np.int64),
        np.array([each.in_flight_bytes // size for each in states], np.int64),
        np.array([each.smoothed_rtt_us for each in states], np.int64),
        np.array([each.lost_packets for each in states], np.int64), every_ack=True, timed=True,
        mss_bytes=found.stream_bytes or None, min_rtt_us=float(min(least)) if least else None,
        bytes_acked=states[-1].acknowledged_bytes,
    )  # fmt: skip
    leaves = _exit(found, size, states[0].time_ns)
    return [explain_log(log, leaves, "" if leaves else STAYED)], found.problems


def _exit(found: Qlog, size: int, begin_ns: int) -> ExplainedExit | None:
    left = found.left
    if left is None:
        return None
    packets = left.cwnd_bytes / size
    estimate = Estimate(packets, packets, packets, "the sender's own window")
    cause = LOSS if left.lost_packets and left.is_cut else None
    evidence = "packets were declared lost, and the window was cut" if cause else "the threshold came to the window"
    if cause is None and left.min_rtt_us:
        rise = left.latest_rtt_us - left.min_rtt_us
        evidence += f"; the last round trip was {rise / 1000:.1f} ms above the least"
    number = sum(1 for each in found.acks if each.time_ns <= left.time_ns)
    return ExplainedExit(
        (left.time_ns - begin_ns) / 1e9, estimate, _rounds(found, number), cause, cause is not None, evidence
    )


def _rounds(found: Qlog, until: int) -> int:
    """Round trips that ended before an ACK. Each ends when what was sent by its start is acknowledged."""
    number, end = 0, found.acks[0].sent_bytes
    for each in found.acks[:until]:
        if each.acknowledged_bytes >= end:
            number, end = number + 1, each.sent_bytes
    return number
