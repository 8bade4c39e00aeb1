# SPDX-License-Identifier: Apache-2.0
"""Why a flow left slow start: what each cause needs as evidence, and what is no evidence for it."""

from __future__ import annotations

import dataclasses
import math

import pytest

from howdah.measure import cause as causes
from howdah.measure.cause import detection, exit_cause
from howdah.measure.cut import cut_at
from howdah.measure.exit import find_exit
from howdah.measure.trace import FlowTrace
from howdah.report.event import cause_words
from tests.unit.trace_factory import make_counters, make_flow, make_info, make_trace

INF = math.inf
Readings = list[tuple[float, str | None, str, int]]
NAMES = {
    "train": "TcpExtTCPHystartTrainDetect",
    "train_cwnd": "TcpExtTCPHystartTrainCwnd",
    "delay": "TcpExtTCPHystartDelayDetect",
    "delay_cwnd": "TcpExtTCPHystartDelayCwnd",
    "timeouts": "TcpExtTCPTimeouts",
    "retransmitted": "TcpRetransSegs",
    "sack_recovery": "TcpExtTCPSackRecovery",
    "reno_recovery": "TcpExtTCPRenoRecovery",
    "marked": "TcpExtTCPDeliveredCE",
}
OPEN, _DISORDER, CWR, RECOVERY, LOSS = range(5)


def hystart_trace(kernel_algorithm: str = "cubic") -> FlowTrace:
    """The ACK at 42 ms makes HyStart set ssthresh to the window of 16; the record at 43 ms shows it."""
    return make_trace(
        [40, 41, 42, 43, 44],
        una=[0, 2, 4, 6, 8],
        nxt=[10, 14, 18, 22, 24],
        cwnd=[10, 14, 16, 17, 17],
        ssthresh=[INF, INF, INF, 16, 16],
        flow=make_flow(kernel_algorithm=kernel_algorithm),
    )


def cut_trace(
    duplicates: int, *, cwnd_after: int, ssthresh: float = 20, later: int = 39, kernel_algorithm: str = "mine"
) -> FlowTrace:
    """An ACK every 2 ms from 40 ms on; that at 58 ms cuts a window of 40, and so many ACKs up to it are duplicates.

    Without duplicates the next ACKs acknowledge new data, as in a flow that is in no recovery. With them nothing is
    acknowledged for the round trip that the retransmission takes. ``later`` is the window from the third ACK on. By
    110 ms everything is acknowledged.
    """
    una = [min(number, 10 - duplicates) if duplicates else number for number in range(29)]
    windows = [20 + 2 * number for number in range(9)]
    return make_trace(
        [*(40.0 + 2 * number for number in range(29)), 110.0],
        una=[*una, 60],
        nxt=[number + 45 for number in range(30)],
        cwnd=[*windows, 40, *[cwnd_after] * 2, *[later] * 18],
        ssthresh=[INF] * 10 + [ssthresh] * 20,
        flow=make_flow(kernel_algorithm=kernel_algorithm),
    )


RECOVERS = cut_trace(3, cwnd_after=40)
CUTS = cut_trace(0, cwnd_after=20, later=20)
REDUCES = cut_trace(0, cwnd_after=38, later=20)  # step by step, as TCP does on ECN


def counters_at_exit(**growth: int) -> Readings:
    """Every counter of the sender's host at 0 and at 500 ms."""
    readings: Readings = [(0, "s1", name, 0) for name in NAMES.values()]
    return readings + [(500, "s1", name, growth.get(key, 0)) for key, name in NAMES.items()]


def cause(trace: FlowTrace, readings: Readings, times: list[float] | None = None, **info: list[int]) -> str:
    counters = make_counters(readings)
    read = make_info(times or ([0.0, 1000.0] if info else []), **info)
    found = find_exit(trace, read)
    assert found is not None
    detected = detection(counters, "s1", found.time_ns, int(trace.time_ns[found.record]))
    return exit_cause(trace, found, detected, counters, read)


def records(trace: FlowTrace, count: int) -> FlowTrace:
    """The first records of a trace."""
    names = ("time_ns", "snd_nxt", "snd_una", "cwnd", "ssthresh", "srtt_ns")
    return dataclasses.replace(trace, **{name: getattr(trace, name)[:count] for name in names})


