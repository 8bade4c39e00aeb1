# SPDX-License-Identifier: Apache-2.0
"""What looks like a full queue, or like a loss, and is none: receivers, middleboxes, links and senders that misbehave.

Each case says what a tap at the sender or at the receiver may call it. Null is always allowed; the true numbers are
within every interval that is given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from howdah.explain.explained import Explained
from howdah.explain.read import read_files
from howdah.held import HeldBy
from tests.explain.damage import pcap
from tests.explain.ends import MS, Blocks, Ends, Play, Span

_DEEP = 1e9  # bytes: this buffer is never full


def spans(first: int, last: int, each: int, length: int) -> tuple[Span, ...]:
    return tuple((at * MS, (at + length) * MS) for at in range(first, last, each))


@dataclass
class Case:
    """``by`` are what may be said to have lost packets, ``causes`` why the start-up may be said to have ended."""

    ends: Ends
    by: tuple[str, ...] = ()
    causes: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    never_held: tuple[HeldBy, ...] = field(default=())


def _shifted(by: int) -> Ends:
    def alters(blocks: Blocks) -> Blocks:
        return [(left + by, right + by) for left, right in blocks]

    return Ends(alters=alters)


CASES = {
    "reneges": Case(Ends(reneges_at=430 * MS), ("queue",), ("loss",)),
    "reneges by chance": Case(
        Ends(buffer_bytes=_DEEP, total_bytes=1_000_000, loses=lambda number: number == 100, reneges_at=150 * MS),
        (),
        ("loss",),
    ),
    "discards": Case(Ends(discards=True, sack=False), ("queue",), ("loss",)),
    "discards by chance": Case(
        Ends(discards=True, sack=False, buffer_bytes=_DEEP, total_bytes=2_000_000, loses=lambda n: n in (100, 700)),
        (),
        ("loss",),
    ),
    "SACK stripped": Case(Ends(sack=False), ("queue",), ("loss",)),
    "SACK and stamps stripped": Case(Ends(sack=False, stamps=False), ("queue",), ("loss",)),
    "SACK not translated": Case(_shifted(1_234_567_890), ("queue",), ("loss",)),
    "SACK not translated, below": Case(_shifted(-1_234_567_890), ("queue",), ("loss",)),
    "ACKs lost in bursts": Case(
        Ends(buffer_bytes=_DEEP, total_bytes=2_000_000, loses_ack=lambda time: time // (30 * MS) % 7 == 3),
        (),
        ("rto",),
    ),
    "no ACKs for half a second": Case(
        Ends(buffer_bytes=_DEEP, total_bytes=2_000_000, loses_ack=lambda time: 300 * MS <= time < 800 * MS),
        (),
        ("rto",),
    ),
    "receiver sleeps": Case(
        Ends(buffer_bytes=_DEEP, total_bytes=3_000_000, room_bytes=250_000, sleeps=spans(500, 950, 400, 150)),
        limits=("receive-window",),
    ),
    "receiver sleeps, queue": Case(Ends(sleeps=spans(1000, 1001, 1, 150)), ("queue",), ("loss",)),
    "receiver does not read": Case(
        Ends(buffer_bytes=_DEEP, total_bytes=3_000_000, room_bytes=200_000, rests=spans(400, 1300, 800, 400)),
        limits=("receive-window",),
    ),
    "tail probe": Case(
        Ends(buffer_bytes=_DEEP, total_bytes=300_000, probes_tail=True, loses=lambda number: number == 207),
        limits=("application",),
    ),
    "tail lost": Case(
        Ends(buffer_bytes=_DEEP, total_bytes=300_000, probes_tail=True, loses=lambda number: 205 <= number <= 207),
        (),
        ("rto",),
        ("application",),
    ),
    "timeout undone": Case(
        Ends(buffer_bytes=_DEEP, total_bytes=2_000_000, rate=100e6, undoes=True, stalls=spans(220, 221, 1, 400)),
        limits=("application",),
    ),
    "timeout for nothing": Case(
        Ends(buffer_bytes=_DEEP, total_bytes=2_000_000, rate=100e6, stalls=spans(220, 221, 1, 400)), (), ("rto",)
    ),
    "link pauses": Case(Ends(stalls=spans(700, 701, 1, 100)), ("queue",), ("loss",)),
    "link pauses again and again": Case(Ends(stalls=spans(300, 2000, 250, 60)), ("queue",), ("loss",)),
    "link pauses, losses by chance": Case(
        Ends(
            rate=100e6,
            buffer_bytes=_DEEP,
            total_bytes=8_000_000,
            loses=lambda number: number % 700 == 650,
            stalls=spans(300, 2000, 250, 60),
        ),
        ("random",),
        ("loss",),
    ),
    "link repairs in order": Case(Ends(stalls=spans(185, 2200, 37, 12)), ("queue",), ("loss",)),
    "link repairs out of order": Case(
        Ends(buffer_bytes=_DEEP, total_bytes=2_000_000, undoes=True, late=lambda n: 8 * MS if n % 50 == 20 else 0),
        (),
        ("loss",),
    ),
    "application pauses": Case(
        Ends(buffer_bytes=_DEEP, total_bytes=1_500_000, writes=lambda at: 100_000 if at < 500 * MS else 1 << 60),
        limits=("application",),
        never_held=(HeldBy.TIMEOUT,),
    ),
    "application writes slowly": Case(
        Ends(buffer_bytes=_DEEP, total_bytes=1_000_000, writes=lambda at: at // MS * 500), limits=("application",)
    ),
    "longer way": Case(
        Ends(
            rate=100e6,
            buffer_bytes=_DEEP,
            total_bytes=8_000_000,
            room_bytes=300_000,
            longer=lambda at: 40 * MS if at > 400 * MS else 0,
        ),
        limits=("receive-window",),
    ),
    "longer way, losses by chance": Case(
        Ends(
            rate=100e6,
            buffer_bytes=_DEEP,
            total_bytes=8_000_000,
            loses=lambda number: number % 900 == 800,
            longer=lambda at: 40 * MS if at > 250 * MS else 0,
        ),
        ("random",),
        ("loss",),
    ),
    "shorter way, losses by chance": Case(
        Ends(
            rate=100e6,
            buffer_bytes=_DEEP,
            total_bytes=8_000_000,
            loses=lambda number: number % 900 == 800,
            longer=lambda at: 0 if at > 400 * MS else 30 * MS,
        ),
        ("random",),
        ("loss",),
    ),
    "host drops some": Case(
        Ends(buffer_bytes=_DEEP, total_bytes=2_000_000, refuses=lambda number: number % 150 == 100),
        ("random",),
        ("loss",),
    ),
    "host drops rows": Case(
        Ends(rate=100e6, buffer_bytes=_DEEP, total_bytes=3_000_000, refuses=lambda number: number % 300 > 290),
        ("random",),
        ("loss",),
    ),
    "paced": Case(Ends(paced=True, buffer_bytes=400_000, total_bytes=2_000_000), (), ("bbr-drain",)),
    "paced, queue": Case(
        Ends(paced=True, buffer_bytes=60_000, total_bytes=1_500_000), ("queue",), ("loss", "bbr-drain")
    ),
}
SHOWN: dict[tuple[str, str], Explained] = {}


@cache
def played(name: str) -> Play:
    return Play(CASES[name].ends)


@cache
def written(every_ms: int, piece_bytes: int) -> Play:
    """By an application that has a piece every so often."""
    total = 400 * piece_bytes if every_ms == 50 else 1500 * piece_bytes
    return Play(Ends(buffer_bytes=_DEEP, total_bytes=total, writes=lambda now: now // (every_ms * MS) * piece_bytes))


def explained(play: Play, at: str, tmp_path: Path) -> Explained:
    (tmp_path / "it").write_bytes(pcap(play.near if at == "sender" else play.far))
    (flow,) = read_files([tmp_path / "it"], 1).flows
    return flow


def shown(name: str, at: str, tmp_path: Path) -> Explained:
    """What is said of a case, once for all tests; they only read it."""
    if (name, at) not in SHOWN:
        SHOWN[name, at] = explained(played(name), at, tmp_path)
    return SHOWN[name, at]


@pytest.mark.parametrize("at", ["sender", "receiver"])
@pytest.mark.parametrize("name", CASES)
def test_nothing_else_is_said_of_it(name: str, at: str, tmp_path: Path) -> None:
    case, flow = CASES[name], shown(name, at, tmp_path)
    assert flow.at == at
    assert flow.loss_by in (None, *case.by), flow.loss_words
    cause = flow.exit.cause if flow.exit is not None else None
    assert cause in (None, *case.causes), flow.exit
    assert flow.limit in (None, *case.limits), flow.why_no_exit
    assert flow.base_rtt_us.value == pytest.approx(case.ends.rtt_ns / 1e3, rel=0.01)
    for found, true in (
        (flow.rate_bits_per_second, case.ends.rate),
        (flow.buffer_bytes, case.ends.buffer_bytes),
    ):
        assert (found.low or 0) <= true <= (found.high or 1e18), found
    assert (flow.spurious_packets or 0) <= (flow.retransmitted_packets or 0)
    assert flow.holding is None or all(flow.holding.share(kind) < 0.05 for kind in case.never_held)


@pytest.mark.parametrize("name", ["SACK stripped", "SACK not translated", "SACK not translated, below"])
def test_a_full_queue_is_seen_without_usable_blocks(name: str, tmp_path: Path) -> None:
    flow = shown(name, "sender", tmp_path)
    assert flow.loss_by == "queue" and flow.exit is not None and flow.exit.cause == "loss"
    assert flow.buffer_bytes.value == pytest.approx(100_000, rel=0.1)
    assert flow.spurious_packets == 0


@pytest.mark.parametrize("name", ["SACK not translated", "SACK not translated, below"])
def test_blocks_of_what_was_not_sent_are_told(name: str, tmp_path: Path) -> None:
    assert any("name bytes that were not sent" in note for note in shown(name, "sender", tmp_path).notes)


@pytest.mark.parametrize("at", ["sender", "receiver"])
def test_a_receiver_that_reneges_is_named(at: str, tmp_path: Path) -> None:
    flow = shown("reneges", at, tmp_path)
    assert "reported by SACK what it later threw away: 50 segments" in flow.loss_words
    assert flow.loss_by is None and flow.buffer_bytes.value is None


def test_a_receiver_that_keeps_nothing_out_of_order_is_named(tmp_path: Path) -> None:
    flow = shown("discards by chance", "sender", tmp_path)
    assert flow.retransmitted_packets == 171
    assert "duplicate ACKs answered 169 segments of those sent again" in flow.loss_words


@pytest.mark.parametrize("name", ["host drops some", "host drops rows", "discards by chance"])
def test_what_passed_the_receiver_s_tap_was_not_lost_on_the_path(name: str, tmp_path: Path) -> None:
    assert "had passed the tap" in shown(name, "receiver", tmp_path).loss_words


@pytest.mark.parametrize("at", ["sender", "receiver"])
def test_a_timeout_that_was_undone_ends_no_start_up(at: str, tmp_path: Path) -> None:
    flow = shown("timeout undone", at, tmp_path)
    assert flow.exit is None and flow.spurious_packets == 1
    kept = shown("timeout for nothing", at, tmp_path)
    assert kept.exit is not None and kept.exit.cause == "rto" and kept.loss_by is None


def test_a_paced_start_up_ends_by_its_drain(tmp_path: Path) -> None:
    flow = shown("paced", "sender", tmp_path)
    assert flow.paced and flow.exit is not None and flow.exit.cause == "bbr-drain" and flow.algorithm == ["bbr"]


@pytest.mark.parametrize("at", ["sender", "receiver"])
@pytest.mark.parametrize(
    ("every_ms", "piece_bytes"), [(1, 100), (1, 500), (1, 1500), (1, 2000), (10, 4000), (50, 20_000)]
)
def test_an_application_that_writes_piece_by_piece_does_not_pace_and_left_nothing(
    every_ms: int, piece_bytes: int, at: str, tmp_path: Path
) -> None:
    """Segments leave without an ACK, as those of a sender that paces, and what is in flight falls where what had waited
    is gone: no detector of HyStart ended that."""
    flow = explained(written(every_ms, piece_bytes), at, tmp_path)
    assert flow.exit is None and flow.limit == "application" and not flow.paced
    assert flow.holding is not None and flow.held_back_by == HeldBy.APPLICATION
    assert HeldBy.PACING not in flow.holding.seconds and flow.algorithm[0] != "bbr"
