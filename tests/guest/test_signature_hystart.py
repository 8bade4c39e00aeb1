# SPDX-License-Identifier: Apache-2.0
"""HyStart on the wire: Linux' own against ours on every ACK, and the paper's exits in its own setting."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.measure.exit import Exit, find_exit
from howdah.plan.plan import Plan
from howdah.record import table as store
from tests.guest.guest_run import plan_of
from tests.guest.signature import SIGNATURE, SlowStart, carried_out, slow_start

pytestmark = pytest.mark.guest

RATE_BITS_PER_SECOND = 100_000_000
RTT_S = 0.102
FRAME_BYTES = 1514
BDP_PACKETS = RATE_BITS_PER_SECOND * RTT_S / 8 / FRAME_BYTES  # 842

LONG_FAT = ("path.rate=400 Mbit/s", "path.rtt=240 ms", "duration=4 s")
# The first flow fills the path; what the second one sees is the same queue, whatever its own algorithm is.
SECOND = ("flows=[{algorithm: cubic}, {start: 3 s}]", "duration=6 s")
LOSSES = ("duration=60 s", "path.loss=0.02 %")
# Timeouts begin slow start anew, with the smallest RTT forgotten.
TIMEOUTS = ("duration=60 s", "path.loss=25 %")
# Delays that vary lead to an exit by delay.
RESTLESS = (
    "duration=60 s",
    "path.loss=0.5 %",
    "path.delay_variation={distribution: exponential, standard_deviation: 5 ms, correlation_time: 100 ms, "
    "source: a choice}",
)


def in_tree_plan(ours: str, *overrides: str) -> Plan:
    """The plan of in-tree cubic that loads all that the plan of ``ours`` does."""
    plan = plan_of("algorithm=cubic", *overrides, profile=SIGNATURE)
    other = plan_of(f"algorithm={ours}", *overrides, profile=SIGNATURE)
    return dataclasses.replace(plan, required_modules=other.required_modules)


def counted(seen: SlowStart, name: str = "Hystart") -> dict[str, int]:
    """Counters of the kernel with that in their name at the flow's sender, at the end."""
    table = store.read(seen.directory, "counter")
    rows = [row for row in table.to_pylist() if row["node"] == seen.trace.flow.sender and name in row["name"]]
    return {row["name"]: row["value"] for row in sorted(rows, key=lambda row: row["time_ns"])}


def exit_of(seen: SlowStart) -> Exit:
    found = find_exit(seen.trace)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("ours", "path", "flow", "reason"),
    [
        ("hystart-linux", (), 1, "ack-train"),
        ("hystart-linux-cubic", (), 1, "ack-train"),
        ("hystart-linux", LONG_FAT, 1, "ack-train"),
        ("hystart-linux", SECOND, 2, "delay"),
    ],
    ids=["reno", "cubic", "400-mbit-240-ms", "second-flow"],
)
def test_slow_start_ends_where_in_tree_cubic_ends_it(
    engine: UmlEngine, ours: str, path: tuple[str, ...], flow: int, reason: str
) -> None:
    mine = carried_out(engine, plan_of(f"algorithm={ours}", *path, profile=SIGNATURE), flow)
    theirs = carried_out(engine, in_tree_plan(ours, *path), flow)
    assert_same_exit(mine, theirs, reason)


def assert_same_exit(mine: SlowStart, theirs: SlowStart, reason: str) -> None:
    """Time, window, reason and the kernel's counters, and every record before it."""
    found, expected = exit_of(mine), exit_of(theirs)
    assert (found.time_ns, found.cwnd_packets) == (expected.time_ns, expected.cwnd_packets)
    assert found == expected
    assert np.array_equal(mine.trace.time_ns[: found.record], theirs.trace.time_ns[: found.record])
    assert np.array_equal(mine.trace.cwnd[: found.record], theirs.trace.cwnd[: found.record])
    assert mine.exits[0]["reason"] == reason
    assert mine.exits[0]["cwnd_packets"] == found.ssthresh_packets
    assert counted(mine) == counted(theirs)
    kind = {"ack-train": "Train", "delay": "Delay"}[reason]
    assert counted(mine)[f"TcpExtTCPHystart{kind}Cwnd"] == found.ssthresh_packets


@pytest.mark.parametrize(
    ("path", "records", "timeouts"),
    [(LOSSES, 50_000, 0), (RESTLESS, 4_000, 0), (TIMEOUTS, 100, 1)],
    ids=["losses", "restless", "timeouts"],
)
def test_over_cubic_it_is_in_tree_cubic_ack_for_ack(
    engine: UmlEngine, path: tuple[str, ...], records: int, timeouts: int
) -> None:
    ours = plan_of("algorithm=hystart-linux-cubic", *path, profile=SIGNATURE)
    theirs = in_tree_plan("hystart-linux-cubic", *path)
    seen = [carried_out(engine, plan) for plan in (ours, theirs)]
    mine, other = (store.read(each.directory, "tcp_probe") for each in seen)
    assert other.num_rows > records
    assert counted(seen[1], "TCPTimeouts").get("TcpExtTCPTimeouts", 0) >= timeouts
    assert retransmitted(seen[1]) > 10  # not one slow start and a calm sea
    assert mine.num_rows == other.num_rows
    differing = [name for name in mine.column_names if not mine[name].equals(other[name])]
    assert differing == []
    assert counted(seen[0]) == counted(seen[1])


