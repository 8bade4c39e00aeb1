# SPDX-License-Identifier: Apache-2.0
"""Captures: what tcpdump says of itself, what is in its file, and tcpdumps that do not do their work."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from typing import Any

import pytest

from collectors import pcap
from collectors.collector import CollectorError, Surroundings
from collectors.pcap import PcapCollector, capture_command, parse_closing
from collectors.record import OwnNamespace
from howdah.ingest.capture import count_packets, ingest_captures
from howdah.linux.output import Output
from tests.unit.plan_factory import make_plan

# As tcpdump 4.99 says it.
WHOLE = """\
tcpdump: listening on s1-eth0, link-type EN10MB (Ethernet), snapshot length 128 bytes
10266 packets captured
10266 packets received by filter
0 packets dropped by kernel
"""
SHORT = WHOLE.replace("10266 packets captured", "9218 packets captured")
DROPPED = """\
tcpdump: listening on s1-eth0, link-type EN10MB (Ethernet), snapshot length 128 bytes
1 packet captured
41 packets received by filter
38 packets dropped by kernel
2 packets dropped by interface
"""


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        (WHOLE, (10266, 10266, 0, None)),
        (SHORT, (9218, 10266, 0, None)),
        (DROPPED, (1, 41, 38, 2)),
        (WHOLE.splitlines()[0], (None, None, None, None)),
        ("tcpdump: 12 packets captured by somebody\n", (None, None, None, None)),
    ],
)
def test_closing_statistics(text: str, counts: tuple[int | None, ...]) -> None:
    names = ("captured", "received", "dropped_by_kernel", "dropped_by_interface")
    assert parse_closing(text) == dict(zip(names, counts, strict=True))


def test_packets_are_handed_over_at_once() -> None:
    command = capture_command("s1-eth0", Path("/out/s1-s1-eth0.pcap"))
    assert "--immediate-mode" in command
    assert command[-3:] == ["-w", "/out/s1-s1-eth0.pcap", "ip"]


def capture(*sizes: int) -> bytes:
    """A capture of packets of these sizes, in bytes."""
    header = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 128, 1)
    return header + b"".join(struct.pack("<IIII", 1, 2, size, size) + bytes(size) for size in sizes)


def test_whole_packets_of_a_file_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "s1-s1-eth0.pcap"
    file.write_bytes(capture(66, 128, 54))
    assert count_packets(file) == (3, None)
    file.write_bytes(capture())
    assert count_packets(file) == (0, None)
    for cut in (1, 54, 60):
        file.write_bytes(capture(66, 128, 54)[:-cut])
        assert count_packets(file) == (2, "s1-s1-eth0.pcap is cut off after 2 packets")
    file.write_bytes(b"no capture")
    assert count_packets(file)[1] == "s1-s1-eth0.pcap is not a capture with nanosecond timestamps"
    file.unlink()
    assert "cannot be read" in str(count_packets(file)[1])


def _account(raw: Path, node: str, packets: int) -> None:
    (raw / "pcap").mkdir(parents=True)
    (raw / "pcap" / f"{node}-{node}-eth0.pcap").write_bytes(capture(*[66] * packets))
    item: dict[str, Any] = {"node": node, "interface": f"{node}-eth0", "status": 0, "captured": 3, "received": 3}
    (raw / "pcap.json").write_text(json.dumps({"format": 1, "captures": [item]}))


def test_captures_are_counted_on_one_machine_and_on_several(tmp_path: Path) -> None:
    plan = make_plan()
    plan.collect.pcap[:] = ["s1:s1-eth0"]
    _account(tmp_path / "one", "s1", 3)
    report = ingest_captures(tmp_path / "one", [], plan)
    (found,) = report.counts["captures"]
    assert (found["place"], found["captured"], found["in_file"], report.problems) == ("s1:s1-eth0", 3, 3, [])
    plan.collect.pcap.append("r1:r1-eth0")
    _account(tmp_path / "two/one", "s1", 3)
    _account(tmp_path / "two/other", "r1", 2)
    (tmp_path / "two/third").mkdir()
    report = ingest_captures(tmp_path / "two", ["one", "other", "third"], plan)
    assert [item["in_file"] for item in report.counts["captures"]] == [3, 2]
    assert report.problems == []


def test_a_capture_nobody_counted_is_a_problem(tmp_path: Path) -> None:
    plan = make_plan()
    plan.collect.pcap[:] = ["s1:s1-eth0"]
    assert ingest_captures(tmp_path, [], plan).problems == ["there is no account of the capture at s1:s1-eth0"]
    (tmp_path / "pcap.json").write_text("{")
    assert "pcap.json cannot be read" in ingest_captures(tmp_path, [], plan).problems[0]


STAND_IN = """
import pathlib, signal, sys, time
WAY = {way!r}
if WAY == "refuses":
    sys.exit("tcpdump: s1-eth0: No such device exists")
def end(*_):
    sys.stderr.write("7 packets captured\\n9 packets received by filter\\n0 packets dropped by kernel\\n")
    sys.exit(0)
signal.signal(signal.SIGINT, end)
sys.stderr.write("tcpdump: listening on s1-eth0, snapshot length 128 bytes\\n")
sys.stderr.flush()
if WAY == "dies":
    sys.exit(3)
while True:
    time.sleep(0.01)
"""


def _collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> PcapCollector:
    script = tmp_path / "tcpdump.py"
    script.write_text(STAND_IN.format(way=way))
    monkeypatch.setattr(pcap, "capture_command", lambda _interface, _file: [sys.executable, "-S", str(script)])
    here = Surroundings(make_plan(), {"s1": OwnNamespace("s1")}, {"s1": 0}, [], Output(tmp_path))
    return PcapCollector(here, ["s1:s1-eth0"])


def test_the_account_has_what_tcpdump_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    collector = _collector(tmp_path, monkeypatch, "works")
    collector.start(0)
    collector.stop(0)
    (found,) = json.loads((tmp_path / "pcap.json").read_text())["captures"]
    assert (found["node"], found["interface"], found["status"]) == ("s1", "s1-eth0", 0)
    assert (found["captured"], found["received"], found["dropped_by_kernel"]) == (7, 9, 0)


def test_a_tcpdump_that_cannot_begin_or_ends_early_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CollectorError, match=r"s1:s1-eth0: tcpdump ended early with status 1: .*No such device"):
        _collector(tmp_path, monkeypatch, "refuses").start(0)
    collector = _collector(tmp_path, monkeypatch, "dies")
    collector.start(0)
    collector._running[0].process.wait()
    with pytest.raises(CollectorError, match="ended early with status 3"):
        collector.stop(0)
