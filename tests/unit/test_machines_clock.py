# SPDX-License-Identifier: Apache-2.0
"""Clocks of several machines: what questions and answers tell of them, and times put right by it."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from howdah.codec import encoded
from howdah.engine.machines.clock import ClockSample, correction, described, estimate
from howdah.errors import RunFailedError
from howdah.record.clock import ClockRecord, Correction, Offset, read_clocks

MS = 1_000_000


def samples(offset_ns: int, seed: int, count: int = 60, gain: float = 0.0) -> list[ClockSample]:
    """Questions to a clock that is ``offset_ns`` ahead; the two ways take anything, and never the same."""
    chance = random.Random(seed)
    found, now = [], 1_000 * MS
    for _ in range(count):
        there, back = (round(chance.expovariate(1 / 0.8) * MS) for _ in range(2))
        told = now + there + offset_ns + round(gain * (now - 1_000 * MS))
        found.append(ClockSample(now, told, now + there + back))
        now += there + back + 50_000
    return found


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("offset_ns", [0, -3_000_000_000_000, 7 * MS])
def test_the_offset_lies_within_the_bounds(seed: int, offset_ns: int) -> None:
    found = estimate(samples(offset_ns, seed), "m")
    assert abs(found.offset_ns - offset_ns) <= found.uncertainty_ns
    assert found.uncertainty_ns <= found.round_trip_ns / 2 + 1_000 + 200e-6 * 200 * MS
    assert found.samples == 60


def test_one_lopsided_answer_is_no_better_than_its_round_trip() -> None:
    found = estimate([ClockSample(0, 9 * MS, 10 * MS)], "m")
    assert (found.offset_ns, found.uncertainty_ns) == (4 * MS, 5 * MS)


def test_a_clock_that_drifts_a_little_is_still_one_clock() -> None:
    found = estimate(samples(5 * MS, 3, gain=50e-6), "m")
    assert abs(found.offset_ns - 5 * MS) <= found.uncertainty_ns + 50e-6 * 200 * MS


def test_a_clock_that_was_set_is_refused() -> None:
    before, after = samples(0, 1, 30), samples(40 * MS, 2, 30)
    with pytest.raises(RunFailedError, match="the clock of m jumped by"):
        estimate([*before, *after], "m")


def test_a_gain_is_taken_out_and_the_instant_it_was_known_at_stays() -> None:
    before = Offset(1_000 * MS, 10, 50_000 * MS, 20, 60)
    after = Offset(1_003 * MS, 10, 80_000 * MS, 20, 60)
    found = correction(before, after, epoch_ns=51_000 * MS)
    assert found.gain == pytest.approx(1e-4)
    assert found.right_ns == -1_000 * MS
    assert found.apply(-1_000 * MS) == -1_000 * MS
    # 29 s after the epoch by itself it has gained 3 ms since it was right.
    assert found.apply(29_000 * MS) == 29_000 * MS - 3 * MS
    assert found.apply(np.array([-1_000 * MS, 29_000 * MS])).tolist() == [-1_000 * MS, 28_997 * MS]


def test_order_is_kept() -> None:
    times = np.arange(0, 1_000_000, 7, dtype=np.int64)
    assert (np.diff(Correction(5e-5, -3).apply(times)) > 0).all()


def test_the_record_of_clocks_says_what_is_needed_to_put_times_right(tmp_path: Path) -> None:
    before, after = Offset(0, 900, 1_000, 20, 60), Offset(100, 1_500, 1_001_000, 20, 60)
    entry = described(before, after, 5_000)
    assert entry.uncertainty_ns == 1_500
    (tmp_path / "clock.json").write_text(json.dumps(encoded(ClockRecord(1, machines={"m": entry}))))
    clocks = read_clocks(tmp_path)
    assert clocks is not None
    assert clocks.machines["m"].correction == correction(before, after, 5_000)


def test_a_run_on_one_machine_has_no_such_record(tmp_path: Path) -> None:
    assert read_clocks(tmp_path) is None
    (tmp_path / "clock.json").write_text('{"format": 9}')
    with pytest.raises(ValueError, match="not a record of clocks"):
        read_clocks(tmp_path)
