# SPDX-License-Identifier: Apache-2.0
"""A host's processor in a guest: what arrives waits for as long as it costs, no more, and the path stays proven."""

from __future__ import annotations

from typing import Any

import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.record import table as store
from howdah.record.directory import RunDirectory, read_json
from tests.guest.guest_run import failures, ignore, measures, plan_of
from tests.guest.shared_run import shared_run

pytestmark = pytest.mark.guest

SMALL = ("path.rate=10 Mbit/s", "path.rtt=20 ms", "path.buffer=2 bdp", "duration=1500 ms", "algorithm=cubic-no-hystart")


def valid(engine: UmlEngine, *overrides: str) -> tuple[RunDirectory, dict[str, Any]]:
    """A run whose every check passes, and its measures of the first flow and of the run."""
    plan = plan_of(*SMALL, *overrides)
    engine.prepare([plan], ignore)
    directory, verdict = shared_run(engine, plan)
    assert verdict.verdict == "pass", failures(verdict)
    return directory, measures(directory, 1, None)


def checks(directory: RunDirectory) -> dict[str, Any]:
    return {check["name"]: check["ok"] for check in read_json(directory.verdict)["checks"]}


def test_an_ack_waits_for_what_it_costs(engine: UmlEngine) -> None:
    """400 us for an ACK, which come 2.4 ms apart: none waits for another, and each is 400 us late."""
    _, plain = valid(engine)
    directory, slow = valid(engine, "sender.processor={ack: 400 us}")
    assert slow["min_rtt_us"] - plain["min_rtt_us"] == pytest.approx(400, abs=2)
    assert slow["processor_drops_packets"] == slow["processor_searched_packets"] == 0
    assert slow["processor_peak_waiting_packets"] <= 2
    assert "processor_busy_share" not in plain
    table = store.read(directory, "processor").to_pylist()
    assert table[-1]["cost_ns"] == table[-1]["acks_packets"] * 400_000 > 0


def test_a_search_saturates_the_sender_and_the_path_stays_proven(engine: UmlEngine) -> None:
    """200 us for a packet searched: a block beyond a window of 50 packets costs 10 ms, eight times the time between
    segments. What a capture shows arrived before the wait, each segment once."""
    directory, found = valid(
        engine,
        "sender.processor={searched: 200 us, search: one-pass, queue: 3}",
        "collect.processor=5 ms",
        "collect.pcap=[s1:s1-eth0]",
    )
    assert found["processor_saturated_s"] > 0.02
    assert found["processor_searched_packets"] > 100
    assert found["processor_drops_packets"] > 0
    assert found["processor_peak_waiting_packets"] == 4, "three wait, and one is in service"
    made = checks(directory)
    assert all(made[f"processor s1 {what}"] for what in ("segments", "costs", "time"))
    assert made["capture s1:s1-eth0 and interface"], "the path ends before the processor"
    assert made["minimum RTT flow 1"] and made["packets reverse"]


def test_a_receiver_has_one_too(engine: UmlEngine) -> None:
    """A segment of data takes 1 ms, the bottleneck lets one pass in 1.2: its processor is busy most of the time."""
    directory, found = valid(engine, "receiver.processor={packet: 1 ms}")
    assert found["processor_receiver_busy_share"] > 0.5
    table = store.read(directory, "processor").to_pylist()
    assert table[-1]["busy_ns"] == table[-1]["served_packets"] * 1_000_000
    assert found["processor_receiver_drops_packets"] == 0
    assert "processor_busy_share" not in found
