# SPDX-License-Identifier: Apache-2.0
"""HyStart++ (RFC 9406) on the wire: conservative slow start, false alarms, and exits under jitter."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.plan.plan import Plan
from howdah.record import table as store
from tests.guest.guest_run import plan_of
from tests.guest.signature import SIGNATURE, SlowStart, carried_out, slow_start
from tests.steps import with_changed_options

pytestmark = pytest.mark.guest

# Five rounds of a quarter more each begin at up to four times the BDP and end three times higher.
DEEP = ("path.buffer=9 bdp", "duration=6 s")

RTT_US = 50_000
ADDED_US = 10_000
# At 50 ms the RFC's threshold is 6.25 ms. The flight of the fourth round, 80 packets, is sent at 0.2 s.
ONE_ROUND_US = (180_000, 230_000)
FALSE_ALARM = (
    "path.rtt=50 ms",
    "path.buffer=9 bdp",
    "duration=4 s",
    "path.delay_variation={distribution: uniform, amplitude: 10 ms, correlation_time: 0 s, interval: 50 ms, "
    "direction: forward, source: a choice}",
)


def assert_css(seen: SlowStart) -> None:
    """Growth by a quarter in each of at most five rounds, which a round of a grown RTT begins and the fifth ends."""
    begun = [row for row in seen.events if row["event"] == "phase"]
    assert len(begun) == len(seen.exits) == 1
    assert begun[0]["reason"] == "delay"
    assert begun[0]["quantity"] >= begun[0]["threshold"] >= 102_000 + 102_000 // 8
    assert seen.exits[0]["reason"] == "css-rounds"
    assert seen.exits[0]["quantity"] == seen.exits[0]["threshold"] == 5
    windows = windows_of(seen, begun[0]["round"], seen.exits[0]["round"])
    growth = windows[1:] / windows[:-1]
    assert len(growth) == 5  # the round it began in counts
    assert np.all(np.abs(growth - 1.25) <= 0.05), growth
    before = seen.growth()[: begun[0]["round"] - 1]
    assert np.all(np.abs(before - 2) <= 0.05), before
    assert seen.exits[0]["cwnd_packets"] == windows[-1]


def windows_of(seen: SlowStart, first: int, last: int) -> np.ndarray:
    """cwnd at the beginning of the module's rounds; its round 1 begins with the first ACK of data."""
    return seen.round_windows()[first - 1 : last]


def test_css_grows_by_a_quarter_for_five_rounds(engine: UmlEngine, tmp_path: Path) -> None:
    assert_css(slow_start(engine, tmp_path, "hystart-plus-plus", *DEEP))


@pytest.mark.parametrize("algorithm", ["standard", "hystart-linux"])
def test_other_slow_starts_have_no_css(engine: UmlEngine, tmp_path: Path, algorithm: str) -> None:
    seen = slow_start(engine, tmp_path, algorithm, *DEEP)
    with pytest.raises(AssertionError):
        assert_css(seen)


def test_constants_are_parameters(engine: UmlEngine, tmp_path: Path) -> None:
    given = {"css_rounds": "2", "css_growth_divisor": "2"}
    seen = slow_start(engine, tmp_path, "hystart-plus-plus", *DEEP, parameters=given)
    begun = next(row for row in seen.events if row["event"] == "phase")
    assert seen.exits[0]["quantity"] == 2
    windows = windows_of(seen, begun["round"], seen.exits[0]["round"])
    assert np.all(np.abs(windows[1:] / windows[:-1] - 1.5) <= 0.05)
    assert len(windows) == 3


