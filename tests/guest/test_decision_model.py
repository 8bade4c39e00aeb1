# SPDX-License-Identifier: Apache-2.0
"""The pretended sender and path of ``tests/decision`` against the guest: the same module, the same slow start."""

from __future__ import annotations

from pathlib import Path

import pytest

from howdah.engine.uml.engine import UmlEngine
from tests.decision.build import program
from tests.decision.runner import Runner, source_of
from tests.guest.signature import slow_start

pytestmark = pytest.mark.guest

# The guest's clock has ticks, and an ACK that falls behind one there may fall before it here.
TOLERANCE_PACKETS = 3


@pytest.mark.parametrize(
    ("algorithm", "plug_in"), [("standard", "standard"), ("hystart-linux", "hystartl"), ("limited", "limited")]
)
def test_slow_start_is_that_of_the_guest(engine: UmlEngine, tmp_path: Path, algorithm: str, plug_in: str) -> None:
    seen = slow_start(engine, tmp_path / "run", algorithm)
    with Runner(program(source_of(plug_in), tmp_path)) as runner:
        assert runner.load().error == 0
        course = runner.open(handshake_rtt_us=102_000).path(duration_us=5_000_000)
    windows = [row.cwnd for row in course.rounds]
    exits = [(event["reason"], event["cwnd_packets"]) for event in seen.exits]
    assert [reason for reason, _ in exits] == [event.reason for event in course.exits]
    for (_, cwnd), event in zip(exits, course.exits, strict=True):
        assert abs(cwnd - event.cwnd) <= TOLERANCE_PACKETS
    # Every round of the slow start, and the same windows in each.
    left = next((index for index, row in enumerate(course.rounds) if row.ssthresh < 2**31 - 1), len(windows))
    for index, window in enumerate(seen.round_windows()[:left]):
        assert abs(int(window) - windows[index]) <= TOLERANCE_PACKETS, f"round {index}"
