# SPDX-License-Identifier: Apache-2.0
"""Lies of why and when a flow left slow start: evidence that looks like another cause, over traces made by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from howdah.measure.event import SlowStartEvent
from howdah.report.event import cause_words
from tests.liars.bench import Bench
from tests.liars.liar import Catch, ToldLiar
from tests.unit import test_measure_cause as made
from tests.unit import test_measure_control as controls
from tests.unit import test_measure_decision as decided
from tests.unit.event_factory import told as said

Told = Callable[[Bench, Path], list[Catch]]


def _cause(claimed: str, measured: Callable[[], str]) -> Told:
    """What howdah measures, where it is not the cause that is claimed."""

    def told(_bench: Bench, _path: Path) -> list[Catch]:
        cause = measured()
        return [] if cause == claimed else [Catch("state", cause, cause_words(cause))]

    return told


def _exit(events: list[SlowStartEvent]) -> Told:
    """What the trace says against a module's word; the trace shows a window that falls from 34 to 20 packets."""

    def told(_bench: Bench, _path: Path) -> list[Catch]:
        _, sheet = decided.measure(decided.trace_of(*decided.ROLLS_BACK), events)
        return [
            Catch("state", "cross-check", f"{each.metric}: {each.message}")
            for each in sheet.cross_checks
            if not each.agree
        ]

    return told


def _rolled_back(events: list[SlowStartEvent]) -> Told:
    """Why nothing is said to be rolled back."""

    def told(_bench: Bench, _path: Path) -> list[Catch]:
        rows, _ = decided.measure(decided.trace_of(*decided.ROLLS_BACK), events)
        row = rows["rollback_packets"]
        return [] if row.value is not None else [Catch("state", "no value", row.why)]

    return told


def _lost() -> str:
    return made.cause(made.RECOVERS, made.counters_at_exit())


def _cut_before_the_loss() -> str:
    """The window is cut at 58 ms; 30 segments are retransmitted 80 ms later."""
    after = {"ca_state": [made.OPEN, made.OPEN, made.RECOVERY], "total_retrans_packets": [0, 0, 30]}
    return made.cause(made.CUTS, made.counters_at_exit(sack_recovery=1, retransmitted=30), [50, 70, 150], **after)


def _recovery_of_another_flow() -> str:
    return made.cause(made.CUTS, made.counters_at_exit(sack_recovery=1))


def _timeout_of_another_flow() -> str:
    return made.cause(made.RECOVERS, made.counters_at_exit(timeouts=1, retransmitted=9))


def _marks_at_a_cut() -> str:
    return made.cause(made.CUTS, made.counters_at_exit(marked=4), [50, 70], ca_state=[made.OPEN, made.OPEN])


def _train(window: int) -> Callable[[], str]:
    return lambda: made.cause(made.hystart_trace(), made.counters_at_exit(train=1, train_cwnd=window))


def _bbr(rates: list[int], retransmitted: int, algorithm: str, version: int) -> Callable[[], str]:
    state = made.RECOVERY if retransmitted else made.OPEN
    return lambda: made.startup(rates, retransmitted=retransmitted, state=state, algorithm=algorithm, version=version)


def _collapsed() -> str:
    trace = made.cut_trace(3, cwnd_after=1, later=2)
    return made.cause(trace, made.counters_at_exit(timeouts=1, retransmitted=9))


def _marked() -> str:
    return made.cause(made.REDUCES, made.counters_at_exit(marked=4))


def _drained() -> str:
    """A loss ends the drain that the module began."""
    events = [said(44, "phase", "delivery-rate", 34), said(48, "exit", "loss", 26, ssthresh_packets=18)]
    rows, _ = decided.measure(decided.trace_of(*decided.LOSES), events, ca_state=[0, 3, 3])
    return str(rows["exit_cause"].value)


def _left(claimed: int, windows: list[int], gains: list[int] | None = None) -> Told:
    """Whether the flow left its start-up, where that is not what is claimed."""

    def told(_bench: Bench, _path: Path) -> list[Catch]:
        trace = controls.rounds_of(windows)
        rows = controls.measure(trace, None if gains is None else controls.told(gains))
        row, cause = rows["startup_left"], rows["exit_cause"].value
        return [] if row.value == claimed else [Catch("state", str(row.value), row.why or f"left by {cause}")]

    return told


_LOST, _TRAIN, _TIMEOUT, _MARKED = "a loss", "HyStart's own counter", "a timeout", "marks of congestion"
_FILLS, _LOSES = "BBR that fills its path", "BBR version 3 that loses too much"
_DOUBLES = "a window that doubles to its end"
_TELLS, _ROLLS = "a module that reports its exit", "a window that is rolled back"

