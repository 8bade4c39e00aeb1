# SPDX-License-Identifier: Apache-2.0
"""Rings of files, as tcpdump -C, -G and Wireshark write them: their pieces are one capture, and other files are not."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.explain.read import Read, read_files
from howdah.explain.words import shown_flow
from tests.explain.damage import Packet, pcap, pcapng
from tests.explain.made import Path as Drawn
from tests.explain.made import transfer

LOSSY = Drawn(buffer_bytes=100_000)
HOUR_NS = 3_600_000_000_000


def pieces(packets: list[Packet], count: int) -> list[list[Packet]]:
    size = -(-len(packets) // count)
    return [packets[at : at + size] for at in range(0, len(packets), size)]


def later(packets: list[Packet], by_ns: int) -> list[Packet]:
    return [Packet(each.time_ns + by_ns, each.data, each.wire) for each in packets]


def written(place: Path, name: str, packets: list[Packet]) -> Path:
    (place / name).write_bytes(pcap(packets))
    return place / name


def said(read: Read) -> list[dict[str, object]]:
    return [{name: value for name, value in shown_flow(flow).plain().items() if name != "file"} for flow in read.flows]


@pytest.mark.parametrize(
    ("names", "format"),
    [
        (("cap.pcap", "cap.pcap1", "cap.pcap2"), pcap),
        (("cap.pcap2", "cap.pcap0", "cap.pcap1"), pcap),  # the ring went round
        (("a_00001_20260102030405.pcapng", "a_00002_20260102030406.pcapng", "a_00003_20260102030407.pcapng"), pcapng),
        (("at-235958.pcap.gz", "at-235959.pcap.gz", "at-000000.pcap.gz"), lambda packets: gzip.compress(pcap(packets))),
    ],
)
def test_pieces_say_what_the_whole_says(
    names: tuple[str, ...], format: Callable[[list[Packet]], bytes], tmp_path: Path
) -> None:
    whole = transfer(LOSSY)
    for name, piece in zip(names, pieces(whole, len(names)), strict=True):
        (tmp_path / name).write_bytes(format(piece))
    read = read_files([tmp_path / name for name in sorted(names)], 5)
    assert said(read) == said(read_files([written(tmp_path, "whole.pcap", whole)], 5))
    assert read.flows[0].file == f"{names[0]} … {names[-1]}" and read.problems == [] and read.joined == []


def test_pieces_of_two_taps_are_two_taps(tmp_path: Path) -> None:
    far: list[Packet] = []
    near = transfer(LOSSY, far=far)
    files = [
        written(tmp_path, f"{tap}.pcap{number}", piece)
        for tap, packets in (("sender", near), ("receiver", far))
        for number, piece in enumerate(pieces(packets, 3))
    ]
    (joined,) = read_files(files, 5).joined
    assert joined.files == ["sender.pcap0 … sender.pcap2", "receiver.pcap0 … receiver.pcap2"]
    whole = [written(tmp_path, f"{tap}.pcap", packets) for tap, packets in (("sender", near), ("receiver", far))]
    assert joined.legs[0].lost == read_files(whole, 5).joined[0].legs[0].lost > 0


@pytest.mark.parametrize("begins_in_mid_stream", [False, True])
def test_another_tap_by_a_clock_that_is_late_is_no_next_piece(begins_in_mid_stream: bool, tmp_path: Path) -> None:
    far: list[Packet] = []
    near = transfer(LOSSY, far=far)
    first = 300 if begins_in_mid_stream else 0
    files = [written(tmp_path, "h1.pcap", near[first:]), written(tmp_path, "h2.pcap", later(far[first:], HOUR_NS))]
    (joined,) = read_files(files, 5).joined
    assert joined.files == ["h1.pcap", "h2.pcap"]


def test_a_connection_that_has_the_ports_again_is_another_recording(tmp_path: Path) -> None:
    packets = transfer(LOSSY)
    files = [written(tmp_path, "run1.pcap", packets), written(tmp_path, "run2.pcap", later(packets, HOUR_NS))]
    assert [flow.file for flow in read_files(files, 5).flows] == ["run1.pcap", "run2.pcap"]


def test_files_of_other_names_are_apart(tmp_path: Path) -> None:
    """Two taps with holes may look like pieces; only names tell."""
    first, last = pieces(transfer(LOSSY), 2)
    read = read_files([written(tmp_path, "before.pcap", first), written(tmp_path, "behind.pcap", last)], 5)
    assert len(read.flows) == 2


def test_a_piece_that_is_missing_is_told(tmp_path: Path) -> None:
    parts = pieces(transfer(LOSSY), 5)
    read = read_files([written(tmp_path, f"cap.pcap{number}", parts[number]) for number in (0, 1, 3, 4)], 5)
    (flow,) = read.flows
    assert any(note.startswith("the capture lost ") for note in flow.notes)


def test_damage_of_a_piece_names_it(tmp_path: Path) -> None:
    first, last = pieces(transfer(LOSSY), 2)
    files = [written(tmp_path, "cap.pcap0", first), written(tmp_path, "cap.pcap1", last)]
    files[1].write_bytes(files[1].read_bytes()[:-7])
    (problem,) = read_files(files, 5).problems
    assert problem == f"cap.pcap1: the file is cut off after {len(last) - 1} packets"


def test_a_twin_is_made_of_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    whole = transfer(LOSSY)
    files = [written(tmp_path, f"cap.pcap{number}", piece) for number, piece in enumerate(pieces(whole, 2))]
    assert main(["new", "whole", "--from", str(written(tmp_path, "whole.pcap", whole))]) == 0
    assert main(["new", "parts", "--from", str(files[0]), "--from", str(files[1])]) == 0
    assert Path("whole.yaml").read_text().replace("whole", "parts") == Path("parts.yaml").read_text()
