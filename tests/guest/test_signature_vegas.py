# SPDX-License-Identifier: Apache-2.0
"""Vegas slow start on the wire: doubling every other round, and an end far too early."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from howdah.engine.uml.engine import UmlEngine
from tests.guest.signature import SlowStart, slow_start

pytestmark = pytest.mark.guest

FRAME_BYTES = 1514


def bdp_packets(mbit_per_second: int = 100, rtt_s: float = 0.102) -> float:
    return mbit_per_second * 1e6 * rtt_s / 8 / FRAME_BYTES


def assert_alternates(seen: SlowStart, least_rounds: int = 5) -> None:
    """Held, doubled, held, doubled until the end; a held round brings not one packet."""
    growth = seen.growth()[: seen.exits[0]["round"] - 1]
    assert len(growth) >= least_rounds
    assert np.all(growth[0::2] == 1), growth
    assert np.all(np.abs(growth[1::2] - 2) <= 0.05), growth


def assert_premature(seen: SlowStart, bdp: float) -> None:
    """By more than gamma packets of queue, at a window that never filled the path."""
    event = seen.exits[0]
    assert event["reason"] == "queue-estimate"
    assert event["quantity"] > event["threshold"] == 1000
    assert 0.05 * bdp < event["cwnd_packets"] < 0.4 * bdp


def test_cwnd_doubles_every_other_round_and_ends_early(engine: UmlEngine, tmp_path: Path) -> None:
    seen = slow_start(engine, tmp_path, "vegas-start")
    assert_alternates(seen)
    assert_premature(seen, bdp_packets())


def test_standard_slow_start_does_neither(engine: UmlEngine, tmp_path: Path) -> None:
    seen = slow_start(engine, tmp_path, "standard")
    with pytest.raises(AssertionError):
        assert_alternates(seen)
    with pytest.raises(AssertionError):
        assert_premature(seen, bdp_packets())


def test_the_share_of_the_path_falls_with_its_rate(engine: UmlEngine, tmp_path: Path) -> None:
    """Adaptive Start paper, Table 3: 0.384 of the BDP at 10 Mbit/s, 0.192 at 20 and 40, 0.096 at 80, 0.101 at 150.

    The window of the end grows with about the square root of the BDP, from one doubling to the next.
    """
    share = {}
    for mbit_per_second in (20, 40, 80, 150):
        place = tmp_path / str(mbit_per_second)
        seen = slow_start(engine, place, "vegas-start", f"path.rate={mbit_per_second} Mbit/s", "duration=3 s")
        assert_alternates(seen, least_rounds=3)
        bdp = bdp_packets(mbit_per_second)
        assert_premature(seen, bdp)
        share[mbit_per_second] = seen.exits[0]["cwnd_packets"] / bdp
    assert share[20] >= share[40] >= share[80] > share[150]
    assert share[150] < 0.6 * share[20]


def test_the_smallest_rtt_of_a_round_sees_no_queue_before_the_path_is_full(engine: UmlEngine, tmp_path: Path) -> None:
    """The early end comes from the queue a doubling round leaves; the first packets of a flight do not meet it."""
    seen = slow_start(engine, tmp_path, "vegas-start", parameters={"rtt_of_round": "1"})
    assert seen.exits[0]["cwnd_packets"] > bdp_packets()


@pytest.mark.parametrize(("exit_window", "share"), [("1", (0.9, 1.0)), ("2", (0.875, 0.875))], ids=["target", "eighth"])
def test_windows_at_the_end(engine: UmlEngine, tmp_path: Path, exit_window: str, share: tuple[float, float]) -> None:
    kept = slow_start(engine, tmp_path / "kept", "vegas-start").exits[0]
    run = slow_start(engine, tmp_path / "cut", "vegas-start", parameters={"exit_window": exit_window})
    cut = run.exits[0]
    [left] = [row for row in run.events if row["event"] == "roll-back"]
    assert (cut["time_ns"], cut["cwnd_packets"]) == (kept["time_ns"], kept["cwnd_packets"])
    assert left["cwnd_packets"] == left["ssthresh_packets"] == cut["ssthresh_packets"] < cut["cwnd_packets"]
    assert share[0] - 0.01 <= left["cwnd_packets"] / cut["cwnd_packets"] <= share[1] + 0.01


def test_gamma_is_the_queue_that_is_accepted(engine: UmlEngine, tmp_path: Path) -> None:
    some = slow_start(engine, tmp_path / "1", "vegas-start").exits[0]
    more = slow_start(engine, tmp_path / "20", "vegas-start", parameters={"gamma": "20"}).exits[0]
    assert more["threshold"] == 20_000
    assert more["cwnd_packets"] >= 2 * some["cwnd_packets"]