def with_ssthresh(trace: FlowTrace, begin: int, value: float) -> FlowTrace:
    ssthresh = trace.ssthresh.copy()
    ssthresh[begin:] = value
    return dataclasses.replace(trace, ssthresh=ssthresh)


def stopped(trace: FlowTrace, begin: int, end: int) -> FlowTrace:
    """Nothing is acknowledged from one record to the other."""
    una = trace.snd_una.copy()
    una[begin:end] = una[begin]
    return dataclasses.replace(trace, snd_una=una)


STILL = counters_at_exit()
REPAIRED = counters_at_exit(sack_recovery=1, retransmitted=30)
TIMER = counters_at_exit(timeouts=1, retransmitted=9)
LATE = [(time + 1000, node, name, value) for time, node, name, value in counters_at_exit(train=1, train_cwnd=16)]
LAST = records(cut_trace(0, cwnd_after=20), 11)
KEPT = cut_trace(0, cwnd_after=40, later=41)
ONE = cut_trace(1, cwnd_after=40)
COLLAPSED = cut_trace(3, cwnd_after=1, later=2)
VEGAS = cut_trace(0, cwnd_after=20, later=20, kernel_algorithm="vegas")
UNDONE = with_ssthresh(RECOVERS, 21, 40)  # the ACK at 80 ms restores the threshold; the next record shows it at 82 ms
STOPS = stopped(CUTS, 25, 29)
# What is read of the socket: at so many milliseconds the congestion state, and how much was sent again until then.
Read = list[tuple[float, int]]
SLOW = make_trace(
    [80, 600, 6656, 12712], una=[0, 1, 2, 3], nxt=[10, 13, 15, 17], cwnd=[10, 1, 1, 13], ssthresh=[INF, 7, 8, INF]
)


def told(trace: FlowTrace, readings: Readings, read: Read, again: list[int] | None = None) -> str:
    states = {"ca_state": [state for _, state in read]} if read else {}
    counted = {} if again is None else {"total_retrans_packets": again}
    return cause(trace, readings, [time for time, _ in read], **states, **counted)


@pytest.mark.parametrize(
    ("growth", "expected"),
    [
        ({"train": 1, "train_cwnd": 16}, "ack-train"),
        ({"delay": 1, "delay_cwnd": 16}, "delay"),
        # Two flows of one host are told apart by their windows.
        ({"train": 1, "train_cwnd": 16, "delay": 1, "delay_cwnd": 900}, "ack-train"),
        ({"train": 1, "train_cwnd": 900, "delay": 1, "delay_cwnd": 17}, "delay"),
        ({"train": 1, "train_cwnd": 900, "delay": 1, "delay_cwnd": 800}, "unknown"),
        ({"train": 1, "train_cwnd": 900}, "unknown"),  # a flow of another algorithm beside one of cubic
        ({"delay": 1, "delay_cwnd": 9}, "unknown"),
        ({"train": 2, "train_cwnd": 900}, "ack-train"),
        ({"delay": 2, "delay_cwnd": 900}, "delay"),
        ({"train": 2, "train_cwnd": 900, "delay": 2, "delay_cwnd": 900}, "unknown"),
    ],
)
def test_hystarts_counters_name_the_cause(growth: dict[str, int], expected: str) -> None:
    assert cause(hystart_trace(), counters_at_exit(**growth)) == expected


def _as_above(value: object) -> str | None:
    """What is called above: the id of its row says which one failed."""
    return next((name for name, each in globals().items() if each is value), None)