def one_round_later(plan: Plan) -> Plan:
    """The same path, but the only change of delay is 10 ms more for the packets of one flight."""
    changes = [event for event in plan.timeline if event.op == "qdisc"]
    others = [event for event in plan.timeline if event.op != "qdisc"]
    changed = [
        dataclasses.replace(with_changed_options(changes[0], delay_us=RTT_US // 2 + added), at_us=at_us)
        for at_us, added in ((0, 0), (ONE_ROUND_US[0], ADDED_US), (ONE_ROUND_US[1], 0))
    ]
    return dataclasses.replace(plan, timeline=sorted(others + changed, key=lambda event: event.at_us))


def false_alarm(engine: UmlEngine, algorithm: str) -> SlowStart:
    plan = plan_of(f"algorithm={algorithm}", *FALSE_ALARM, profile=SIGNATURE)
    return carried_out(engine, one_round_later(plan))


def assert_resumed(seen: SlowStart) -> None:
    """One late round begins CSS, the next ends it: slow start goes on, and leaves for another reason."""
    begun, resumed = (
        [row for row in seen.events if (row["event"], row["reason"]) == (event, "delay")]
        for event in ("phase", "resume")
    )
    assert begun
    assert resumed
    assert RTT_US + 6_250 <= begun[0]["quantity"] <= RTT_US + ADDED_US + 3_000
    assert resumed[0]["quantity"] < resumed[0]["threshold"] == begun[0]["quantity"]
    assert resumed[0]["round"] - begun[0]["round"] <= 1
    windows = seen.round_windows()
    # The round of CSS grows by less than the doubling before and after it.
    growth = windows[1:] / windows[:-1]
    assert growth[begun[0]["round"] - 1] < 1.5
    assert growth[resumed[0]["round"]] == pytest.approx(2, rel=0.05)
    bdp = 100_000_000 * 0.050 / 8 / 1514
    assert seen.exits[0]["cwnd_packets"] > bdp


def test_one_late_round_is_a_false_alarm(engine: UmlEngine) -> None:
    assert_resumed(false_alarm(engine, "hystart-plus-plus"))


def test_one_late_round_ends_hystart(engine: UmlEngine) -> None:
    """What HyStart++ was made for: the same late round ends Linux' slow start at a fifth of the BDP."""
    seen = false_alarm(engine, "hystart-linux")
    assert seen.exits[0]["reason"] == "delay"
    assert seen.exits[0]["cwnd_packets"] < 200
    with pytest.raises(AssertionError):
        assert_resumed(seen)


def test_standard_slow_start_is_not_alarmed(engine: UmlEngine) -> None:
    seen = false_alarm(engine, "standard")
    with pytest.raises(AssertionError):
        assert_resumed(seen)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_under_jitter_it_leaves_later_than_hystart(engine: UmlEngine, tmp_path: Path, seed: int) -> None:
    """Delays spread over 16 ms, anew every 20 ms: +-8 ms about their mean."""
    jitter = (
        "path.delay_variation={distribution: uniform, amplitude: 16 ms, correlation_time: 0 s, interval: 20 ms, "
        "direction: forward, source: a choice}"
    )
    exits = {}
    for algorithm in ("hystart-plus-plus", "hystart-linux"):
        seen = slow_start(engine, tmp_path / algorithm, algorithm, jitter, "path.rtt=50 ms", f"seed={seed}")
        exits[algorithm] = seen.exits[0]["cwnd_packets"]
    assert exits["hystart-plus-plus"] > exits["hystart-linux"], exits


def test_growth_of_an_ack_is_limited(engine: UmlEngine, tmp_path: Path) -> None:
    """L: a receiver that acknowledges two packets at a time lets cwnd grow by two, or by one if L is one."""
    steps = {}
    for limit in (1, 8):
        given = {"ack_limit": str(limit)}
        seen = slow_start(engine, tmp_path / str(limit), "hystart-plus-plus", parameters=given)
        steps[limit] = np.diff(seen.trace.cwnd[seen.trace.time_ns < seen.events[0]["time_ns"]])
    assert steps[1].max() == 1
    assert steps[8].max() == 2


def test_the_first_slow_start_alone_is_conservative(engine: UmlEngine, tmp_path: Path) -> None:
    """After a loss, ssthresh is set: nothing is told any more but what the core tells."""
    seen = slow_start(engine, tmp_path, "hystart-plus-plus", "path.loss=1 %", "duration=20 s")
    first = seen.exits[0]["time_ns"]
    assert all(row["event"] != "phase" for row in seen.events if row["time_ns"] > first)
    table = store.read(seen.directory, "tcp_info").to_pylist()
    assert max(row["total_retrans_packets"] for row in table if row["end"] == "sender") > 10
