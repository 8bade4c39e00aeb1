# SPDX-License-Identifier: Apache-2.0
"""Careful Resume: its phases, PipeSize, and who may use what was saved."""

from __future__ import annotations

from tests.decision.conftest import Lived, Start
from tests.decision.runner import INFINITE, LOSS, OPEN, RECOVERY, Connection, Runner, State

RTT_US = 100_000
MSS_BYTES = 1448


def told(state: State, event: str) -> list[tuple[int, int]]:
    return [(item.quantity, item.threshold) for item in state.events if item.event == event]


def teach(runner: Runner, *, rounds: int = 6, rtt_us: int = RTT_US, **opening: int) -> None:
    """A connection that doubles from 10: it is left with 10 * 2^(rounds - 1) packets acknowledged in its last RTT."""
    connection = runner.open(None, **opening)
    for _ in range(rounds + 1):
        connection.round(rtt_us=rtt_us)
    connection.close()


def resumed(runner: Runner, **opening: int) -> Connection:
    """A connection whose initial window has been acknowledged."""
    connection = runner.open(None, **opening)
    connection.round(rtt_us=RTT_US)
    return connection


def test_the_first_connection_is_a_standard_one(start: Start) -> None:
    connection = start("careful").open()
    windows = []
    for _ in range(5):
        windows.append(connection.state().cwnd)
        connection.round(rtt_us=RTT_US)
    assert windows == [10, 20, 40, 80, 160]
    assert connection.state()["pacing"] == 0


def test_it_jumps_to_half_of_what_was_saved(start: Start) -> None:
    runner = start("careful")
    teach(runner)
    connection = runner.open()
    states = connection.round(rtt_us=RTT_US)
    # 320 packets were acknowledged in the last RTT.
    assert states[-1].cwnd == 160
    assert told(states[-1], "jump") == [(160, 19)]
    assert states[-1]["max_pacing_rate"] == 160 * MSS_BYTES * 10
    assert all(state["pacing"] == 0 for state in states[:-1])


def test_nothing_below_four_initial_windows_is_saved(start: Start) -> None:
    runner = start("careful")
    teach(runner, rounds=2)  # 20 packets in the last RTT
    assert resumed(runner).state().cwnd == 20
    teach(runner, rounds=4)  # 80
    assert resumed(runner).state().cwnd == 40


def test_what_is_saved_is_of_one_peer_and_one_name_space(start: Start) -> None:
    runner = start("careful")
    teach(runner)
    assert resumed(runner, peer=2).state().cwnd == 20
    assert resumed(runner, net=1).state().cwnd == 20
    assert resumed(runner).state().cwnd == 160


def test_one_connection_at_a_time(start: Start) -> None:
    runner = start("careful")
    teach(runner)
    first = resumed(runner)
    assert first.state().cwnd == 160
    assert resumed(runner).state().cwnd == 20
    first.close()
    assert resumed(runner).state().cwnd == 160


def test_what_was_saved_expires(start: Start) -> None:
    runner = start("careful", lifetime_s=60)
    teach(runner)
    runner.wait(59_000_000)
    resumed(runner).close()
    runner.wait(2_000_000)
    assert resumed(runner).state().cwnd == 20


def test_the_jump_has_a_limit(start: Start) -> None:
    runner = start("careful", max_jump=77)
    teach(runner)
    assert resumed(runner).state().cwnd == 77


