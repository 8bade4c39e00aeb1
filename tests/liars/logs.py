# SPDX-License-Identifier: Apache-2.0
"""Lies of QUIC stacks: logs that do not have what left the host, from a recording of a stack and its capture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from howdah.ingest.capture import read_packets, udp_payload
from howdah.ingest.qlog import read_qlog
from howdah.ingest.source import IngestReport, SourceReport
from howdah.judge.collection import qlog_checks
from howdah.plan.plan import Plan
from howdah.record.directory import RunDirectory
from howdah.record.verdict import Check
from tests.liars.bench import Bench
from tests.liars.doctor import Doctor, doctored
from tests.liars.liar import Catch, RunLiar, ToldLiar, check
from tests.unit.profile_factory import make_one

GOLDEN = Path(__file__).parents[1] / "golden" / "quic"
SENDER = ("10.1.1.1", 5001)
_SEPARATOR = b"\x1e"
Change = Callable[[list[bytes]], list[bytes]]


def judged(path: Path, change: Change) -> tuple[Check, list[str]]:
    """The check of a log with other records than the stack wrote, and what is wrong with the file itself."""
    records = (GOLDEN / "ngtcp2.qlog").read_bytes().split(_SEPARATOR)
    path.mkdir(parents=True, exist_ok=True)
    file = path / "changed.qlog"
    file.write_bytes(_SEPARATOR.join(change(records)))
    plan: Plan = make_one(path, "traffic: {quic: ngtcp2}\n")
    qlog = read_qlog(file)
    datagrams, size = udp_payload(read_packets(GOLDEN / "ngtcp2.pcap"), *SENDER)
    account = {
        "flow": 1,
        "packets": qlog.sent_packets,
        "bytes": qlog.sent_bytes,
        "padding_bytes": 0,
        "captured_datagrams": datagrams,
        "captured_bytes": size,
    }
    report = IngestReport({"qlog": SourceReport(counts={"flows": [account]})})
    (found,) = qlog_checks(plan, report)
    return found, qlog.problems


def _told(change: Change) -> Callable[[Bench, Path], list[Catch]]:
    def told(_bench: Bench, path: Path) -> list[Catch]:
        found, problems = judged(path, change)
        caught = [Catch("state", "cut short", problem) for problem in problems]
        return caught + ([check("collection", found.name, found.message)] if found.ok is False else [])

    return told


def _without_a_packet(records: list[bytes]) -> list[bytes]:
    last = max(number for number, record in enumerate(records) if b'"transport:packet_sent"' in record)
    return records[:last] + records[last + 1 :]


def _doubled(records: list[bytes]) -> list[bytes]:
    return [*records, next(record for record in records if b'"transport:packet_sent"' in record)]


def _cut(records: list[bytes]) -> list[bytes]:
    return [*records[:-5], records[-5][: len(records[-5]) // 2]]


def _same(records: list[bytes]) -> list[bytes]:
    return records


def _change_log(change: Change) -> Doctor:
    def doctor(directory: RunDirectory) -> None:
        (file,) = (directory.raw / "program" / "1-server").glob("*qlog*")
        file.write_bytes(_SEPARATOR.join(change(file.read_bytes().split(_SEPARATOR))))

    return doctor


def _remove_log(directory: RunDirectory) -> None:
    for file in (directory.raw / "program" / "1-server").glob("*qlog*"):
        file.unlink()


def _remove_capture(directory: RunDirectory) -> None:
    for file in (directory.raw / "pcap").glob("s1-*.pcap"):
        file.unlink()


def _lied(name: str, lie: str, words: str, doctor: Doctor) -> RunLiar:
    return doctored(name, lie, check("collection", "qlog flow 1", words), doctor, honest="quic")


RUN_LOGS: list[RunLiar] = [
    _lied(
        "qlog-lacks-a-packet",
        "A QUIC stack does not log the last packet that it sends.",
        "the log lacks",
        _change_log(_without_a_packet),
    ),
    _lied(
        "qlog-tells-a-packet-twice",
        "A QUIC stack logs a packet that it did not send.",
        "the log has more by",
        _change_log(_doubled),
    ),
    _lied("qlog-gone", "A QUIC stack left no log.", "has no qlog that could be read", _remove_log),
    _lied(
        "qlog-without-capture",
        "Nobody captured what a QUIC stack sent.",
        "was not captured at its sender's interface",
        _remove_capture,
    ),
]
LOGS = [
    ToldLiar(
        "qlog-cut-short",
        "file",
        "A QUIC stack was killed before it had written all of its log.",
        Catch("state", "cut short", "cut short, or damaged, in its record"),
        "qlog",
        _told(_cut),
    ),
]
HONEST_LOGS = {"qlog": _told(_same)}
