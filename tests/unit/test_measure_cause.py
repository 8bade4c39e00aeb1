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
OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)


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


def test_the_ack_train_counter_names_the_cause() -> None:
    assert cause(hystart_trace(), counters_at_exit(train=1, train_cwnd=16)) == "ack-train"


def test_the_delay_counter_names_the_cause() -> None:
    assert cause(hystart_trace(), counters_at_exit(delay=1, delay_cwnd=16)) == "delay"


@pytest.mark.parametrize(
    ("growth", "expected"),
    [
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
def test_two_flows_of_one_host_are_told_apart_by_their_windows(growth: dict[str, int], expected: str) -> None:
    assert cause(hystart_trace(), counters_at_exit(**growth)) == expected


def test_a_counter_that_moved_at_another_time_says_nothing() -> None:
    late = [(time + 1000, node, name, value) for time, node, name, value in counters_at_exit(train=1, train_cwnd=16)]
    assert cause(hystart_trace(), counters_at_exit() + late) == "unknown"


# -- A window that was cut: by TCP, or by the algorithm itself. Losses that follow are no evidence.


def test_three_duplicate_acks_before_the_cut_are_a_loss() -> None:
    assert cause(RECOVERS, counters_at_exit()) == "loss"
    assert cause(RECOVERS, []) == "loss"


@pytest.mark.parametrize("trace", [RECOVERS, cut_trace(1, cwnd_after=40), cut_trace(0, cwnd_after=38)])
def test_a_reading_in_recovery_after_the_cut_is_a_loss(trace: FlowTrace) -> None:
    assert cause(trace, [], [50, 70], ca_state=[OPEN, RECOVERY]) == "loss"


def test_a_module_that_cuts_its_own_window_has_lost_nothing_yet() -> None:
    """The reading at 70 ms comes right after the cut; 30 segments are retransmitted by the next one, 80 ms later."""
    after = {"ca_state": [OPEN, OPEN, RECOVERY], "total_retrans_packets": [0, 0, 30]}
    lost = counters_at_exit(sack_recovery=1, retransmitted=30)
    assert cause(CUTS, lost, [50, 70, 150], **after) == "own-cut"


@pytest.mark.parametrize("readings", [[], counters_at_exit(), counters_at_exit(sack_recovery=1, retransmitted=30)])
def test_without_a_reading_acks_that_advance_right_after_the_cut_show_that_there_is_no_gap(readings: Readings) -> None:
    assert cause(CUTS, readings) == "own-cut"
    assert cause(CUTS, readings, [0, 1000], ca_state=[OPEN, RECOVERY], total_retrans_packets=[0, 30]) == "own-cut"


def test_a_threshold_set_below_the_window_is_the_algorithms_own_too() -> None:
    kept = cut_trace(0, cwnd_after=40, later=41)
    assert cause(kept, counters_at_exit()) == "own-cut"
    assert cause(kept, [], [50, 70], ca_state=[OPEN, OPEN]) == "own-cut"


def test_a_cut_of_which_nothing_speaks_is_unknown() -> None:
    """No reading, no counter, and no further ACK within the round trip."""
    last = cut_trace(0, cwnd_after=20)
    ended = dataclasses.replace(
        last,
        **{name: getattr(last, name)[:11] for name in ("time_ns", "snd_nxt", "snd_una", "cwnd", "ssthresh", "srtt_ns")},
    )
    assert cause(ended, []) == "unknown"
    assert cause(ended, counters_at_exit()) == "own-cut"


def test_a_reading_of_the_next_recovery_says_nothing_of_the_cut() -> None:
    """At 400 ms everything that was sent at the cut has long been acknowledged."""
    assert cause(CUTS, [], [50, 400], ca_state=[OPEN, RECOVERY]) == "own-cut"
    found = find_exit(CUTS)
    assert found is not None
    assert cut_at(CUTS, found.record, make_counters([]), make_info([50, 400], ca_state=[OPEN, RECOVERY])).state is None


def test_a_reading_just_after_the_ack_that_ended_the_recovery_says_nothing_of_the_cut() -> None:
    """The ACK at 96 ms acknowledges all that was sent at the cut; the next one shows it at 110 ms."""
    found = find_exit(RECOVERS)
    assert found is not None
    assert cause(RECOVERS, [], [50, 95], ca_state=[OPEN, RECOVERY]) == "loss"
    assert cause(RECOVERS, [], [50, 100], ca_state=[OPEN, OPEN]) == "loss"
    later = make_info([50, 100], ca_state=[OPEN, OPEN])
    assert cut_at(RECOVERS, found.record, make_counters([]), later).state is None


def test_a_reading_just_after_an_undo_says_nothing_of_the_cut() -> None:
    """The ACK at 80 ms restores the threshold; the next record shows it at 82 ms."""
    ssthresh = RECOVERS.ssthresh.copy()
    ssthresh[21:] = 40
    undone = dataclasses.replace(RECOVERS, ssthresh=ssthresh)
    assert cause(undone, [], [50, 79], ca_state=[OPEN, RECOVERY]) == "loss"
    assert cause(undone, [], [50, 81], ca_state=[OPEN, OPEN]) == "loss"


def test_a_recovery_that_begins_before_all_of_the_cuts_flight_is_acknowledged_is_not_its_cause() -> None:
    """ACKs advance after the cut and stop at 90 ms: the recovery that the reading at 100 ms shows is of that gap."""
    una = CUTS.snd_una.copy()
    una[25:29] = una[25]
    stops = dataclasses.replace(CUTS, snd_una=una)
    assert cause(stops, counters_at_exit(sack_recovery=1), [50, 100], ca_state=[OPEN, RECOVERY]) == "own-cut"


def test_segments_of_the_other_direction_are_no_duplicates() -> None:
    """Requests of the peer that arrive while nothing is outstanding."""
    idle = dataclasses.replace(RECOVERS, snd_nxt=RECOVERS.snd_una.copy())
    found = find_exit(idle)
    assert found is not None
    assert cut_at(RECOVERS, found.record, make_counters([]), make_info([])).duplicates == 3
    assert cut_at(idle, found.record, make_counters([]), make_info([])).duplicates == 0


def test_fewer_than_three_duplicates_need_a_second_witness() -> None:
    """RACK's timer begins a recovery after one; reordering makes one, too."""
    one = cut_trace(1, cwnd_after=40)
    assert cause(one, counters_at_exit(sack_recovery=1)) == "loss"
    assert cause(one, counters_at_exit(reno_recovery=1)) == "loss"
    assert cause(one, counters_at_exit()) == "unknown"


def test_the_counter_of_another_flow_of_the_host_makes_no_loss() -> None:
    assert cause(CUTS, counters_at_exit(sack_recovery=1)) == "own-cut"


def test_vegas_cuts_its_window_by_what_it_thinks_is_queued() -> None:
    vegas = cut_trace(0, cwnd_after=20, later=20, kernel_algorithm="vegas")
    assert cause(vegas, counters_at_exit(), [50, 70], ca_state=[OPEN, OPEN]) == "queue-estimate"
    assert cause(vegas, counters_at_exit(), [50, 70], ca_state=[OPEN, RECOVERY]) == "loss"
    assert cause(vegas, counters_at_exit(), [50, 70], ca_state=[OPEN, CWR]) == "congestion-signal"
    lost = dataclasses.replace(RECOVERS, flow=vegas.flow)
    assert cause(lost, counters_at_exit()) == "loss"


@pytest.mark.parametrize("readings", [counters_at_exit(), counters_at_exit(marked=4)])
def test_a_window_that_comes_down_step_by_step_without_a_recovery_is_a_congestion_signal(readings: Readings) -> None:
    assert cause(REDUCES, readings) == "congestion-signal"
    assert cause(REDUCES, readings, [50, 70], ca_state=[OPEN, CWR]) == "congestion-signal"


def test_marks_do_not_make_a_cut_at_once_a_congestion_signal() -> None:
    assert cause(CUTS, counters_at_exit(marked=4)) == "unknown"
    assert cause(CUTS, counters_at_exit(marked=4), [50, 70], ca_state=[OPEN, OPEN]) == "own-cut"


def test_a_collapsed_window_and_a_timeout_are_an_rto() -> None:
    collapsed = cut_trace(3, cwnd_after=1, later=2)
    assert cause(collapsed, counters_at_exit(timeouts=1, retransmitted=9)) == "rto"
    assert cause(collapsed, [], [50, 70], ca_state=[OPEN, LOSS]) == "rto"
    # The timer of another moment, or of another flow of the host, makes none.
    assert cause(RECOVERS, counters_at_exit(timeouts=1, retransmitted=9)) == "loss"
    assert cause(collapsed, counters_at_exit(timeouts=1), [50, 70], ca_state=[OPEN, RECOVERY]) == "loss"
    own = cut_trace(0, cwnd_after=1, later=2)
    assert cause(own, counters_at_exit(timeouts=1), [50, 70], ca_state=[OPEN, OPEN]) == "own-cut"


def test_a_timeout_that_the_next_ack_undoes_is_an_rto() -> None:
    """A slow link: the timer fires at 500 ms, the ACK of what was no loss comes at 600, the next timer at 1500."""
    slow = make_trace(
        [80, 600, 6656, 12712],
        una=[0, 1, 2, 3],
        nxt=[10, 13, 15, 17],
        cwnd=[10, 1, 1, 13],
        ssthresh=[INF, 7, 8, INF],
    )
    times = [110.0, 410.0, 510.0, 610.0, 1410.0, 1510.0]
    assert cause(slow, [], times, ca_state=[OPEN, OPEN, LOSS, OPEN, OPEN, LOSS]) == "rto"
    assert cause(slow, [], times, ca_state=[OPEN, RECOVERY, LOSS, OPEN, OPEN, LOSS]) == "loss"


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


def test_an_exit_nobody_explains_is_unknown() -> None:
    assert cause(hystart_trace("mine"), counters_at_exit()) == "unknown"


@pytest.mark.parametrize("name", causes.CAUSES)
def test_every_cause_has_words(name: str) -> None:
    assert cause_words(name) not in ("", name)
