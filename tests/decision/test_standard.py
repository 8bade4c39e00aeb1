# SPDX-License-Identifier: Apache-2.0
"""Standard slow start, and what the core does for every plug-in: exact cases."""

from __future__ import annotations

import pytest

from tests.decision.conftest import Start
from tests.decision.runner import CWR, INFINITE, LOSS, OPEN, RECOVERY

RTT_US = 100_000


def test_each_acknowledged_packet_is_one_more(start: Start) -> None:
    connection = start("standard").open()
    windows = [10]
    for _ in range(5):
        connection.round(rtt_us=RTT_US)
        windows.append(connection.state().cwnd)
    assert windows == [10, 20, 40, 80, 160, 320]
    assert connection.state().ssthresh == INFINITE


def test_an_ack_of_many_packets_counts_them_all(start: Start) -> None:
    connection = start("standard").open()
    connection.send()
    assert connection.ack(7, wait_us=RTT_US).cwnd == 17


@pytest.mark.parametrize(("limit", "cwnd"), [(1, 11), (2, 12), (8, 17), (0, 17)])
def test_the_limit_of_rfc_3465(start: Start, limit: int, cwnd: int) -> None:
    connection = start("standard", abc_limit=limit).open()
    connection.send()
    assert connection.ack(7, wait_us=RTT_US).cwnd == cwnd


def test_what_is_left_at_the_threshold_goes_to_congestion_avoidance(start: Start) -> None:
    connection = start("standard").open(ssthresh=13)
    connection.send()
    state = connection.ack(10, wait_us=RTT_US)
    # Three packets reach the threshold; seven of the thirteen that make the next one are counted.
    assert (state.cwnd, state["cwnd_count"]) == (13, 7)
    assert [(event.event, event.reason) for event in state.events] == [("exit", "initial-ssthresh")]


def test_initial_window_and_threshold_are_parameters(start: Start) -> None:
    state = start("standard", init_cwnd=4, init_ssthresh=64).open().state()
    assert (state.cwnd, state.ssthresh) == (4, 64)


def test_a_window_that_is_not_used_does_not_grow(start: Start) -> None:
    connection = start("standard").open()
    connection.send(3)
    assert connection.ack(3, wait_us=RTT_US).cwnd == 10


def test_loss_halves_and_recovery_ends_at_the_threshold(start: Start) -> None:
    connection = start("standard").open(cwnd=20)
    connection.send()
    connection.runner.wait(RTT_US)
    state = connection.ack(0, sacked_after=1, sacked=4)
    assert (state.state, state.ssthresh) == (RECOVERY, 10)
    assert [(event.event, event.reason, event.cwnd) for event in state.events] == [("exit", "loss", 20)]
    connection.ack(19, wait_us=RTT_US)
    state = connection.ack(1)
    assert (state.state, state.cwnd, state["cwnd_count"]) == (OPEN, 10, 1)


def test_a_timeout_starts_again_from_one(start: Start) -> None:
    connection = start("standard").open(cwnd=20)
    connection.send()
    state = connection.timeout()
    assert (state.state, state.cwnd, state.ssthresh) == (LOSS, 1, 10)
    assert [event.reason for event in state.events] == ["rto"]
    connection.send()
    connection.ack(1, wait_us=RTT_US)
    # In the state Loss, slow start goes on.
    assert connection.state().cwnd == 2


def test_an_undo_restores_the_window(start: Start) -> None:
    connection = start("standard").open(cwnd=20)
    connection.send()
    connection.lose()
    state = connection.undo()
    assert (state.state, state.cwnd, state.ssthresh) == (OPEN, 20, INFINITE)
    assert [(event.event, event.reason) for event in state.events] == [("resume", "spurious")]


def test_congestion_in_the_senders_own_queue_is_told(start: Start) -> None:
    connection = start("standard").open(cwnd=20)
    connection.send()
    state = connection.local_congestion()
    assert (state.state, state.ssthresh) == (CWR, 10)
    assert [event.reason for event in state.events] == ["congestion-signal"]


def test_after_idleness_the_window_is_the_initial_one(start: Start) -> None:
    runner = start("standard")
    connection = runner.open(unsent_packets=320)
    for _ in range(5):
        connection.round(rtt_us=RTT_US)
    runner.wait(10_000_000)
    connection.set("unsent_packets", 1000)
    assert connection.send()["sent"] == 10


def test_a_switch_in_mid_connection_is_a_new_start(start: Start) -> None:
    connection = start("standard").open()
    connection.round(rtt_us=RTT_US)
    state = connection.switch("standard_cubic")
    assert (state.cwnd, state["joined"], state["round"]) == (20, 1, 0)


def test_a_module_in_use_stays(start: Start) -> None:
    runner = start("standard")
    connection = runner.open()
    assert runner.unload().error == -16
    connection.close()
    assert runner.unload().error == 0
    assert runner.command("modules")["algorithms"] == []


def test_it_doubles_on_the_path_of_the_guest_tests(start: Start) -> None:
    course = start("standard").open(handshake_rtt_us=102_000).path(until_exit=1)
    assert all(1.9 <= growth <= 2.0 for growth in course.growth[:6])
    # 842 packets fill the path and as many its queue.
    assert [event.reason for event in course.exits] == ["loss"]
    assert 2 * 842 < course.exits[0].cwnd <= 4 * 843
