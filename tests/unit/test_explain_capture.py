# SPDX-License-Identifier: Apache-2.0
"""Captures in every wrapping that packets have, of a transfer whose path is known: nothing of it may be lost."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from howdah.errors import RecordError
from howdah.explain.explained import Explained
from howdah.explain.read import read_files
from tests.explain.damage import DAMAGES, HARMLESS, Packet, fragmented, pcap, pcapng, tunnelled
from tests.explain.made import Path as Drawn
from tests.explain.made import transfer
from tests.explain.recovery import ADDED_BYTES

LOSSY = Drawn(buffer_bytes=100_000, total_bytes=3_000_000)  # 20 Mbit/s x 40 ms = 66 frames, and as much of a buffer


def explained(content: bytes, place: Path) -> Explained:
    file = place / "recording"
    file.write_bytes(content)
    return read_files([file], 1).flows[0]


@pytest.mark.parametrize("damage", HARMLESS)
def test_a_wrapping_takes_nothing_from_what_is_found(damage: str, tmp_path: Path) -> None:
    flow = explained(DAMAGES[damage](transfer(LOSSY)), tmp_path)
    assert flow.base_rtt_us.value == pytest.approx(40_000, rel=0.001)
    assert flow.exit is not None and flow.exit.cause == "loss"
    # The queue holds 66 frames, the path as many; the loss is noticed when twice that has been sent again.
    assert flow.exit.packets.value == pytest.approx(266, abs=2)
    added = ADDED_BYTES.get(damage, 0)
    assert flow.rate_bits_per_second.value == pytest.approx(20e6 * (1514 + added) / 1514, rel=0.003)
    assert flow.buffer_bytes.value == pytest.approx(100_000 * (1514 + added) / 1514, rel=0.03)
    assert LOSSY.total_bytes - flow.data_bytes <= (2 * 1448 if damage == "cut off" else 0)
    assert flow.receive_window_most_bytes == (None if damage == "snaplen 64" else LOSSY.window_bytes // 128 * 128)


def test_what_a_capture_holds_twice_counts_once(tmp_path: Path) -> None:
    once, twice = (explained(DAMAGES[name](transfer(LOSSY)), tmp_path) for name in ("none", "captured twice"))
    assert twice.retransmitted_packets == once.retransmitted_packets
    assert any("twice" in note for note in twice.notes)
    # An ACK and what it lets go have one stamp: their order is the file's, whatever the addresses are.
    assert once.parts is not None and twice.parts is not None
    assert np.array_equal(twice.parts[2].flight, once.parts[2].flight)


@pytest.mark.parametrize("tunnel", [lambda frame: frame, tunnelled])
def test_fragments_of_a_segment_are_one(tunnel: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Of the segment itself, whose header is in the first one; and of a tunnel's packet around it."""
    packets = transfer(LOSSY)
    once = explained(pcap(packets), tmp_path)
    parts = fragmented(packets, tunnel)
    flow = explained(pcap(parts), tmp_path)
    assert len(parts) > 1.5 * len(packets) and not any("lost" in note for note in flow.notes)
    assert flow.data_bytes == once.data_bytes and flow.retransmitted_packets == once.retransmitted_packets
    assert flow.mss_bytes == once.mss_bytes and flow.loss_by == once.loss_by == "queue"
    assert flow.rate_bits_per_second.value == pytest.approx((once.rate_bits_per_second.value or 0) * 1.01, rel=0.02)


def test_a_start_in_mid_stream_says_so_and_names_no_cause(tmp_path: Path) -> None:
    flow = explained(DAMAGES["cut start"](transfer(LOSSY)), tmp_path)
    assert flow.exit is None and "begins after" in flow.why_no_exit
    assert flow.receive_window_most_bytes is None and flow.initial_window_packets is None
    assert flow.base_rtt_us.low is None, "a queue may have been there all the time"


def test_a_clock_of_ten_milliseconds_widens_what_it_tells(tmp_path: Path) -> None:
    flow = explained(DAMAGES["clock of 10 ms"](transfer(LOSSY)), tmp_path)
    low, high = flow.base_rtt_us.low, flow.base_rtt_us.high
    assert low is not None and high is not None and low <= 40_000 <= high and high - low >= 20_000


def test_two_interfaces_of_one_file_are_two_taps(tmp_path: Path) -> None:
    content = pcapng(transfer(LOSSY))
    first = content.index(b"\x01\0\0\0", 28)
    length = int.from_bytes(content[first + 4 : first + 8], "little")
    described = content[first : first + length]
    (tmp_path / "two").write_bytes(content[: first + length] + described + content[first + length :])
    assert len(read_files([tmp_path / "two"], 5).flows) == 1, "the second interface has no packets"


