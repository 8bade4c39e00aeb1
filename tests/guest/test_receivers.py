# SPDX-License-Identifier: Apache-2.0
"""Receiver behaviours on the wire: what a capture at the receiver shows, and that Linux itself does not do it."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from howdah.engine.uml.engine import UmlEngine
from howdah.receiver import RECEIVERS
from tests.guest.guest_run import failures, plan_of, run
from tests.guest.receiver_capture import (
    CAPTURE,
    HEAVY_LOSS,
    Conversation,
    disorder,
    read_conversation,
    suppressing,
    waits,
)
from tests.guest.shared_run import shared_run
from tests.steps import operation

pytestmark = pytest.mark.guest

PORT = 5001
MS = 1_000_000
SERIAL_NS = 300_000  # a full frame at the bottleneck's 50 Mbit/s takes 242 us
# One segment, and nothing more before it is acknowledged.
ONE_SEGMENT = ("algorithm=cubic", "duration=1 s", "flows=[{initial_window: 1}]")

Runs = Callable[[str], Conversation]


def captured(engine: UmlEngine, *overrides: str, path: Path | None = None) -> Path:
    """The capture of a valid run at its receiver; with ``path`` of one that is made there."""
    plan = plan_of(*overrides, CAPTURE)
    directory, verdict = shared_run(engine, plan) if path is None else run(engine, plan, path)
    assert verdict.verdict == "pass", failures(verdict)
    return directory.raw / "pcap" / "r1-r1-eth0.pcap"


@pytest.fixture(scope="module")
def runs(engine: UmlEngine) -> Runs:
    """The conversation of a valid run with heavy loss, by the receiver's behaviour; each is run once."""

    @cache
    def conversation(receiver: str) -> Conversation:
        plan = plan_of(*HEAVY_LOSS, CAPTURE, f"receiver={receiver}")
        directory, verdict = shared_run(engine, plan)
        assert verdict.verdict == "pass", failures(verdict)
        return read_conversation(directory.raw / "pcap" / "r1-r1-eth0.pcap", PORT)

    return conversation


def in_order(seen: Conversation) -> list[tuple[int, int]]:
    """What each ACK before the first gap waited for: segments, and ns from the first of them."""
    found = list(waits(seen.until_disorder()))
    assert len(found) > 100, "the run shows too little"
    return found


def acknowledges_every_segment(seen: Conversation) -> None:
    """In the whole run, each at the instant it came."""
    found = list(waits(seen.segments))
    assert len(found) > 5000
    assert set(found) == {(1, 0)}


def acknowledges_every_other_segment(seen: Conversation) -> None:
    """From the first one on; out of order at once."""
    found = in_order(seen)
    assert {count for count, _ in found} == {2}
    assert max(wait for _, wait in found) < SERIAL_NS
    acknowledges_disorder_at_once(seen)


def acknowledges_sixteen_then_every_other(seen: Conversation) -> None:
    found = in_order(seen)
    assert [count for count, _ in found[:16]] == [1] * 16
    assert {count for count, _ in found[16:]} == {2}
    acknowledges_disorder_at_once(seen)


def stretches_acknowledgements(seen: Conversation) -> None:
    """One for 8, but for those at the end of a flight, which the timer of 40 ms sends."""
    found = in_order(seen)
    counts = Counter(count for count, _ in found)
    assert max(counts) == 8
    assert counts[8] > 0.9 * len(found)
    assert {wait for count, wait in found if count < 8} <= {40 * MS}
    acknowledges_disorder_at_once(seen)


def acknowledges_disorder_at_once(seen: Conversation) -> None:
    """Every ACK sent while data lie beyond a gap is that of the one segment before it, but for the first after a gap
    appeared: with it leaves what was held back."""
    counted = list(zip(disorder(seen.segments), waits(seen.segments), strict=True))
    found = [now[1][0] for before, now in itertools.pairwise(counted) if before[0].blocks and now[0].blocks]
    assert len(found) > 300, "too little was lost to see it"
    assert {*found} == {1}


def does_not_negotiate_sack(seen: Conversation) -> None:
    assert {(segment.sent, segment.sack_permitted) for segment in seen.handshake} == {(False, True), (True, False)}
    assert not any(ack.sack for ack in seen.acks)
    assert sum(bool(state.blocks) for state in disorder(seen.segments)) > 300


def negotiates_sack_and_reports_nothing(seen: Conversation) -> None:
    assert all(segment.sack_permitted for segment in seen.handshake)
    assert not any(ack.sack for ack in seen.acks)
    assert sum(bool(state.blocks) for state in disorder(seen.segments)) > 300


def suppresses_sack_beyond_its_backlog(seen: Conversation) -> None:
    """Every ACK is that of a receiver that, once it holds 100 blocks, discards what is out of order and reports nothing
    until nothing is out of order; before, it reports at most three, and all that it holds where that is no more."""
    limits = RECEIVERS["windows-xp"].ack_filter
    assert limits is not None
    states = list(suppressing(seen.segments, limits.backlog_blocks))
    for state in states:
        assert state.ack.acknowledged == state.expected
        assert len(state.ack.sack) <= 3
        if state.suppressed:
            assert not state.ack.sack
        elif 0 < len(state.blocks) <= 3:
            assert set(state.ack.sack) == set(state.blocks)
    assert sum(state.suppressed for state in states) > 100
    assert states[-1].discarded > 300
    assert any(len(state.ack.sack) == 3 for state in states)


