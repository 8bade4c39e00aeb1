# SPDX-License-Identifier: Apache-2.0
"""Quick-Start: the rates of RFC 4782, its window, and what a lost packet makes of it."""

from __future__ import annotations

import pytest

from tests.decision.conftest import Start
from tests.decision.runner import INFINITE, LOSS, OPEN, RECOVERY, Connection

RTT_US = 100_000
MSS_BYTES = 1448
PACKET_BYTES = 1500  # with 32 bytes of TCP header and 20 of IP


def granted(kbps: int) -> int:
    """The largest 40 kbit/s * 2^N not above, N from 1 to 15."""
    return max(40 << power for power in range(1, 16) if 40 << power <= kbps)


@pytest.mark.parametrize("kbps", [81_920, 81_921, 163_839, 163_840, 20_480, 1_310_720])
@pytest.mark.parametrize("rtt_us", [100_000, 600_000])
def test_the_window_is_what_the_granted_rate_carries(start: Start, kbps: int, rtt_us: int) -> None:
    state = start("quick", rate_kbps=kbps).open(handshake_rtt_us=rtt_us).state()
    bytes_per_second = granted(kbps) * 125
    assert state.cwnd == bytes_per_second * rtt_us // 1_000_000 // PACKET_BYTES
    assert state.ssthresh == INFINITE
    assert state["max_pacing_rate"] == bytes_per_second * MSS_BYTES // PACKET_BYTES


@pytest.mark.parametrize("value", ["79", "1", "1310721", "many", "-1", ""])
def test_rates_that_no_request_can_carry_are_refused(start: Start, value: str) -> None:
    runner = start("quick")
    answer = runner.try_set("rate_kbps", value)
    assert answer.error < 0
    assert "80 to 1310720" in answer.messages[0]
    assert runner.open().state().cwnd == 81_920 * 125 // 10 // PACKET_BYTES


@pytest.mark.parametrize(
    ("parameters", "opening"),
    [
        ({"rate_kbps": 0}, {}),
        ({"rate_kbps": 80}, {}),  # less than the initial window
        ({}, {"handshake_rtt_us": 0}),
        ({}, {"ssthresh": 50}),
    ],
)
def test_without_a_grant_of_use_it_is_standard(
    start: Start, parameters: dict[str, int], opening: dict[str, int]
) -> None:
    state = start("quick", **parameters).open(None, **opening).state()
    assert (state.cwnd, state["pacing"], state.events) == (10, 0, [])


def test_it_ends_with_the_first_ack(start: Start) -> None:
    connection = start("quick").open()
    assert connection.send()["sent"] == 682
    state = connection.ack(1, wait_us=RTT_US)
    assert (state.cwnd, state.ssthresh, state["pacing"]) == (683, INFINITE, 0)
    assert [(event.event, event.quantity, event.threshold) for event in state.events] == [("jump-end", 682, 682)]


def test_what_was_not_used_is_not_kept(start: Start) -> None:
    connection = start("quick").open(unsent_packets=100)
    connection.send()
    assert connection.ack(1, wait_us=RTT_US).cwnd == 101
    connection = connection.runner.open(unsent_packets=3)
    connection.send()
    assert connection.ack(1, wait_us=RTT_US).cwnd == 10


def test_slow_start_may_end_with_it(start: Start) -> None:
    state = start("quick", slow_start_on=0).open().state()
    assert (state.cwnd, state.ssthresh) == (682, 682)


def test_the_unpaced_variant_is_not_paced_and_lost_as_usual(start: Start) -> None:
    connection = start("quick", paced=0).open()
    state = connection.send()
    assert (state["sent"], state["pacing"]) == (682, 0)
    connection.runner.wait(RTT_US)
    state = connection.ack(0, sacked_after=1, sacked=4)
    # Proportional rate reduction: half of what arrived, and the first retransmission at least.
    assert (state.state, state.ssthresh) == (RECOVERY, 341)
    assert state.cwnd == 682 - 5 + 2
    assert [event.event for event in state.events] == ["exit"]