HONEST_CAUSES: dict[str, Told] = {
    _LOST: _cause("loss", _lost),
    _TIMEOUT: _cause("rto", _collapsed),
    _MARKED: _cause("congestion-signal", _marked),
    _TRAIN: _cause("ack-train", _train(16)),
    _FILLS: _cause("bbr-drain", _bbr(made.FLAT, 0, "bbr3", 3)),
    _LOSES: _cause("loss", _bbr(made.RISING, 60, "bbr3", 3)),
    _DOUBLES: _left(0, [10, 20, 40, 80]),
    _TELLS: _exit(decided.PLUG_IN),
    _ROLLS: _rolled_back(decided.PLUG_IN),
}


def _liar(name: str, lie: str, caught: tuple[str, str], honest: str, told: Told) -> ToldLiar:
    return ToldLiar(name, "result", lie, Catch("state", *caught), honest, told)


CAUSES = [
    _liar(
        "own-cut-called-loss",
        "The algorithm cuts its own window and then loses packets: loss ended slow start.",
        ("own-cut", cause_words("own-cut")),
        _LOST,
        _cause("loss", _cut_before_the_loss),
    ),
    _liar(
        "recovery-of-another-flow",
        "A recovery of another flow of the same host, at the moment of a cut: loss ended slow start.",
        ("own-cut", cause_words("own-cut")),
        _LOST,
        _cause("loss", _recovery_of_another_flow),
    ),
    _liar(
        "timeout-of-another-flow",
        "A timeout of another flow of the same host, at the moment of a loss: a timeout ended slow start.",
        ("loss", cause_words("loss")),
        _TIMEOUT,
        _cause("rto", _timeout_of_another_flow),
    ),
    _liar(
        "marks-of-another-flow",
        "Marks of another flow of the same host, at the moment of a cut: congestion marks ended slow start.",
        ("own-cut", cause_words("own-cut")),
        _MARKED,
        _cause("congestion-signal", _marks_at_a_cut),
    ),
    _liar(
        "hystart-of-another-flow",
        "HyStart's counter grew at another window than this flow's: HyStart ended slow start.",
        ("unknown", cause_words("unknown")),
        _TRAIN,
        _cause("ack-train", _train(900)),
    ),
    _liar(
        "bbr3-that-left-by-loss",
        "BBR version 3 leaves because it loses packets while its rate still grows: it has filled the path.",
        ("loss", cause_words("loss")),
        _FILLS,
        _cause("bbr-drain", _bbr(made.RISING, 60, "bbr3", 3)),
    ),
    _liar(
        "bbr-whose-losses-do-not-count",
        "BBR loses packets after its rate has stopped growing: loss ended its start-up.",
        ("bbr-drain", cause_words("bbr-drain")),
        _LOSES,
        _cause("loss", _bbr(made.FLAT, 300, "bbr", 1)),
    ),
    _liar(
        "bbr-under-another-name",
        "A copy of BBR is called otherwise, and loses packets after its rate has stopped growing: loss ended it.",
        ("bbr-drain", cause_words("bbr-drain")),
        _LOSES,
        _cause("loss", _bbr(made.FLAT, 300, "mine", 1)),
    ),
    _liar(
        "bbr-through-probe-rtt",
        "BBR leaves its start-up through ProbeRTT, where ssthresh stays infinite: it did not leave.",
        ("1", "left by probe-rtt"),
        _DOUBLES,
        _left(0, controls.PROBES, [controls.HIGH] * 7 + [controls.CRUISE] * 3),
    ),
    _liar(
        "fixed-window-called-slow-start",
        "A module keeps its window, and never sets ssthresh: it did not leave slow start.",
        ("None", "ssthresh stayed infinite"),
        _DOUBLES,
        _left(0, [10] * 6),
    ),
    _liar(
        "loss-in-a-drain",
        "SEARCH has decided and drains its window when a loss comes: loss ended slow start.",
        ("delivery-rate", cause_words("delivery-rate")),
        _LOST,
        _cause("loss", _drained),
    ),
    _liar(
        "exit-told-after-the-cut",
        "A module reports its exit after it has cut the window, so that the exit's window is the smaller one.",
        ("cross-check", "cut already"),
        _TELLS,
        _exit([said(44, "exit", "delivery-rate", 20)]),
    ),
    _liar(
        "exit-told-late",
        "A module reports its exit three ACKs late.",
        ("cross-check", "at another ACK"),
        _TELLS,
        _exit([said(50, "exit", "delivery-rate", 20)]),
    ),
    _liar(
        "cut-by-a-loss-called-roll-back",
        "TCP cuts the window after a loss: the algorithm rolled it back.",
        ("no value", "TCP cut the window"),
        _ROLLS,
        _rolled_back([said(44, "exit", "loss", 34, ssthresh_packets=20)]),
    ),
]
