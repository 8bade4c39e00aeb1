# SPDX-License-Identifier: Apache-2.0
"""The arithmetic of calibration, on arrivals with known answers."""

from __future__ import annotations

import pytest

from howdah.agent.calibration.buffer import BufferLoad, FillResult, depth_of, divide_load
from howdah.agent.calibration.train import dispersion, fitted_rate, robust_dispersion, train_packets
from howdah.agent.calibration.udp import Arrival

FRAME = 1514


def arrivals(numbers: list[int], gap_ns: int, early: int = 0) -> list[Arrival]:
    """Packets ``gap_ns`` apart, of which the first ``early`` came together, through a token bucket's burst."""
    return [Arrival(number, max(number - early, 0) * gap_ns) for number in numbers]


def test_the_rate_is_frames_over_time() -> None:
    # 1514 bytes every 30 280 ns are 400 Mbit/s.
    assert dispersion(arrivals(list(range(100)), 30_280), 100, FRAME) == pytest.approx(400e6)


def test_a_burst_at_the_start_does_not_count() -> None:
    assert dispersion(arrivals(list(range(100)), 30_280, early=10), 100, FRAME) == pytest.approx(400e6)


@pytest.mark.parametrize("buffer_packets", range(1, 12))
@pytest.mark.parametrize("rate", [5e6, 10e6, 20e6])
def test_the_shortest_trains_have_the_rate_too(buffer_packets: int, rate: float) -> None:
    """An idle bucket lets two frames pass at once; those behind them go by a timer, which is 700 ns late."""
    sent = train_packets(buffer_packets * FRAME, FRAME)
    frame_ns = FRAME * 8e9 / rate
    times = [0, 0, *(round(number * frame_ns) + 700 for number in range(1, sent - 1))]
    found = [Arrival(number, time_ns) for number, time_ns in enumerate(times)]
    assert dispersion(found, sent, FRAME) == pytest.approx(rate, rel=1e-6 if sent > 3 else 0.0012)
    assert robust_dispersion(found, sent, FRAME) == pytest.approx(rate, rel=1e-6 if sent > 3 else 0.0012)


def test_packets_lost_behind_the_bottleneck_do_not_change_the_rate() -> None:
    numbers = [number for number in range(100) if number % 7]
    assert dispersion(arrivals(numbers, 30_280), 100, FRAME) == pytest.approx(400e6)


@pytest.mark.parametrize(
    "found", [[], [Arrival(50, 5)], [Arrival(50, 5), Arrival(51, 5)], [Arrival(1, 0), Arrival(2, 9)]]
)
def test_too_few_arrivals_give_no_rate(found: list[Arrival]) -> None:
    assert dispersion(found, 100, FRAME) is None


def test_a_train_fits_into_the_buffer() -> None:
    assert train_packets(100_000, FRAME) * FRAME < 100_000
    assert train_packets(36_000_000, FRAME) == 500
    assert train_packets(1, FRAME) == train_packets(3 * FRAME, FRAME) == 3


def test_the_load_overfills_the_buffer_by_what_the_bottleneck_leaves() -> None:
    load = divide_load(12_000_000, FRAME, 400_000_000, 1_000_000_000, 1)
    assert load is not None
    offered = (load.bulk_frames + load.single_frames) * FRAME
    left_behind = offered * (1 - 400 / 1000)
    assert 1.14 * 12_000_000 < left_behind < 1.16 * 12_000_000
    # Large sends alone leave room, so that the buffer is filled up frame by frame.
    assert load.bulk_frames * FRAME * 0.6 < 12_000_000


def test_an_infinitely_fast_sender_sends_only_what_fits_and_a_little_more() -> None:
    load = divide_load(1_000_000, FRAME, 400_000_000, None, 1)
    assert load is not None
    assert 1.1 * 1_000_000 < (load.bulk_frames + load.single_frames) * FRAME < 1.25 * 1_000_000


def test_senders_as_slow_as_the_bottleneck_fill_it_together_or_not_at_all() -> None:
    assert divide_load(1_000_000, FRAME, 100_000_000, 100_000_000, 1) is None
    both = divide_load(1_000_000, FRAME, 100_000_000, 100_000_000, 2)
    assert both is not None
    assert 2 * (both.bulk_frames + both.single_frames) * FRAME * 0.5 == pytest.approx(1_150_000, rel=0.01)