@pytest.mark.parametrize(
    ("trace", "readings", "read", "expected"),
    [
        # A counter that moved at another time says nothing, and an exit nobody explains is unknown.
        (hystart_trace(), STILL + LATE, [], "unknown"),
        (hystart_trace("mine"), STILL, [], "unknown"),
        # Three duplicate ACKs before the cut are a loss; so is a reading in recovery after it.
        (RECOVERS, STILL, [], "loss"),
        (RECOVERS, [], [], "loss"),
        (RECOVERS, [], [(50, OPEN), (70, RECOVERY)], "loss"),
        (ONE, [], [(50, OPEN), (70, RECOVERY)], "loss"),
        (cut_trace(0, cwnd_after=38), [], [(50, OPEN), (70, RECOVERY)], "loss"),
        # Fewer than three need a second witness: RACK's timer begins a recovery after one; reordering makes one, too.
        (ONE, counters_at_exit(sack_recovery=1), [], "loss"),
        (ONE, counters_at_exit(reno_recovery=1), [], "loss"),
        (ONE, STILL, [], "unknown"),
        # Without a reading ACKs that advance right after the cut show that there is no gap, whatever other flows lose.
        (CUTS, [], [], "own-cut"),
        (CUTS, STILL, [], "own-cut"),
        (CUTS, REPAIRED, [], "own-cut"),
        (CUTS, counters_at_exit(sack_recovery=1), [], "own-cut"),
        # A threshold set below the window is the algorithm's own, too.
        (KEPT, STILL, [], "own-cut"),
        (KEPT, [], [(50, OPEN), (70, OPEN)], "own-cut"),
        # No reading, no counter, and no further ACK within the round trip.
        (LAST, [], [], "unknown"),
        (LAST, STILL, [], "own-cut"),
        # At 400 ms everything that was sent at the cut has long been acknowledged: that is the next recovery.
        (CUTS, [], [(50, OPEN), (400, RECOVERY)], "own-cut"),
        # The ACK at 96 ms acknowledges all that was sent at the cut; the next one shows it at 110 ms.
        (RECOVERS, [], [(50, OPEN), (95, RECOVERY)], "loss"),
        (RECOVERS, [], [(50, OPEN), (100, OPEN)], "loss"),
        (UNDONE, [], [(50, OPEN), (79, RECOVERY)], "loss"),
        (UNDONE, [], [(50, OPEN), (81, OPEN)], "loss"),
        # ACKs advance after the cut and stop at 90 ms: the recovery that the reading at 100 ms shows is of that gap.
        (STOPS, counters_at_exit(sack_recovery=1), [(50, OPEN), (100, RECOVERY)], "own-cut"),
        # Vegas cuts its window by what it thinks is queued.
        (VEGAS, STILL, [(50, OPEN), (70, OPEN)], "queue-estimate"),
        (VEGAS, STILL, [(50, OPEN), (70, RECOVERY)], "loss"),
        (VEGAS, STILL, [(50, OPEN), (70, CWR)], "congestion-signal"),
        (dataclasses.replace(RECOVERS, flow=VEGAS.flow), STILL, [], "loss"),
        # A window that comes down step by step without a recovery is a congestion signal.
        (REDUCES, STILL, [], "congestion-signal"),
        (REDUCES, STILL, [(50, OPEN), (70, CWR)], "congestion-signal"),
        (REDUCES, counters_at_exit(marked=4), [], "congestion-signal"),
        (REDUCES, counters_at_exit(marked=4), [(50, OPEN), (70, CWR)], "congestion-signal"),
        # Marks do not make a cut at once one.
        (CUTS, counters_at_exit(marked=4), [], "unknown"),
        (CUTS, counters_at_exit(marked=4), [(50, OPEN), (70, OPEN)], "own-cut"),
        # A collapsed window and a timeout are an RTO; the timer of another moment, or of another flow, makes none.
        (COLLAPSED, TIMER, [], "rto"),
        (COLLAPSED, [], [(50, OPEN), (70, LOSS)], "rto"),
        (RECOVERS, TIMER, [], "loss"),
        (COLLAPSED, counters_at_exit(timeouts=1), [(50, OPEN), (70, RECOVERY)], "loss"),
        (cut_trace(0, cwnd_after=1, later=2), counters_at_exit(timeouts=1), [(50, OPEN), (70, OPEN)], "own-cut"),
        # A slow link: the timer fires at 500 ms, the ACK of what was no loss comes at 600, the next timer at 1500.
        *(
            (SLOW, [], [(110, OPEN), (410, state), (510, LOSS), (610, OPEN), (1410, OPEN), (1510, LOSS)], expected)
            for state, expected in ((OPEN, "rto"), (RECOVERY, "loss"))
        ),
    ],
    ids=_as_above,
)
def test_what_the_cut_of_a_window_shows(trace: FlowTrace, readings: Readings, read: Read, expected: str) -> None:
    assert told(trace, readings, read) == expected


