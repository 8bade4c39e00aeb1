# SPDX-License-Identifier: Apache-2.0
"""Decoding of trace_pipe_raw: recordings of a 6.12 kernel against the kernel's own text, and hand-made sub-buffers."""

from __future__ import annotations

import gzip
import re
import struct
from pathlib import Path

import numpy as np
import pytest

from howdah.errors import HowdahError
from howdah.ingest.ring_buffer import Layout, Trace, read_trace
from howdah.ingest.trace_format import parse_event_format, parse_event_header, parse_page_header

GOLDEN = Path(__file__).parent.parent / "golden" / "raw"
NAMES = ("sport", "dport", "data_len", "snd_nxt", "snd_una", "snd_cwnd", "ssthresh", "snd_wnd", "srtt", "rcv_wnd")
HEXADECIMAL = ("snd_nxt", "snd_una")
LINE = re.compile(
    r" (\d+)\.(\d{6}): .*src=\S+:(\d+) dest=\S+:(\d+) .*data_len=(\d+) snd_nxt=0x(\w+) snd_una=0x(\w+) "
    r"snd_cwnd=(\d+) ssthresh=(\d+) snd_wnd=(\d+) srtt=(\d+) rcv_wnd=(\d+)"
)

PADDING, TIME_EXTEND, TIME_STAMP = 29, 30, 31


def layout_of(name: str, subbuffer_bytes: int) -> Layout:
    directory = GOLDEN / name
    return Layout(
        parse_page_header((directory / "header_page").read_text(), "header_page"),
        parse_event_header((directory / "header_event").read_text(), "header_event"),
        parse_event_format((directory / "tcp_probe.format").read_text(), "tcp_probe.format"),
        subbuffer_bytes,
    )


def recorded(name: str, path: Path) -> Path:
    file = path / "tcp_probe.bin"
    file.write_bytes(gzip.decompress((GOLDEN / name / "tcp_probe.bin.gz").read_bytes()))
    return file


def test_every_field_equals_the_kernels_own_text(tmp_path: Path) -> None:
    trace = read_trace(recorded("plain", tmp_path), layout_of("plain", 4096), NAMES)
    text = gzip.decompress((GOLDEN / "plain" / "trace.txt.gz").read_bytes()).decode()
    lines = [match.groups() for line in text.splitlines() if (match := LINE.search(line))]
    assert len(lines) == trace.time_ns.size == 918
    assert (trace.lost_events, trace.lost_uncounted, trace.damaged) == (0, 0, 0)
    for row, line in enumerate(lines):
        assert abs(int(line[0]) * 10**6 + int(line[1]) - trace.time_ns[row] / 1000) <= 1
        for column, value in zip(NAMES, line[2:], strict=True):
            assert int(value, 16 if column in HEXADECIMAL else 10) == trace.columns[column][row]


def test_the_size_of_a_sub_buffer_changes_no_record(tmp_path: Path) -> None:
    small = read_trace(recorded("plain", tmp_path), layout_of("plain", 4096), NAMES)
    large = read_trace(recorded("sub16", tmp_path), layout_of("sub16", 16384), NAMES)
    # Two boots: the same records but for initial sequence numbers and a few microseconds of set-up.
    for name in ("sport", "data_len", "snd_cwnd", "ssthresh", "rcv_wnd"):
        assert np.array_equal(small.columns[name], large.columns[name])


def test_records_lost_to_a_late_reader_are_counted(tmp_path: Path) -> None:
    trace = read_trace(recorded("lost", tmp_path), layout_of("lost", 4096), NAMES)
    statistics = (GOLDEN / "lost" / "stats").read_text()
    overrun = int(re.search(r"overrun: (\d+)", statistics).group(1))  # type: ignore[union-attr]
    assert trace.lost_events == overrun == 420
    assert trace.time_ns.size == 918 - overrun