@pytest.mark.parametrize(("rate_kbps", "window"), [(81_920, 1263), (0, 148_612), (1_310_720, 20)])
def test_the_unpaced_variant_may_have_any_window(start: Start, rate_kbps: int, window: int) -> None:
    state = start("quick", paced=0, rate_kbps=rate_kbps, window_packets=window).open().state()
    assert (state.cwnd, state.ssthresh, state["pacing"]) == (window, INFINITE, 0)


def test_the_window_of_an_application_is_none_of_the_paced_variant(start: Start) -> None:
    assert start("quick", window_packets=1263).open().state().cwnd == 682


def reverted(start: Start, lost: int) -> Connection:
    """Everything is sent; the last packets arrive, the first ``lost`` do not."""
    connection = start("quick").open(unsent_packets=682)
    connection.send()
    connection.runner.wait(RTT_US)
    connection.ack(0, sacked_after=lost, sacked=682 - lost)
    return connection


def test_a_loss_reverts_to_the_initial_window(start: Start) -> None:
    connection = start("quick").open()
    connection.send()
    connection.runner.wait(RTT_US)
    state = connection.ack(0, sacked_after=1, sacked=4)
    assert (state.state, state.ssthresh) == (RECOVERY, 340)
    assert [(event.event, event.quantity) for event in state.events if event.event == "retreat"] == [("retreat", 10)]
    # One retransmission (RFC 6675, section 5), and then silence until ten are in flight.
    assert connection.send()["sent"] == 1
    for sacked in range(10, 660, 10):
        state = connection.ack(0, sacked_after=5, sacked=sacked)
        assert (state.cwnd, connection.send()["sent"]) == (10, 0)


def test_slow_start_then_goes_up_to_half_of_what_got_through(start: Start) -> None:
    connection = reverted(start, lost=82)
    state = connection.state()
    assert (state.state, state["lost_out"], state.ssthresh) == (RECOVERY, 82, 300)
    sent = []
    for _ in range(3):
        sent.append(connection.send()["sent"])
        connection.ack(sent[-1], wait_us=RTT_US)
    assert sent == [10, 20, 40]
    connection.send()
    state = connection.ack(682, wait_us=RTT_US)
    assert (state.state, state.ssthresh, state.cwnd) == (OPEN, 300, 92)


def test_losses_of_later_packets_do_not_count(start: Start) -> None:
    connection = start("quick").open(unsent_packets=5000)
    connection.send()
    connection.runner.wait(RTT_US)
    # Half of the granted packets arrive, and slow start sends two for each.
    for _ in range(341):
        connection.ack(1)
        connection.send()
    state = connection.ack(0, sacked_after=341, sacked=4)
    assert state.state == RECOVERY
    for _ in range(5):
        state = connection.ack(0, sacked_after=400, sacked=100)
    # 341 were delivered, and 341 are known to be lost: what happens to the others is of no interest.
    assert connection.ack(0, sacked_after=600, sacked=4)["lost_out"] > 341
    connection.send()
    state = connection.ack(5000, wait_us=RTT_US)
    assert state.ssthresh == 341 // 2


def test_an_undo_takes_it_back(start: Start) -> None:
    connection = reverted(start, lost=1)
    state = connection.undo()
    assert (state.cwnd, state.ssthresh) == (682, INFINITE)


def test_a_timeout_remembers_half_of_what_got_through(start: Start) -> None:
    connection = start("quick").open(unsent_packets=682)
    connection.send()
    connection.ack(82, wait_us=RTT_US)
    state = connection.timeout()
    assert (state.state, state.cwnd) == (LOSS, 1)
    # All 600 that are missing are taken for lost.
    assert state.ssthresh == 41


def test_a_running_connection_asks_for_nothing(start: Start) -> None:
    connection = start("quick").open(algorithm="standard_reno")
    connection.round(rtt_us=RTT_US)
    state = connection.switch("quick_reno")
    assert (state.cwnd, state["pacing"]) == (20, 0)


def test_the_first_ten_are_paced_if_asked(start: Start) -> None:
    connection = start("quick", pace_first=1).open()
    assert connection.state()["data_segs_out"] == 10
    connection.send()
    assert connection.ack(1, wait_us=RTT_US)["data_segs_out"] == 682