def test_losses_that_follow_a_cut_of_the_modules_own_are_not_its_cause() -> None:
    """The reading at 70 ms comes right after the cut; 30 segments are retransmitted by the next one, 80 ms later."""
    assert told(CUTS, REPAIRED, [(50, OPEN), (70, OPEN), (150, RECOVERY)], [0, 0, 30]) == "own-cut"
    for readings in ([], STILL, REPAIRED):
        assert told(CUTS, readings, [(0, OPEN), (1000, RECOVERY)], [0, 30]) == "own-cut"


@pytest.mark.parametrize(
    ("trace", "time_ms", "state"), [(CUTS, 400, RECOVERY), (RECOVERS, 100, OPEN)], ids=["the next recovery", "its end"]
)
def test_a_reading_behind_the_cuts_flight_is_none_of_the_cut(trace: FlowTrace, time_ms: float, state: int) -> None:
    found = find_exit(trace)
    assert found is not None
    assert (
        cut_at(trace, found.record, make_counters([]), make_info([50, time_ms], ca_state=[OPEN, state])).state is None
    )


def test_segments_of_the_other_direction_are_no_duplicates() -> None:
    """Requests of the peer that arrive while nothing is outstanding."""
    idle = dataclasses.replace(RECOVERS, snd_nxt=RECOVERS.snd_una.copy())
    found = find_exit(idle)
    assert found is not None
    assert cut_at(RECOVERS, found.record, make_counters([]), make_info([])).duplicates == 3
    assert cut_at(idle, found.record, make_counters([]), make_info([])).duplicates == 0


# -- BBR: the trace shows that it entered Drain, tcp_info why.


STARTUP, DRAIN = 739, 88  # gains of BBR in 256ths


