# SPDX-License-Identifier: Apache-2.0
"""What a capture tells of a transfer whose path and ends are known exactly, and what it must not tell."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from howdah.explain.estimate import Estimate
from howdah.explain.explained import Explained
from howdah.explain.hystart import detections
from howdah.explain.page import write_page
from howdah.explain.read import read_files
from howdah.explain.startup import _detector
from howdah.explain.words import sentence, text
from howdah.held import HeldBy
from howdah.measure.cause import ACK_TRAIN, DELAY, UNKNOWN
from tests.explain.damage import Packet, pcap
from tests.explain.made import Path as Drawn
from tests.explain.made import Written, transfer


def explained(drawn: Drawn, place: Path) -> Explained:
    file = place / "recording"
    file.write_bytes(pcap(transfer(drawn)))
    return read_files([file], 1).flows[0]


@pytest.mark.parametrize(("before_ms", "at"), [(0, "sender"), (8, "middle"), (19.5, "receiver")])
def test_where_the_tap_was(before_ms: float, at: str, tmp_path: Path) -> None:
    flow = explained(Drawn(before_ns=round(before_ms * 1e6), buffer_bytes=100_000), tmp_path)
    assert flow.at == at
    assert flow.base_rtt_us.value == pytest.approx(40_000, rel=0.01)
    assert flow.rate_bits_per_second.value == pytest.approx(20e6, rel=0.02)
    assert flow.exit is not None and flow.exit.cause == "loss"
    assert flow.exit.packets.value == pytest.approx(266, rel=0.05)


def wandering(number: int) -> int:
    """A delay that wanders within 12 ms in steps, each so small that no segment overtakes another."""
    return round(2_000_000 * sum(1 + math.sin(number // 6 / period + period) for period in (7, 17, 41)))


@pytest.mark.parametrize("before_ms", [0, 8])
@pytest.mark.parametrize("total_bytes", [4_000_000, 400_000])
def test_a_varying_delay_makes_no_interval_without_the_truth(
    total_bytes: int, before_ms: float, tmp_path: Path
) -> None:
    drawn = Drawn(buffer_bytes=100_000, total_bytes=total_bytes, before_ns=round(before_ms * 1e6), overtakes=wandering)
    flow = explained(drawn, tmp_path)
    for found, true in ((flow.rate_bits_per_second, 20e6), (flow.buffer_bytes, 100_000)):
        assert (found.low or 0) <= true <= (found.high or 1e12), found


def test_a_rate_shows_through_a_varying_delay_where_the_queue_is_longer(tmp_path: Path) -> None:
    flow = explained(Drawn(overtakes=wandering), tmp_path)
    assert flow.rate_bits_per_second.value == pytest.approx(20e6, rel=0.02)


@pytest.mark.parametrize("window_bytes", [6_000, 15_000, 30_000, 60_000, 90_000])
def test_a_small_window_over_a_varying_delay_is_not_the_path_s_rate(window_bytes: int, tmp_path: Path) -> None:
    """Window over mean round trip is a steady rate, and the delay above its least looks like a queue."""
    rate = explained(Drawn(window_bytes=window_bytes, overtakes=wandering), tmp_path).rate_bits_per_second
    assert rate.reason or rate.value == pytest.approx(20e6, rel=0.02), "by the spacing of the first windows"
    assert rate.low is not None and window_bytes / 0.052 * 8 * 0.6 < rate.low <= 20e6


def test_each_detection_has_what_was_seen_where_it_spoke(tmp_path: Path) -> None:
    """The words of an exit told the length of a later train: 0.6 ms, longer than 20.5 ms."""
    flow = explained(Drawn(), tmp_path)
    assert flow.parts is not None
    _seen, trips, course, _start = flow.parts
    found = detections(course, trips, len(course) - 1)
    assert found.trains and found.delays
    assert all(length > need >= 20_000_000 for length, need in found.trains.values())
    assert all(rise > need >= 4_000_000 for rise, need in found.delays.values())
    until_first = detections(course, trips, next(iter(found.trains)))
    assert list(until_first.trains.items()) == list(found.trains.items())[:1]


def test_what_ended_the_growth_of_a_sender_that_paces_is_open(tmp_path: Path) -> None:
    """A model of the path ends it where a detector would speak as well."""
    flow = explained(Drawn(), tmp_path)
    assert flow.parts is not None
    _seen, trips, course, _start = flow.parts
    found = detections(course, trips, len(course) - 1)
    end = next(iter(found.trains))
    causes = {paced: _detector(course, trips, found, end, None, paced) for paced in (False, True)}
    assert causes[False].name in (ACK_TRAIN, DELAY)
    assert causes[True].name == UNKNOWN and not causes[True].sure


def test_a_receive_window_is_no_exit(tmp_path: Path) -> None:
    flow = explained(Drawn(window_bytes=100_000), tmp_path)
    assert flow.exit is None and flow.limit == "receive-window"
    assert flow.held_back_by is HeldBy.RECEIVE_BUFFER
    assert flow.holding is not None and flow.holding.window_bytes == 100_000 // 128 * 128
    assert flow.holding.share(HeldBy.RECEIVE_BUFFER) > 0.85
    assert "97.6 KiB" in sentence(flow)


def test_a_transfer_that_ended_first_is_no_exit(tmp_path: Path) -> None:
    flow = explained(Drawn(total_bytes=60_000), tmp_path)
    assert flow.exit is None and flow.limit == "application"
    assert flow.round_flights_packets[:2] == [10, 20]
    assert flow.rate_bits_per_second.value == pytest.approx(20e6, rel=0.02), "by the spacing of the first windows"


@pytest.mark.parametrize(("policed", "bucket_bytes"), [(4e6, 40_000), (4e6, 80_000), (8e6, 40_000), (12e6, 80_000)])
def test_behind_a_policer_a_queue_that_empties_did_not_drop(
    policed: float, bucket_bytes: float, tmp_path: Path
) -> None:
    """The bucket lets a burst pass, whose queue is the longest that there is; then packets are lost while it empties.
    Only the receiver's capture is here, in which nobody sees what came to the policer."""
    far: list[Packet] = []
    transfer(Drawn(policed=policed, bucket_bytes=bucket_bytes), far=far)
    file = tmp_path / "recording"
    file.write_bytes(pcap(far))
    (flow,) = read_files([file], 1).flows
    assert flow.loss_by is None and "the queue emptied while packets were lost" in flow.loss_words
    assert flow.buffer_bytes.value is None
    far.clear()
    transfer(Drawn(buffer_bytes=60_000), far=far)
    file.write_bytes(pcap(far))
    assert read_files([file], 1).flows[0].loss_by == "queue"