@pytest.mark.parametrize("initial_window_packets", [10, 7])
def test_the_paper_ends_by_ack_train_between_bdp_and_buffer(
    engine: UmlEngine, tmp_path: Path, initial_window_packets: int
) -> None:
    """Fig. 9(c): the paper's flow left at about 870 packets. A window of 7 at the start gives just that, 448 + 421."""
    flow = f"flows=[{{initial_window: {initial_window_packets}}}]"
    seen = slow_start(engine, tmp_path, "hystart-paper", flow)
    assert_ack_train_exit(seen)
    if initial_window_packets == 7:
        assert seen.exits[0]["cwnd_packets"] == pytest.approx(870, rel=0.02)


def assert_ack_train_exit(seen: SlowStart) -> None:
    """Section 4.2.1: a train half an RTT long ends slow start, half a BDP above the window the round began with."""
    assert seen.exits
    assert seen.exits[0]["reason"] == "ack-train"
    window = seen.exits[0]["cwnd_packets"]
    begun = int(seen.round_windows()[seen.exits[0]["round"] - 1])
    assert window - begun == pytest.approx(BDP_PACKETS / 2, rel=0.03)
    assert BDP_PACKETS <= window <= 2 * BDP_PACKETS
    assert seen.exits[0]["quantity"] >= seen.exits[0]["threshold"] == 51_000
    assert retransmitted(seen) == 0


def retransmitted(seen: SlowStart) -> int:
    info = store.read(seen.directory, "tcp_info").to_pylist()
    return max(int(row["total_retrans_packets"]) for row in info if row["flow"] == 1 and row["end"] == "sender")


def test_the_papers_second_flow_ends_by_delay(engine: UmlEngine) -> None:
    plan = plan_of("algorithm=hystart-paper", "flows=[{}, {start: 3 s}]", "duration=6 s", profile=SIGNATURE)
    assert_delay_exit(carried_out(engine, plan, 2))


def assert_delay_exit(seen: SlowStart) -> None:
    """Section 4.2.2: the first RTTs of a round are eta above those of the round before; early, as the path is full."""
    assert seen.exits
    assert seen.exits[0]["reason"] == "delay"
    assert seen.exits[0]["cwnd_packets"] < BDP_PACKETS / 2
    # eta is 8 ticks of 1 ms above 120 ms, and a 16th of the RTT below.
    assert seen.exits[0]["quantity"] >= seen.exits[0]["threshold"] > 102_000


def test_a_coarse_clock_counts_in_its_own_ticks(engine: UmlEngine, tmp_path: Path) -> None:
    """Jiffies of 10 ms: an RTT of 102 ms is 11 of them, and half of it 5. ACKs a tick apart are a train, so that a
    delayed one lengthens it and slow start ends a round early."""
    seen = slow_start(engine, tmp_path, "hystart-paper", parameters={"clock_us": "10000"})
    event = seen.exits[0]
    assert event["reason"] == "ack-train"
    assert (event["quantity"], event["threshold"]) == (50_000, 50_000)
    assert event["cwnd_packets"] < BDP_PACKETS


@pytest.mark.parametrize("check", [assert_ack_train_exit, assert_delay_exit], ids=["ack-train", "delay"])
def test_standard_slow_start_does_not_pass(
    engine: UmlEngine, tmp_path: Path, check: Callable[[SlowStart], None]
) -> None:
    seen = slow_start(engine, tmp_path, "standard")
    with pytest.raises(AssertionError):
        check(seen)


def test_standard_slow_start_does_not_end_like_in_tree_cubic(engine: UmlEngine) -> None:
    mine = carried_out(engine, plan_of("algorithm=standard", profile=SIGNATURE))
    theirs = carried_out(engine, in_tree_plan("standard"))
    with pytest.raises(AssertionError):
        assert_same_exit(mine, theirs, "ack-train")


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [({"detect": "2"}, "delay"), ({"detect": "1"}, "ack-train")],
    ids=["delay-only", "train-only"],
)
def test_each_sign_ends_slow_start_alone(
    engine: UmlEngine, tmp_path: Path, parameters: dict[str, str], reason: str
) -> None:
    seen = slow_start(engine, tmp_path, "hystart-linux", "path.buffer=2 bdp", parameters=parameters)
    assert seen.exits[0]["reason"] == reason


def test_early_kernels_heed_less_delay(engine: UmlEngine, tmp_path: Path) -> None:
    """Until 3.18 a 16th of the RTT was enough, and only a round's first samples counted."""
    given = {"detect": "2", "delay_shift": "4", "whole_round": "0", "train_allowance": "0", "train_paced": "0"}
    old = slow_start(engine, tmp_path / "old", "hystart-linux", "path.buffer=2 bdp", parameters=given)
    new = slow_start(engine, tmp_path / "new", "hystart-linux", "path.buffer=2 bdp", parameters={"detect": "2"})
    assert old.exits[0]["threshold"] == 102_000 + 102_000 // 16
    assert new.exits[0]["threshold"] == 102_000 + 102_000 // 8