def test_a_file_cut_inside_a_sub_buffer_keeps_the_whole_ones(tmp_path: Path) -> None:
    file = recorded("plain", tmp_path)
    whole = read_trace(file, layout_of("plain", 4096), NAMES)
    file.write_bytes(file.read_bytes()[: 10 * 4096 + 1234])
    cut = read_trace(file, layout_of("plain", 4096), NAMES)
    assert 0 < cut.time_ns.size < whole.time_ns.size
    assert np.array_equal(cut.time_ns, whole.time_ns[: cut.time_ns.size])
    assert cut.damaged == 1
    assert "tcp_probe.bin at byte 40960" in str(cut.damage[0])
    assert cut.damaged_bytes == 1234


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    file = tmp_path / "tcp_probe.bin"
    file.touch()
    trace = read_trace(file, layout_of("plain", 4096), NAMES)
    assert trace.time_ns.size == 0
    assert set(trace.columns) == set(NAMES)
    assert trace.damaged == 0


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(HowdahError, match=r"gone\.bin"):
        read_trace(tmp_path / "gone.bin", layout_of("plain", 4096), NAMES)


@pytest.mark.parametrize("garbage", [b"\xff" * 4096, b"\x00" * 4096])
def test_a_garbled_sub_buffer_costs_itself_only(garbage: bytes, tmp_path: Path) -> None:
    file = recorded("plain", tmp_path)
    good = read_trace(file, layout_of("plain", 4096), NAMES)
    data = bytearray(file.read_bytes())
    data[3 * 4096 : 4 * 4096] = garbage
    file.write_bytes(data)
    trace = read_trace(file, layout_of("plain", 4096), NAMES)
    lost = good.time_ns.size - trace.time_ns.size
    assert 20 <= lost <= 30
    assert trace.damaged == 1
    assert trace.damage[0].offset_bytes == 3 * 4096


def test_no_byte_pattern_raises(tmp_path: Path) -> None:
    random = np.random.default_rng(7)
    file = recorded("plain", tmp_path)
    original = file.read_bytes()
    for _ in range(25):
        data = bytearray(original)
        for position in random.integers(0, len(data), 200).tolist():
            data[position] = int(random.integers(0, 256))
        file.write_bytes(data[: int(random.integers(1, len(data)))])
        trace = read_trace(file, layout_of("plain", 4096), NAMES)
        assert all(column.size == trace.time_ns.size for column in trace.columns.values())


# Hand-made sub-buffers: what a short recording does not contain.


def word(kind: int, delta: int) -> bytes:
    return struct.pack("<I", kind | delta << 5)


def record(delta: int, cwnd: int, event: int = 347) -> bytes:
    payload = bytearray(136)
    struct.pack_into("<H", payload, 0, event)
    struct.pack_into("<I", payload, 88, cwnd)
    return word(0, delta) + struct.pack("<I", len(payload) + 4) + bytes(payload)


def sub_buffer(time_ns: int, events: bytes, flags: int = 0, after: bytes = b"") -> bytes:
    return (struct.pack("<Qq", time_ns, len(events) | flags) + events + after).ljust(4096, b"\0")


def decode(tmp_path: Path, *pages: bytes) -> Trace:
    file = tmp_path / "made.bin"
    file.write_bytes(b"".join(pages))
    return read_trace(file, layout_of("plain", 4096), ("snd_cwnd",))


def test_times_add_up_over_extends_stamps_and_padding(tmp_path: Path) -> None:
    extend = word(TIME_EXTEND, 5) + struct.pack("<I", 3)
    discarded = word(PADDING, 7) + struct.pack("<I", 12) + bytes(8)
    rest = word(PADDING, 0) + bytes(16)
    events = record(10, 1) + extend + record(1, 2) + discarded + record(1, 3) + rest
    trace = decode(tmp_path, sub_buffer(1000, events))
    extended = 1010 + (3 << 27) + 5 + 1
    # A discarded event's time still counts: the next delta is taken from it.
    assert trace.time_ns.tolist() == [1010, extended, extended + 7 + 1]
    assert trace.columns["snd_cwnd"].tolist() == [1, 2, 3]
    assert trace.damaged == 0