def startup(
    rates: list[int],
    *,
    retransmitted: int = 0,
    state: int = OPEN,
    marked: int = 0,
    algorithm: str = "bbr",
    version: int = 0,
) -> str:
    """BBR enters Drain at the ACK at 400 ms, RTT 40 ms; ``rates`` are read every 10 ms, the last one at that ACK.

    A socket of ``version`` 0 does not answer with struct tcp_bbr_info. Retransmissions are of the last 60 ms, when
    the state is ``state``; a hundred segments are delivered a reading.
    """
    times = [float(10 * number) for number in range(42)]
    trace = make_trace(
        times,
        una=[100 * number for number in range(42)],
        nxt=[100 * number + 400 for number in range(42)],
        cwnd=[1000] * 42,
        ssthresh=[INF] * 41 + [400],
        flow=make_flow(kernel_algorithm=algorithm, rtt_us=40_000),
    )
    count = len(rates)
    read = [400.0 - 10 * (count - 1 - number) for number in range(count)]
    return cause(
        trace,
        counters_at_exit(marked=marked),
        read,
        delivery_rate_bytes_per_second=rates,
        delivered_packets=[100 * number for number in range(count)],
        total_retrans_packets=[0] * (count - 6) + [retransmitted * step // 6 for step in range(1, 7)],
        ca_state=[OPEN] * (count - 6) + [state] * 6,
        **({"bbr_pacing_gain_256ths": [STARTUP] * (count - 1) + [DRAIN]} if version else {}),
        **({"bbr_version": [version] * count} if version > 1 else {}),
    )


FLAT = [100, 200, 400, 800, *[1000] * 14]
RISING = [10, 20, 40, 80, 160, 300, 400, 440, 480, 520, 560, 600, 640, 680, 800, 900, 1000, 1000]


def test_bbr_leaves_startup_when_its_rate_has_stopped_growing() -> None:
    assert startup(FLAT) == "bbr-drain"
    assert cause(hystart_trace("bbr"), counters_at_exit()) == "bbr-drain"


def test_bbr_whose_rate_had_stopped_is_not_left_by_the_losses_of_that_time() -> None:
    """Version 1 ignores losses, and fills a short buffer in these three rounds."""
    assert startup(FLAT, retransmitted=300, state=RECOVERY) == "bbr-drain"


@pytest.mark.parametrize("algorithm", ["bbr", "bbr3", "mine"])
def test_bbr_version_3_leaves_startup_by_loss(algorithm: str) -> None:
    assert startup(RISING, retransmitted=60, state=RECOVERY, algorithm=algorithm, version=3) == "loss"


def test_where_no_reading_says_why_bbr_of_version_1_left_startup_by_its_rate() -> None:
    assert startup(RISING, version=1) == "bbr-drain"
    assert {startup(RISING), startup(RISING, version=3)} == {"unknown"}


def test_a_changed_copy_of_bbr_version_1_may_leave_startup_by_loss() -> None:
    """Its socket answers as version 1 does; its rate was growing when the losses came."""
    assert startup(RISING, retransmitted=60, state=RECOVERY, version=1) == "loss"


@pytest.mark.parametrize(
    ("retransmitted", "state"), [(60, OPEN), (5, RECOVERY), (14, RECOVERY)], ids=["no recovery", "five", "below 2 %"]
)
def test_a_startup_that_neither_rate_nor_losses_ended_is_unknown(retransmitted: int, state: int) -> None:
    assert startup(RISING, retransmitted=retransmitted, state=state) == "unknown"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({}, "unknown"),
        ({"bbr_pacing_gain_256ths": [STARTUP, DRAIN]}, "bbr-drain"),
        ({"bbr_pacing_gain_256ths": [STARTUP, DRAIN], "bbr_version": [3, 3]}, "unknown"),
    ],
    ids=["no answer", "version 1", "version 3"],
)
def test_bbr_that_is_not_read_twice_a_round_is_not_guessed_at(told: dict[str, list[int]], expected: str) -> None:
    found = cause(
        hystart_trace("bbr"),
        counters_at_exit(),
        [0, 50],
        delivery_rate_bytes_per_second=[9, 10],
        total_retrans_packets=[0, 300],
        delivered_packets=[0, 700],
        ca_state=[RECOVERY, RECOVERY],
        **told,
    )
    assert found == expected


def test_one_reading_a_round_shows_a_rate_that_had_stopped() -> None:
    """Rounds of 40 ms, read every 50: at capacity from 200 ms on, and losses as in a short buffer."""
    trace = make_trace(
        [float(10 * number) for number in range(42)],
        una=[100 * number for number in range(42)],
        nxt=[100 * number + 400 for number in range(42)],
        cwnd=[1000] * 42,
        ssthresh=[INF] * 41 + [400],
        flow=make_flow(kernel_algorithm="bbr", rtt_us=40_000),
    )
    lost = [0] * 5 + [100, 200, 300, 400]
    for rates, expected in (([1, 2, 4, 8, 10, 10, 10, 10, 10], "bbr-drain"), ([1, 1, 1, 2, 3, 4, 5, 6, 9], "unknown")):
        found = cause(
            trace,
            counters_at_exit(),
            [float(50 * number) for number in range(9)],
            delivery_rate_bytes_per_second=rates,
            delivered_packets=[500 * number for number in range(9)],
            total_retrans_packets=lost,
            ca_state=[OPEN] * 4 + [RECOVERY] * 5,
        )
        assert found == expected


def test_bbr_version_3_leaves_startup_by_marks() -> None:
    assert startup(RISING, marked=90) == "congestion-signal"
    assert startup(FLAT, marked=90) == "bbr-drain"
    assert cause(hystart_trace("bbr"), counters_at_exit(marked=90)) == "unknown", "nobody saw the rate"


def test_bbr_that_was_held_back_left_for_another_reason() -> None:
    held = cause(hystart_trace("bbr"), counters_at_exit(), busy_time_us=[0, 1000], rwnd_limited_us=[0, 600])
    assert held == "receive-window"


@pytest.mark.parametrize("name", causes.CAUSES)
def test_every_cause_has_words(name: str) -> None:
    assert cause_words(name) not in ("", name)