def test_a_path_with_another_rtt_is_another_path(start: Start) -> None:
    runner = start("careful")
    teach(runner)
    connection = runner.open()
    connection.round(rtt_us=RTT_US // 2)  # at most half
    assert connection.state().cwnd == 20
    connection = runner.open(peer=3)
    teach(runner, peer=3)
    connection = runner.open(peer=3)
    connection.round(rtt_us=RTT_US // 2 + 1)
    assert connection.state().cwnd == 160
    teach(runner, peer=4)
    connection = runner.open(peer=4)
    connection.round(rtt_us=10 * RTT_US + 1)
    assert connection.state().cwnd == 20
    connection = runner.open(peer=4)
    connection.round(rtt_us=10 * RTT_US)
    assert connection.state().cwnd == 160


def test_congestion_in_reconnaissance_ends_it(start: Start) -> None:
    runner = start("careful")
    teach(runner)
    connection = runner.open()
    connection.send()
    connection.ack(1, wait_us=RTT_US)
    connection.lose()
    connection.send()
    connection.ack(20, wait_us=RTT_US)
    connection.send()
    assert connection.ack(1, wait_us=RTT_US)["pacing"] == 0
    assert resumed(runner).state().cwnd == 160  # and nothing was forgotten


def test_without_more_to_send_the_jump_waits(start: Start) -> None:
    runner = start("careful")
    teach(runner)
    connection = runner.open(unsent_packets=15)
    connection.round(rtt_us=RTT_US)
    assert connection.state()["pacing"] == 0
    connection.set("unsent_packets", 5000)
    connection.send(1)
    states = connection.round(rtt_us=RTT_US)
    assert [quantity for quantity, _ in told(states[0], "jump")] == [160]


def unvalidated(start: Start, **parameters: int) -> Connection:
    """In the unvalidated phase: ten packets of reconnaissance acknowledged, 18 in flight, 160 allowed."""
    runner = start("careful", **parameters)
    teach(runner)
    connection = runner.open()
    connection.send()
    connection.runner.wait(RTT_US)
    for _ in range(9):
        connection.ack(1, rtt_us=RTT_US)
        connection.send()
    assert connection.ack(1, rtt_us=RTT_US).cwnd == 160
    assert connection.state().packets_out == 18
    return connection


def test_the_window_stands_while_it_is_filled(start: Start) -> None:
    connection = unvalidated(start)
    for _ in range(10):
        connection.send(3)
        state = connection.ack(1)
        assert (state.cwnd, told(state, "jump-end")) == (160, [])


def test_a_full_window_is_validated_by_slow_start(start: Start) -> None:
    connection = unvalidated(start)
    connection.send()
    state = connection.send()  # TCP looks again when the pacing timer fires
    assert told(state, "jump-end") == [(160, 18)]
    assert (state.cwnd, state["pacing"]) == (160, 0)
    # PipeSize is what was in flight at first, and what arrived: 18 + 160.
    state = connection.ack(160, wait_us=RTT_US)
    assert told(state, "phase") == [(178, 160)]
    assert (state.cwnd, state.ssthresh) == (320, INFINITE)


def test_the_first_unvalidated_packet_ends_the_jump(start: Start) -> None:
    connection = unvalidated(start)
    connection.send(82)  # 100 in flight
    state = connection.ack(19, wait_us=50_000)
    # 81 are in flight, PipeSize is 18 + 19; slow start adds the 19.
    assert told(state, "jump-end") == [(81, 37)]
    assert (state.cwnd, state["pacing"]) == (100, 0)


def test_an_rtt_ends_the_jump(start: Start) -> None:
    connection = unvalidated(start)
    connection.send(82)
    assert told(connection.ack(1, wait_us=RTT_US - 1000), "jump-end") == []
    assert told(connection.ack(1, wait_us=2000), "jump-end") == [(98, 20)]


def test_a_jump_that_was_not_used_is_taken_back(start: Start) -> None:
    connection = unvalidated(start)
    connection.send(10)  # 28 in flight
    state = connection.ack(19, wait_us=50_000)
    # Nine are in flight, less than an initial window: PipeSize, and slow start.
    assert told(state, "jump-end") == [(9, 37)]
    assert state.cwnd == 37 + 19


def test_a_loss_retreats_to_half_of_pipe_size(start: Start) -> None:
    connection = unvalidated(start)
    connection.send()
    connection.send()
    connection.ack(18, wait_us=RTT_US)
    connection.ack(20)
    # PipeSize is 18 + 38; four packets more arrive behind a missing one.
    state = connection.ack(0, sacked_after=1, sacked=4)
    assert state.state == RECOVERY
    assert told(state, "retreat") == [(30, 60)]
    connection.send()
    state = connection.ack(0, sacked_after=5, sacked=10)
    assert state.cwnd == 30
    # Nothing grows before the last packet of the jump is acknowledged.
    state = connection.ack(connection.state().next, wait_us=RTT_US)
    assert state.state == OPEN
    # PipeSize has counted everything that arrived since the jump, ten packets before it.
    assert state.ssthresh == (18 + state["delivered"] - 10) // 2


def test_a_retreat_forgets(start: Start) -> None:
    connection = unvalidated(start)
    connection.send()
    connection.lose()
    assert resumed(connection.runner).state().cwnd == 20


def test_the_threshold_after_a_retreat_is_a_parameter(start: Start) -> None:
    connection = unvalidated(start, beta_percent=70)
    connection.send()
    connection.send()
    connection.lose()
    connection.send()
    connection.ack(160, wait_us=RTT_US)
    assert connection.state().ssthresh == (18 + 160) * 70 // 100


def test_a_timeout_ends_it_and_forgets(start: Start) -> None:
    connection = unvalidated(start)
    connection.send()
    state = connection.timeout()
    assert (state.state, state.cwnd, state["pacing"]) == (LOSS, 1, 0)
    assert resumed(connection.runner).state().cwnd == 20


def test_after_an_undo_it_is_a_standard_connection(start: Start) -> None:
    connection = unvalidated(start)
    connection.send()
    connection.send()
    connection.lose()
    state = connection.undo()
    assert (state.cwnd, state.ssthresh) == (160, INFINITE)
    assert connection.ack(1, wait_us=RTT_US).cwnd == 161


def test_a_running_connection_only_observes(start: Start) -> None:
    runner = start("careful")
    teach(runner)
    connection = runner.open(algorithm="standard_reno")
    connection.round(rtt_us=RTT_US)
    connection.switch("careful_reno")
    connection.round(rtt_us=RTT_US)
    assert (connection.state().cwnd, connection.state()["pacing"]) == (40, 0)


def test_the_table_is_bounded(lived: Lived) -> None:
    def life(start: Start) -> None:
        runner = start("careful")
        for peer in range(256):
            teach(runner, peer=peer, rounds=4)
        jumps = sum(resumed(runner, peer=peer).state().cwnd == 40 for peer in range(256))
        assert 128 <= jumps <= 256

    lived("careful", life)