def test_the_end_of_a_transfer_is_no_byte_of_it(tmp_path: Path) -> None:
    """A FIN has a number, and an ACK counts it."""
    first, size = 1000, 60_000
    packets = transfer(Drawn(total_bytes=size), first)
    last = packets[-1].time_ns - Written.EPOCH_NS
    end = Written().packet(last + 1000, True, first + size, 1, 0, 502, (9000, 5000), flags=0x11)
    answer = Written().packet(last + 40_000_000, False, 1, first + size + 1, 0, 502, (9000, 9000))
    file = tmp_path / "recording"
    for behind in ([], [end], [end, answer]):
        file.write_bytes(pcap([*packets, *behind]))
        assert read_files([file], 1).flows[0].data_bytes == size


def test_a_proxy_that_answers_the_handshake_is_told_and_not_believed(tmp_path: Path) -> None:
    flow = explained(Drawn(split_ns=10_000_000), tmp_path)
    assert flow.base_rtt_us.value == pytest.approx(40_000, rel=0.05)
    assert any("answered the handshake" in note for note in flow.notes)


def test_what_is_sent_again_for_nothing_is_told_apart(tmp_path: Path) -> None:
    """Segments that come 3 ms late are reported by SACK as missing, and sent again: nothing was lost."""
    flow = explained(Drawn(overtakes=lambda number: 3_000_000 if number % 97 == 50 else 0), tmp_path)
    assert flow.retransmitted_packets and flow.spurious_packets == flow.retransmitted_packets
    assert flow.loss_by is None


def test_what_is_only_overtaken_is_no_loss(tmp_path: Path) -> None:
    """At the receiver a segment that fills a hole with an older stamp was overtaken."""
    drawn = Drawn(before_ns=0, total_bytes=600_000, window_bytes=60_000)
    packets = transfer(drawn)
    data = [each for each in packets if each.wire > 1000]
    for first, second in zip(data[20::40], data[21::40], strict=False):
        first.time_ns, second.time_ns = second.time_ns, first.time_ns
    packets.sort(key=lambda each: each.time_ns)
    (tmp_path / "recording").write_bytes(pcap(packets))
    flow = read_files([tmp_path / "recording"], 1).flows[0]
    assert flow.retransmitted_packets == 0
    assert flow.late_packets and flow.late_packets >= 5


def test_the_sender_s_interface_is_seen_at_the_sender_alone(tmp_path: Path) -> None:
    near, far = (explained(Drawn(before_ns=before), tmp_path) for before in (0, 19_500_000))
    assert near.sender_interface_bits_per_second.value == pytest.approx(1e9, rel=0.01)
    assert far.sender_interface_bits_per_second.value is None and far.sender_interface_bits_per_second.reason


def test_each_estimate_has_an_interval_around_it_or_a_reason(tmp_path: Path) -> None:
    for drawn in (Drawn(), Drawn(total_bytes=20_000), Drawn(window_bytes=30_000), Drawn(buffer_bytes=50_000)):
        flow = explained(drawn, tmp_path)
        for each in (flow.base_rtt_us, flow.rate_bits_per_second, flow.buffer_bytes, flow.overshoot_packets):
            if each.value is None:
                assert each.reason
            else:
                assert each.how
                assert each.low is None or each.low <= each.value
                assert each.high is None or each.high >= each.value


def test_a_path_without_a_round_trip_has_no_bdp_and_a_page(tmp_path: Path) -> None:
    """A clock as coarse as the transfer is long has a round trip of 0."""
    flow = explained(Drawn(buffer_bytes=100_000), tmp_path)
    flow.base_rtt_us = Estimate(0.0, 0.0, 20_000.0, "the handshake")
    assert flow.bdp_packets is None
    write_page([flow], [], [], tmp_path / "page.html")
    assert "left slow start" in (tmp_path / "page.html").read_text()


def test_what_a_name_does_to_a_terminal(tmp_path: Path) -> None:
    flow = explained(Drawn(total_bytes=60_000), tmp_path)
    flow.name = "\x1b[31mred"
    from howdah.foreign import escape_controls

    assert "\x1b" not in escape_controls(text([flow], [], 0, []))


@pytest.mark.parametrize("lost", [(300,), (300, 301)])
def test_one_or_two_losses_at_a_growing_queue_may_be_chance(lost: tuple[int, ...], tmp_path: Path) -> None:
    """The loss ends growth, so the queue was never longer than in front of it; a full one drops more."""
    flow = explained(Drawn(loses=lambda number: number in lost, total_bytes=2_000_000), tmp_path)
    assert flow.loss_by is None and flow.loss_words
    assert flow.buffer_bytes.value is None and (flow.buffer_bytes.low or 0) > 0
    assert flow.exit is not None and flow.exit.cause == "loss"
