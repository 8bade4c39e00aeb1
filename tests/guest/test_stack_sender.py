# SPDX-License-Identifier: Apache-2.0
"""Senders with a TCP of their own: what they send is measured from their packets; one that fails is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from howdah.errors import RunFailedError
from howdah.record import table as store
from howdah.record.directory import RunDirectory
from tests.guest.guest_run import failures, measures, plan_of, require_engine, run
from tests.guest.receiver_capture import read_conversation
from tests.guest.shared_run import shared_run
from tests.guest.test_stack import make_stack, require_stack

pytestmark = pytest.mark.guest

SHORT = ("path.rate=5 Mbit/s", "path.rtt=40 ms", "path.buffer=2 bdp", "duration=2 s", "algorithm=reno")
# Options in its SYN, and data segments before the first ACK.
SEEN = {
    "lwip": ("MSS 1460, window scale 1", 3),
    "smoltcp": ("MSS 1460, window scale 1, SACK", 1),
    "gvisor": ("MSS 1460, window scale 7, SACK, time stamps", 10),
}


@pytest.mark.parametrize("name", SEEN)
def test_stacks_send_and_are_measured_from_their_packets(tmp_path: Path, name: str) -> None:
    engine = require_engine()
    require_stack(name)
    plan = plan_of(*SHORT, f"sender.stack={name}")
    first, verdict = shared_run(engine, plan)
    assert failures(verdict) == {}
    assert [check.name for check in verdict.checks if check.ok is None] == [
        "receive window flow 1",
        "send buffer flow 1",
        "nothing to send flow 1",
    ]
    found = measures(first)
    assert (found["sender_options"], found["initial_flight_packets"]) == SEEN[name]
    assert found["exit_time_s"] is found["peak_cwnd_packets"] is found["timeouts"] is None
    assert found["inflight_peak_bdp"] > 1 and found["growth_end_s"] < 2
    (flow,) = json.loads((first.raw / "agent.json").read_text(encoding="utf-8"))["flows"]
    assert flow["error"] is None and flow["bytes_sent"] >= flow["bytes_received"] > 300_000
    assert found["retransmitted_packets"] == _sent_again(first)
    assert (found["growth_end_cause"] == "loss") == (_sent_again(first) > 0) == (name != "lwip")
    if name == "gvisor":
        second, _ = run(engine, plan, tmp_path / "second")
        names = sorted(file.stem for file in (first.path / "tables").glob("*.parquet"))
        assert [each for each in names if not store.read(first, each).equals(store.read(second, each))] == []


def _sent_again(directory: RunDirectory) -> int:
    """Data segments below the highest byte sent, until the last ACK in the sender's capture: by another reader."""
    seen = read_conversation(directory.raw / "pcap" / "s1-s1-eth0.pcap", 5001)
    last = max(segment.time_ns for segment in seen.acks)
    highest, count = 0, 0
    for segment in seen.data:
        count += segment.sequence < highest and segment.time_ns <= last
        highest = max(highest, segment.end)
    return count


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo ready; read word; echo tired >&2; exit 3", "the stack wrong ended early with status 3; it said: tired"),
        ("echo unsupported no TAP here; exit 127", "unsupported by the stack wrong: no TAP here"),
    ],
)
def test_one_that_fails_is_told(tmp_path: Path, script: str, expected: str) -> None:
    engine = require_engine()
    stack = make_stack(tmp_path, script).replace("receiver.stack", "sender.stack")
    with (tmp_path / "wrong.yaml").open("a", encoding="utf-8") as file:
        file.write("algorithms: {reno: reno}\n")
    plan = plan_of(*SHORT, "calibrate=false", stack)
    try:
        _, verdict = run(engine, plan, tmp_path / "run")
        said = " ".join(failures(verdict).values())
    except RunFailedError as error:
        said = str(error)
    assert expected in said
