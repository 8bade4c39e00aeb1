# SPDX-License-Identifier: Apache-2.0
"""The bucket of a policer, read off the packets that it dropped and let pass."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest

from howdah.explain.bucket import no_bucket_fits, policer_of
from howdah.explain.seen import Flags
from howdah.ingest.source import Integers

FRAME = 1514
LINK = 100e6


@dataclass(frozen=True)
class Packets:
    near_ns: Integers
    size_bytes: Integers
    lost: Flags


def bursts(seed: int, count: int = 4000) -> Integers:
    """Arrivals in bursts of up to 60 packets at 1 Gbit/s, up to 50 ms apart."""
    drawn = random.Random(seed)
    gaps: list[int] = []
    while len(gaps) < count:
        gaps += [drawn.randrange(1_000_000, 50_000_000), *[12_112] * drawn.randrange(60)]
    return np.cumsum(np.array(gaps[:count], np.int64))


def policed(near_ns: Integers, rate: float, burst: float) -> Packets:
    """By a bucket in whole bytes, one packet after the other."""
    tokens, last, lost = burst, int(near_ns[0]), []
    for when in near_ns.tolist():
        tokens, last = min(burst, tokens + rate / 8 * (when - last) / 1e9), when
        lost.append(tokens < FRAME)
        tokens -= 0 if lost[-1] else FRAME
    return Packets(near_ns, np.full(near_ns.size, FRAME), np.array(lost))


@pytest.mark.parametrize("seed", range(6))
def test_a_bucket_is_found_to_a_part_of_a_packet(seed: int) -> None:
    drawn = random.Random(seed + 100)
    rate, burst = drawn.uniform(2e6, 12e6), drawn.uniform(20_000, 150_000)
    found = policer_of(policed(bursts(seed), rate, burst), LINK)
    assert found is not None
    assert found.rate_bits_per_second == pytest.approx(rate, rel=0.002)
    assert found.burst_bytes == pytest.approx(burst, abs=FRAME / 2)
    assert found.agrees == 1


def test_a_few_packets_whose_fate_is_taken_wrongly_move_it_little() -> None:
    packets = policed(bursts(7), 5e6, 80_000)
    flipped = packets.lost.copy()
    flipped[::97] ^= True
    found = policer_of(Packets(packets.near_ns, packets.size_bytes, flipped), LINK)
    assert found is not None
    assert found.rate_bits_per_second == pytest.approx(5e6, rel=0.03)
    assert found.burst_bytes == pytest.approx(80_000, rel=0.1)


def test_what_chance_takes_fits_no_bucket_and_what_a_policer_takes_fits_one() -> None:
    times = bursts(8)
    drawn = random.Random(9)
    by_chance = np.array([drawn.random() < 0.004 for _ in range(times.size)])
    assert no_bucket_fits(Packets(times, np.full(times.size, FRAME), by_chance))
    assert not no_bucket_fits(policed(times, 6e6, 60_000))
    # A bucket that is full most of the time, and drops seldom.
    seldom = policed(times, 9.5e6, 90_000)
    assert seldom.lost.sum() >= 3 and not no_bucket_fits(seldom)