def test_an_absolute_time_stamp_takes_its_top_bits_from_the_time_before(tmp_path: Path) -> None:
    start = (3 << 59) + 100
    stamp = 123456789
    events = record(10, 1) + word(TIME_STAMP, stamp & ((1 << 27) - 1)) + struct.pack("<I", stamp >> 27) + record(2, 2)
    trace = decode(tmp_path, sub_buffer(start, events))
    assert trace.time_ns.tolist() == [start + 10, (3 << 59) + stamp + 2]


def test_short_events_carry_their_length_in_the_header(tmp_path: Path) -> None:
    short = word(2, 4) + struct.pack("<HHI", 99, 0, 0)  # eight bytes of another event
    trace = decode(tmp_path, sub_buffer(0 + 50, record(1, 7) + short + record(1, 8)))
    assert trace.time_ns.tolist() == [51, 56]
    assert trace.foreign_events == 1


def test_missed_events_with_and_without_a_count(tmp_path: Path) -> None:
    both, only = -(1 << 31) | 1 << 30, -(1 << 31)
    counted = sub_buffer(10, record(1, 1), both, struct.pack("<q", 17))
    silent = sub_buffer(20, record(1, 2), only)
    trace = decode(tmp_path, counted, silent)
    assert (trace.lost_events, trace.lost_uncounted) == (17, 1)
    assert trace.columns["snd_cwnd"].tolist() == [1, 2]


def test_an_event_that_overruns_its_sub_buffer_is_damage_with_its_place(tmp_path: Path) -> None:
    wrong = word(0, 1) + struct.pack("<I", 5000)
    trace = decode(tmp_path, sub_buffer(1, record(1, 1)), sub_buffer(2, record(1, 2) + wrong))
    assert trace.columns["snd_cwnd"].tolist() == [1, 2]
    assert trace.damage[0].offset_bytes == 4096 + 16 + 144
    assert "does not fit" in trace.damage[0].what


def test_a_format_without_a_needed_field_is_refused(tmp_path: Path) -> None:
    with pytest.raises(HowdahError, match="no field 'sk_mood'"):
        read_trace(recorded("plain", tmp_path), layout_of("plain", 4096), ("sk_mood",))


@pytest.mark.parametrize("text", ["", "field: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;"])
def test_an_unknown_page_header_is_refused(text: str) -> None:
    with pytest.raises(HowdahError, match="header_page"):
        parse_page_header(text, "raw/header_page")


@pytest.mark.parametrize("seed", range(40))
def test_few_sub_buffers_are_read_as_many_are(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One by one or together: the same records, and the same damage."""
    file = recorded("plain", tmp_path)
    data = bytearray(file.read_bytes())
    chance = np.random.default_rng(seed)
    for _ in range(seed):  # words that are anything, some of them headers of other kinds of events
        place = int(chance.integers(0, len(data) // 4)) * 4
        kind = int(chance.choice([0, 1, 28, PADDING, TIME_EXTEND, TIME_STAMP]))
        data[place : place + 4] = struct.pack("<I", int(chance.integers(0, 1 << 27)) << 5 | kind)
    file.write_bytes(data)
    read: list[Trace] = []
    for few in (0, len(data)):
        monkeypatch.setattr("howdah.ingest.ring_buffer._FEW_PAGES", few)
        read.append(read_trace(file, layout_of("plain", 4096), NAMES))
    together, alone = read
    assert np.array_equal(together.time_ns, alone.time_ns)
    for name in NAMES:
        assert np.array_equal(together.columns[name], alone.columns[name])
    assert sorted(map(str, together.damage)) == sorted(map(str, alone.damage))
    assert (together.damaged_bytes, together.foreign_events) == (alone.damaged_bytes, alone.foreign_events)