SIGNATURES: dict[str, list[Callable[[Conversation], None]]] = {
    "quick-ack": [acknowledges_every_segment],
    "quick-then-delayed": [acknowledges_sixteen_then_every_other],
    "delayed-ack": [acknowledges_every_other_segment],
    "stretch-ack": [stretches_acknowledgements],
    "no-sack": [does_not_negotiate_sack],
    "windows-xp": [suppresses_sack_beyond_its_backlog],
    "windows-xp-no-sack": [acknowledges_every_other_segment, does_not_negotiate_sack],
    "freebsd-7": [acknowledges_every_other_segment, negotiates_sack_and_reports_nothing],
    "freebsd-7-no-sack": [acknowledges_every_other_segment, does_not_negotiate_sack],
}


def test_every_emulated_behaviour_has_a_signature() -> None:
    """Those with bounds of their window are in test_receivers_today.py."""
    assert {*SIGNATURES} == {name for name, known in RECEIVERS.items() if known.emulated and not known.tuning}


@pytest.mark.parametrize("receiver", SIGNATURES)
def test_signature(runs: Runs, receiver: str) -> None:
    seen = runs(receiver)
    for signature in SIGNATURES[receiver]:
        signature(seen)


@pytest.mark.parametrize(
    "signature", dict.fromkeys(itertools.chain(*SIGNATURES.values())), ids=lambda each: each.__name__
)
def test_linux_has_another_one(runs: Runs, signature: Callable[[Conversation], None]) -> None:
    with pytest.raises(AssertionError):
        signature(runs("linux"))


def test_linux_itself(runs: Runs) -> None:
    """Quick ACKs at first, never more than two segments an ACK in order, none later than its timer (40 ms and a tick
    of the kernel's clock), SACK in every ACK in disorder."""
    seen = runs("linux")
    found = in_order(seen)
    assert [count for count, _ in found[:16]] == [1] * 16
    assert {count for count, _ in found} == {1, 2}
    assert max(wait for _, wait in found) <= 50 * MS
    states = [state for state in disorder(seen.segments) if state.blocks]
    assert len(states) > 300
    assert all(state.ack.sack for state in states)


@pytest.mark.parametrize(
    "receiver", [name for name in SIGNATURES if (known := RECEIVERS[name].ack_filter) and not known.quick_first]
)
def test_a_segment_that_nothing_follows_waits_for_the_timer(engine: UmlEngine, receiver: str) -> None:
    capture = captured(engine, *ONE_SEGMENT, f"receiver={receiver}")
    first = next(waits(read_conversation(capture, PORT).segments))
    chosen = RECEIVERS[receiver].ack_filter
    assert chosen is not None
    assert first == (1, chosen.delay_us * 1000)


def test_checksums_of_edited_options_hold(engine: UmlEngine) -> None:
    """Without checksum offload at the receiver, TCP has computed it before the option is edited."""
    plan = plan_of(*HEAVY_LOSS, "receiver=freebsd-7", CAPTURE)
    up = next(index for index, item in enumerate(plan.operations) if item.op == "up")
    off = operation("offload", node="r1", interface="r1-eth0", feature="tx-checksumming", enabled=False)
    plan.operations.insert(up, off)
    directory, verdict = shared_run(engine, plan)
    assert verdict.verdict == "pass", failures(verdict)
    seen = read_conversation(directory.raw / "pcap" / "r1-r1-eth0.pcap", PORT)
    negotiates_sack_and_reports_nothing(seen)
    assert {ack.checksum_ok for ack in seen.acks} == {True}


def test_identical_runs_are_identical(engine: UmlEngine, tmp_path: Path) -> None:
    captures = [
        captured(engine, *HEAVY_LOSS, "receiver=windows-xp", path=tmp_path / str(number)).read_bytes()
        for number in range(2)
    ]
    assert captures[0] == captures[1]


def test_two_behaviours_in_one_run(engine: UmlEngine) -> None:
    flows = "flows=[{receiver_behaviour: freebsd-7}, {receiver_behaviour: quick-ack}]"
    plan = plan_of(*HEAVY_LOSS, flows, "collect.pcap=[r1:r1-eth0, r2:r2-eth0]")
    directory, verdict = shared_run(engine, plan)
    assert verdict.verdict == "pass", failures(verdict)
    first, second = (
        read_conversation(directory.raw / "pcap" / f"{host}-{host}-eth0.pcap", port)
        for host, port in (("r1", PORT), ("r2", PORT + 1))
    )
    negotiates_sack_and_reports_nothing(first)
    assert {count for count, _ in waits(second.segments)} == {1}
    rows = [row for row in _rows(directory.metrics) if row["metric"] == "goodput_bits_per_second"]
    assert {row["flow"]: row["receiver"] for row in rows} == {1: "freebsd-7", 2: "quick-ack"}


def _rows(path: Path) -> list[dict[str, object]]:
    return list(json.loads(path.read_text())["rows"])