def test_any_frame_may_take_the_last_place_so_all_are_sampled_unless_they_are_too_many() -> None:
    """At 25 Mbit/s behind 1 Gbit/s it is each fortieth frame: of every fourth one, none or all."""
    load = divide_load(1_000_000, FRAME, 25_000_000, 1_000_000_000, 1)
    assert load is not None
    assert all(load.is_sampled(number) for number in range(load.single_frames))
    many = BufferLoad(0, 100_000, 0)
    for step in (2, 3, 4, 10, 40):
        found = sum(many.is_sampled(number) for number in range(0, 100_000, step))
        assert 0.2 < found / (100_000 / step) < 0.3


def test_a_very_large_buffer_is_overfilled_by_thousands_of_frames_not_by_a_share() -> None:
    load = divide_load(225_000_000, FRAME, 10_000_000_000, None, 1)
    assert load is not None
    assert load.single_frames == 8001
    assert (load.bulk_frames + load.single_frames) * FRAME > 225_000_000 + 3900 * FRAME


@pytest.mark.parametrize("left", [0.0, 0.3, 1.0])
def test_the_depth_is_right_to_half_a_frame(left: float) -> None:
    """100 places at 10 Gbit/s: 99 frames go before the last, and what was left of the one that was leaving."""
    frame_ns = 1211.2
    base, waits = 90_000_000, [round((places + left) * frame_ns) for places in range(100)]
    left_ns = {number: number * 5000 for number in range(100)}
    came = [(number, left_ns[number] + base + wait) for number, wait in enumerate(waits)]
    found = depth_of([FillResult(100, 100, left_ns, came)], [base], 10e9, FRAME)
    assert found.bytes == pytest.approx((99.5 + left) * FRAME, abs=1)
    assert depth_of([FillResult(100, 0, left_ns, [])], [base], 10e9, FRAME).bytes is None


def test_late_timers_hardly_change_the_rate_of_a_short_train() -> None:
    """At 10 Gbit/s each frame comes up to a frame late, most of all the last of a train of 80."""
    times = [number * 1211 + number * 7 % 5 * 250 for number in range(79)] + [79 * 1211 + 1250]
    found = [Arrival(number, time_ns) for number, time_ns in enumerate(times)]
    rate = dispersion(found, 80, FRAME)
    assert rate == pytest.approx(10e9, rel=0.003)
    ends = 59 * FRAME * 8e9 / (times[79] - times[20])
    assert abs(ends - 10e9) > 0.015 * 10e9, "the ends alone are off by more"


def test_a_rate_is_measured_although_packets_overtake() -> None:
    """Each tenth packet comes 20 ms early, so that first and last by arrival are the wrong ones."""
    times = [number * 600_000 - (20_000_000 if number % 10 == 5 else 0) for number in range(100)]
    found = sorted((Arrival(number, time_ns) for number, time_ns in enumerate(times)), key=lambda item: item.time_ns)
    expected = FRAME * 8 / 0.0006
    assert robust_dispersion(found, 100, FRAME) == pytest.approx(expected, rel=1e-6)
    assert dispersion(found, 100, FRAME) != pytest.approx(expected, rel=0.01)


def test_a_rate_in_real_time_is_that_of_all_late_arrivals_together() -> None:
    """20 ms of sending, 2.4 ms a frame; the timer is late by 0.2 to 1.2 ms, a packet that arrives wakes the bucket."""
    frame_ns = 2_422_400
    late = [200_000 + 250_000 * (number * 7 % 5) for number in range(60)]
    found = [
        Arrival(number, number * frame_ns + (late[number] if number * frame_ns > 20_000_000 else 0))
        for number in range(60)
    ]
    for number in range(6):  # what the bucket had saved up
        found[number] = Arrival(number, number * 1000)
    rate = fitted_rate(found, 1514, 6, 20_000_000)
    assert rate == pytest.approx(5e6, rel=0.002)
    plain = 44 * 1514 * 8e9 / (found[59].time_ns - found[15].time_ns)
    assert abs(plain - 5e6) > 5e6 * 0.004, "two ends alone are not as close"
    assert fitted_rate(found[:8], 1514, 6, 20_000_000) is None