def test_many_connections_are_told_apart_and_the_largest_come_first(tmp_path: Path) -> None:
    packets: list[Packet] = []
    for number, size in enumerate((400_000, 900_000, 600_000)):
        for each in transfer(Drawn(total_bytes=size)):
            data = bytearray(each.data)
            at = 34 if data[26:30] == bytes([192, 0, 2, 1]) else 36
            data[at : at + 2] = (40000 + number).to_bytes(2, "big")
            packets.append(Packet(each.time_ns + number * 1000, bytes(data), each.wire))
    packets.sort(key=lambda each: each.time_ns)
    (tmp_path / "many").write_bytes(pcap(packets))
    read = read_files([tmp_path / "many"], 2)
    assert [flow.data_bytes for flow in read.flows] == [900_000, 600_000]
    assert read.others == 1


@pytest.mark.parametrize("seed", range(40))
def test_a_hostile_capture_ends_in_flows_or_one_message(seed: int, tmp_path: Path) -> None:
    """Bytes changed, cut, repeated and put in at random: an answer or a RecordError, and no number that is not one."""
    drawn = random.Random(seed)
    packets = transfer(Drawn(total_bytes=150_000))
    content = bytearray(pcap(packets) if seed % 2 else pcapng(packets))
    for _ in range(drawn.choice([1, 20, 400])):
        at = drawn.randrange(len(content))
        kind = drawn.randrange(4)
        if kind == 0:
            content[at] = drawn.randrange(256)
        elif kind == 1:
            del content[at : at + drawn.randrange(1, 60)]
        elif kind == 2:
            content[at:at] = content[at : at + drawn.randrange(1, 60)]
        else:
            content[at : at + 4] = drawn.choice([b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xff\xff\xff\x7f"])
    file = tmp_path / "hostile"
    file.write_bytes(content)
    try:
        found = read_files([file], 5)
    except RecordError:
        return
    for flow in found.flows:
        for each in (flow.base_rtt_us, flow.rate_bits_per_second, flow.buffer_bytes):
            assert each.value is None or each.value >= 0


@pytest.mark.parametrize(
    "content", [b"", b"\xd4\xc3\xb2\xa1", b"\x0a\x0d\x0d\x0a", b"GET / HTTP/1.0\r\n", b"{}", b"[1, 2]", b"\x1f\x8b\x08"]
)
def test_what_is_no_recording_is_refused_in_one_line(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "what"
    file.write_bytes(content)
    with pytest.raises(RecordError):
        read_files([file], 1)


def datagrams(count: int) -> list[Packet]:
    ip = bytes.fromhex("45000020000000004011000000000000") + bytes([192, 0, 2, 1, 198, 51, 100, 2])
    frame = b"\2\0\0\0\0\2\2\0\0\0\0\1\x08\x00" + ip[:12] + ip[-8:] + bytes.fromhex("138801bb000c0000") + b"quic"
    return [Packet(10**18 + number * 10**6, frame, len(frame)) for number in range(count)]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it is empty"),
        (gzip.compress(bytes(range(256)) * 8, mtime=0), "nothing here reads such a file"),
        (gzip.compress(b"x" * 4000, mtime=0)[:14], "the compressed file is damaged or cut off"),
        (pcap([]), "it holds no packets"),
        (pcap(transfer(LOSSY)[:1])[:60], "the file is cut off after 0 packets$"),
        (pcap(datagrams(7)), "none of its 7 packets is of TCP"),
        (pcap(datagrams(7), link=147), "nothing here reads its link type 147"),
        (pcap(transfer(LOSSY)[:3]), "none of its 3 packets has data: they are ACKs alone, or handshakes"),
    ],
)
def test_why_nothing_is_found_is_one_message(content: bytes, why: str, tmp_path: Path) -> None:
    (tmp_path / "it").write_bytes(content)
    with pytest.raises(RecordError, match=why) as raised:
        read_files([tmp_path / "it"], 1)
    assert "\n" not in raised.value.what


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(pcap(transfer(LOSSY)))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(RecordError, match="a link"):
        read_files([tmp_path / "link"], 1)


def test_a_large_file_is_told_by_its_megabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from howdah.explain import capture, records

    packets = transfer(Drawn(total_bytes=3_000_000))
    whole = [Packet(each.time_ns, each.data.ljust(each.wire, b"\0"), each.wire) for each in packets]
    (tmp_path / "x.pcap").write_bytes(pcap(whole))
    said: list[tuple[str, int, int]] = []
    monkeypatch.setattr(records, "BLOCK_BYTES", 500_000)
    capture.read_capture(tmp_path / "x.pcap", 5, lambda *each: said.append(each))
    assert said == [], "a small one is not"
    monkeypatch.setattr(capture, "_LARGE_MEGABYTES", 2)
    capture.read_capture(tmp_path / "x.pcap", 5, lambda *each: said.append(each))
    size = -(-(tmp_path / "x.pcap").stat().st_size // 1_000_000)
    assert {(what, total) for what, _, total in said} == {("reading x.pcap, MB", size)}
    done = [each for _, each, _ in said]
    assert done == sorted(done) and len(set(done)) > 2 and done[-1] >= size - 1
