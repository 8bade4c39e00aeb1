# SPDX-License-Identifier: Apache-2.0
"""Files that strangers bring: each is read, or refused with a sentence that says what to do."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import pytest

from howdah.errors import RecordError
from howdah.explain.explained import Explained
from howdah.explain.read import read_files
from tests.explain.damage import Packet, inside, pcap, pcapng, pcapng_block
from tests.explain.made import MSS, transfer
from tests.explain.strange import ACK, PSH, QUEUE, Talk

_MS = 1_000_000
MADE = transfer(QUEUE)
HALF = len(MADE) // 2


def pktap(frame: bytes) -> bytes:
    return struct.pack("<III", 108, 1, 1) + b"\0" * 96 + frame


def ppi(frame: bytes) -> bytes:
    return struct.pack("<BBHI", 0, 0, 8, 1) + frame


def as_udp(frame: bytes) -> bytes:
    """As QUIC: port 443, and nothing that tells more."""
    ip = frame[14:23] + b"\x11" + frame[24:34]
    return frame[:14] + ip + struct.pack(">HHHH", 443, 5000, len(frame) - 34, 0) + frame[42:]


def without_stamps(packets: list[Packet]) -> bytes:
    parts = [
        pcapng_block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
        pcapng_block(1, struct.pack("<HHI", 1, 0, 0)),
    ]
    parts += [pcapng_block(3, struct.pack("<I", p.wire) + p.data + b"\0" * (-len(p.data) % 4)) for p in packets]
    return b"".join(parts)


READ = {
    "macOS' pktap": pcap(inside(pktap, MADE), link=258),
    "PPI around Ethernet": pcap(inside(ppi, MADE), link=192),
    "two sections, each with its order of bytes": pcapng(MADE[:HALF], order=">") + pcapng(MADE[HALF:], order="<"),
    "frames with their check sequence": pcap([Packet(each.time_ns, each.data, each.wire + 4) for each in MADE]),
    "snaplen 96": pcap([Packet(each.time_ns, each.data[:96], each.wire) for each in MADE]),
}
REFUSED = {
    "QUIC alone": (pcap(inside(as_udp, MADE)), "none of its 4673 packets is of TCP; of QUIC, a sender's qlog"),
    "packets without stamps": (without_stamps(MADE), "packets without time stamps"),
    "ERF": (pcap(MADE, link=197), "link type 197: a capture of the interface that has IP"),
    "PPI around Wi-Fi": (pcap(inside(lambda frame: ppi(b"")[:4] + b"\x69\0\0\0" + frame, MADE), link=192), "is of TCP"),
    "snoop": (b"snoop\0\0\0\0\0\0\2\0\0\0\4", "a capture of snoop"),
    "Network Monitor": (b"GMBU" + bytes(200), "Microsoft's Network Monitor"),
    "text of tcpdump": (b"12:00:00.000001 IP 192.0.2.1.443 > 192.0.2.2.5000: Flags [S], seq 1\n" * 9, "tcpdump prints"),
    "table of Wireshark": (b'"No.","Time","Source","Destination","Protocol"\n"1","0","a","b","TCP"\n', "a table"),
    "page": (b"<!DOCTYPE html><html></html>", "not a recording\n  Take the packets themselves: 'tcpdump -w"),
    "archive": (b"PK\3\4" + bytes(90), "a zip archive"),
    "empty": (b"", "it is empty"),
    "header alone": (pcap([]), "it holds no packets"),
    "words": (b"hello\n", "nothing here reads such a file"),
}  # fmt: skip


def read(content: bytes, tmp_path: Path) -> Explained:
    (tmp_path / "it").write_bytes(content)
    (flow,) = read_files([tmp_path / "it"], 1).flows
    return flow


@pytest.mark.parametrize("name", READ)
def test_the_flow_is_read_as_from_ethernet(name: str, tmp_path: Path) -> None:
    flow = read(READ[name], tmp_path)
    assert flow.at == "sender" and flow.exit is not None and flow.exit.cause == "loss" and flow.exit.round == 4
    assert flow.rate_bits_per_second.value == pytest.approx(20e6, rel=0.005)
    assert flow.buffer_bytes.value == pytest.approx(100_000, rel=0.1)
    assert flow.retransmitted_packets == 231


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_read_says_what_to_do(name: str, tmp_path: Path) -> None:
    content, said = REFUSED[name]
    with pytest.raises(RecordError) as error:
        read(content, tmp_path)
    assert said in str(error.value)


def test_what_is_in_front_of_the_end_of_a_cut_archive_counts(tmp_path: Path) -> None:
    packed = gzip.compress(pcap(MADE), 1)
    (tmp_path / "it").write_bytes(packed[: len(packed) * 2 // 3])
    found = read_files([tmp_path / "it"], 1)
    assert found.flows[0].exit is not None and found.flows[0].exit.cause == "loss"
    assert "cut off" in found.problems[0] or "cut off" in " ".join(found.problems)


def secured() -> list[Packet]:
    """TLS on 443, seen at the client: hello, certificates, a request, and the answer in three rounds of slow start."""
    talk = Talk()
    at = talk.open()
    asked, said = 1517, 5000
    talk.say(at, True, 1000, said, 517, flags=ACK | PSH, window=8192)
    at += 40 * _MS
    for size in (MSS, MSS, MSS, 300):
        talk.say(at, False, said, asked, size)
        said, at = said + size, at + 600_000
    talk.say(at, True, asked, said, window=8192)
    talk.say(at, True, asked, said, 380, flags=ACK | PSH, window=8192)
    asked, at = asked + 380, at + 40 * _MS
    for turn in range(3):
        for number in range(10 << turn):
            talk.say(at + number * 605_000, False, said, asked, MSS)
            said += MSS
            if number % 2:
                talk.say(at + number * 605_000 + 5000, True, asked, said, window=8192)
        at += max(41 * _MS, (10 << turn) * 605_000)
    talk.packets.sort(key=lambda each: each.time_ns)
    return talk.packets


def test_the_first_flight_of_tls_is_no_initial_window(tmp_path: Path) -> None:
    flow = read(pcap(secured()), tmp_path)
    assert flow.opener == "receiver" and flow.retransmitted_packets == 0
    assert flow.initial_window_packets is None and "application" in flow.unknown["initial_window"]
    assert flow.exit is None and flow.limit == "application"
