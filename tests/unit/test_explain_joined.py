# SPDX-License-Identifier: Apache-2.0
"""Both ends of a transfer whose path, losses and clocks are known exactly, joined."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path

import pytest

from howdah.command.main import main
from howdah.explain.joined import Leg
from howdah.explain.read import read_files
from tests.explain.damage import Packet, pcap
from tests.explain.made import Path as Drawn
from tests.explain.made import transfer
from tests.json_shape import check_shape

MS = 1_000_000


def both(drawn: Drawn, place: Path, *, offset_ns: int = 0, skew_ppm: float = 0.0) -> list[Path]:
    """Captures at the sender and, by another clock, at the receiver."""
    far: list[Packet] = []
    near = transfer(drawn, far=far)
    begin = near[0].time_ns
    there = [
        Packet(each.time_ns + offset_ns + round((each.time_ns - begin) * skew_ppm * 1e-6), each.data, each.wire)
        for each in far
    ]
    files = [place / "sender.pcap", place / "receiver.pcap"]
    for file, packets in zip(files, (near, there), strict=True):
        file.write_bytes(pcap(packets))
    return files


def leg(files: list[Path]) -> Leg:
    (joined,) = read_files(files, 5).joined
    (found,) = joined.legs
    return found


def lost_between(files: list[Path]) -> int:
    """Frames with data that the first file has and the second has not, by their own bytes."""
    from tests.explain.damage import read

    near, far = ([each.data for each in read(file) if each.wire > 100] for file in files)
    return len(near) - len(far)


@pytest.mark.parametrize("turned", [False, True])
def test_losses_are_counted_where_they_are_whatever_order_the_files_have(turned: bool, tmp_path: Path) -> None:
    files = both(Drawn(buffer_bytes=100_000), tmp_path)
    found = leg(files[::-1] if turned else files)
    assert (found.near, found.far) == ("sender.pcap", "receiver.pcap")
    assert found.lost == lost_between(files) > 20
    assert found.acks_lost == 0 and found.data.unseen == 0
    assert found.loss_by == "queue"
    assert found.clocks.data_ns.max() / 1e6 == pytest.approx(100_000 * 8 / 20e3, rel=0.03), "the buffer, at its rate"
    assert found.clocks.ack_ns.max() == 0


@pytest.mark.parametrize("offset_ns", [0, 7_000 * MS, -3_600_000 * MS])
def test_the_clocks_offset_lies_in_what_is_told_and_changes_no_delay(offset_ns: int, tmp_path: Path) -> None:
    found = leg(both(Drawn(buffer_bytes=100_000), tmp_path, offset_ns=offset_ns))
    offset = found.clocks.offset_ns
    assert offset.value == pytest.approx(offset_ns, abs=0.5 * MS), "the way there and back are alike, but for a frame"
    assert offset.low is not None and offset.high is not None and offset.low <= offset_ns <= offset.high
    assert offset.high - offset.low == pytest.approx(40 * MS, rel=0.02), "the least round trip"
    assert found.clocks.data_ns.max() / 1e6 == pytest.approx(40, rel=0.03)
    assert found.clocks.skew_ppm.value == 0


@pytest.mark.parametrize("skew_ppm", [-180.0, 40.0, 300.0])
def test_clocks_that_part_are_found_by_how_fast(skew_ppm: float, tmp_path: Path) -> None:
    found = leg(both(Drawn(buffer_bytes=100_000), tmp_path, offset_ns=5 * MS, skew_ppm=skew_ppm))
    skew = found.clocks.skew_ppm
    assert skew.value == pytest.approx(skew_ppm, rel=0.02)
    assert skew.low is not None and skew.high is not None and skew.low <= skew_ppm <= skew.high
    assert found.clocks.data_ns.max() / 1e6 == pytest.approx(40, rel=0.03), "delays are without it"
    assert found.clocks.ack_ns.max() < 10_000


def test_a_policer_is_told_from_a_queue_with_its_rate_and_its_bucket(tmp_path: Path) -> None:
    drawn = Drawn(rate=100e6, policed=10e6, bucket_bytes=60_000, total_bytes=6_000_000)
    files = both(drawn, tmp_path)
    found = leg(files)
    assert found.loss_by == "policer", found.loss_words
    assert found.bucket is not None
    assert found.bucket.rate_bits_per_second == pytest.approx(10e6, rel=0.05)
    assert found.bucket.burst_bytes == pytest.approx(60_000, rel=0.1)
    flows = read_files(files, 5).flows
    assert {flow.loss_by for flow in flows} == {"policer"}, "what both ends know is said of each"


def test_chance_is_no_policer(tmp_path: Path) -> None:
    drawn, unlucky = random.Random(2), {20}
    while max(unlucky) < 6000:
        unlucky.add(max(unlucky) + drawn.randrange(40, 160))
    found = leg(both(Drawn(loses=unlucky.__contains__, total_bytes=6_000_000), tmp_path))
    assert found.lost >= 5
    assert found.loss_by == "random" and found.bucket is None


@pytest.mark.parametrize("buffer_bytes", [12_000, 5_000])
def test_a_shallow_queue_is_no_policer_and_no_chance(buffer_bytes: int, tmp_path: Path) -> None:
    found = leg(both(Drawn(rate=50e6, buffer_bytes=buffer_bytes, total_bytes=6_000_000), tmp_path))
    assert found.lost >= 4
    assert found.loss_by in (None, "queue"), found.loss_words


def test_what_the_far_capture_lost_itself_is_no_loss_of_the_path(tmp_path: Path) -> None:
    files = both(Drawn(window_bytes=60_000), tmp_path)
    from tests.explain.damage import read

    packets = read(files[1])
    data = [number for number, each in enumerate(packets) if each.wire > 1000]
    gone = set(data[100:120])
    files[1].write_bytes(pcap([each for number, each in enumerate(packets) if number not in gone]))
    found = leg(files)
    assert found.lost == 0 and found.data.unseen == 20


def test_ends_of_two_transfers_are_not_joined(tmp_path: Path) -> None:
    files = both(Drawn(buffer_bytes=100_000), tmp_path)
    files[1].write_bytes(pcap(transfer(Drawn(buffer_bytes=100_000, before_ns=19 * MS), first=1_000_000)))
    assert read_files(files, 5).joined == []


def test_the_command_tells_each_leg(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = both(Drawn(buffer_bytes=100_000), tmp_path, offset_ns=5 * MS)
    assert main(["explain", *map(str, files)]) == 0
    said = capsys.readouterr().out
    assert "from sender.pcap to receiver.pcap" in said and "clock of the far" in said
    assert main(["explain", *map(str, files), "--json"]) == 0
    value = json.loads(capsys.readouterr().out)
    assert check_shape(value) == "explain"
    (told,) = value["joined"][0]["legs"]
    assert told["lost_packets"] == lost_between(files) and told["loss_by"] == "queue"
    assert told["clock_offset_us"]["low"] <= 5000 <= told["clock_offset_us"]["high"]


def test_the_page_draws_each_leg_s_delays_there_and_back_and_its_losses(tmp_path: Path) -> None:
    """A cross for each packet lost between the taps, a square for each that passed both."""
    files = both(Drawn(buffer_bytes=100_000), tmp_path)
    page = tmp_path / "page.html"
    assert main(["explain", *map(str, files), "--page", str(page)]) == 0
    text = page.read_text()
    (there,) = _pictures(text, "Delay beyond the least from sender.pcap to receiver.pcap")
    assert "Delay beyond the least back" not in text, "a line at zero shows nothing"
    lost = lost_between(files)
    assert there.count("l6 6m0 -6l-6 6") == lost
    (joined,) = read_files(files, 5).joined
    passed = int(joined.legs[0].data.passed.sum())
    assert there.count("h1.8v1.8h-1.8z") == passed - passed // 2, "of more than a picture shows, each second one"
    said = f"{lost} of {lost + passed} packets were lost between sender.pcap and receiver.pcap"
    assert said in re.sub(r"\s+", " ", text)


def _pictures(page: str, *labels: str) -> list[str]:
    """The first drawing with each label, for wide screens."""
    found = []
    for label in labels:
        begin = page.index(f'aria-label="{label}')
        found.append(page[begin : page.index("</svg>", begin)])
    return found


def three(place: Path) -> list[Path]:
    """Captures at the receiver, in front of the queue and at the sender."""
    far: list[Packet] = []
    packets = transfer(Drawn(buffer_bytes=100_000, before_ns=8 * MS), far=far)
    near = transfer(Drawn(buffer_bytes=100_000))
    files = [place / name for name in ("receiver.pcap", "middle.pcap", "sender.pcap")]
    for file, each in zip(files, (far, packets, near), strict=True):
        file.write_bytes(pcap(each))
    return files


def test_a_tap_between_the_ends_makes_two_legs_and_says_on_which_packets_were_lost(tmp_path: Path) -> None:
    """The queue is behind the tap in the middle."""
    read = read_files(three(tmp_path), 5)
    (joined,) = read.joined
    assert joined.files == ["sender.pcap", "middle.pcap", "receiver.pcap"]
    assert [each.lost > 0 for each in joined.legs] == [False, True]
    one_way = [each.clocks.data_least_ns.value for each in joined.legs]
    assert one_way == [pytest.approx(8 * MS, rel=0.05), pytest.approx(12 * MS, rel=0.1)]


def test_one_connection_at_three_taps_has_one_sentence_and_its_legs_in_the_headline(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert main(["explain", *map(str, three(tmp_path)), "--page", str(page)]) == 0
    text = page.read_text()
    begin = text.index('<div class="found">')
    said = re.findall("<p>(.*?)</p>", text[begin : text.index("</div>", begin)], re.DOTALL)
    assert len(said) == 3
    assert "left slow start" in said[0]
    assert ["between sender.pcap and middle.pcap" in each for each in said] == [False, True, False]
    assert "between middle.pcap and receiver.pcap" in said[2]
    headings = re.findall(r'<h2 id="flow-\d+">(.*?)</h2>', text)
    assert [each.rpartition(" ")[2] for each in headings] == ["receiver.pcap", "middle.pcap", "sender.pcap"]
    assert text.count('aria-label="Delay beyond the least') == 2, "of four ways one has a queue: wide and narrow"
    assert text.count("varies by less than 0.1\u00a0ms") == 3
