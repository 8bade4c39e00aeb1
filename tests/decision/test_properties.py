# SPDX-License-Identifier: Apache-2.0
"""What holds for every plug-in over every base, whatever happens: the rules of ``hook.c``, and no memory left."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.decision.build import plug_ins
from tests.decision.conftest import Lived, Start
from tests.decision.runner import Connection, Runner

BASES = ("reno", "cubic")
SETTINGS = settings(
    max_examples=15, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
EVERY = pytest.mark.parametrize("plug_in", plug_ins())
EVERY_BASE = pytest.mark.parametrize("base", BASES)

# Samples as TCP may give them: none, less than a microsecond, a path's, and what an ACK of minutes ago would give.
RTTS_US = st.one_of(st.sampled_from([-1, 0, 1, 2**31 - 1]), st.integers(1000, 700_000))


@st.composite
def steps(draw: st.DrawFn) -> list[str]:
    """A life of connection 0, in the runner's commands."""
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 25))):
        kind = draw(st.sampled_from(["round", "round", "ack", "ack", "sack", "lose", "undo", "rest", "switch"]))
        if kind == "round":
            rtt_us = draw(RTTS_US)
            lines += ["send 0", f"wait {max(rtt_us, 1) % 1_000_000}"]
            lines += [f"ack 0 packets=1 rtt_us={rtt_us}"] * draw(st.integers(1, 12))
        elif kind == "ack":
            lines += ["send 0", f"wait {draw(st.integers(0, 300_000))}", f"ack 0 packets={draw(st.integers(0, 5000))}"]
            if draw(st.booleans()):
                lines[-1] += f" rtt_us={draw(RTTS_US)}"
            if draw(st.integers(0, 9)) == 0:
                lines[-1] += " ece=1"
        elif kind == "sack":
            lines.append(f"ack 0 packets=0 sacked_after={draw(st.integers(1, 20))} sacked={draw(st.integers(1, 20))}")
        elif kind == "lose":
            lines.append(draw(st.sampled_from(["lose 0 1", "lose 0 50", "timeout 0", "congestion 0", "probe-loss 0"])))
        elif kind == "undo":
            lines.append(f"undo 0 {draw(st.integers(0, 1))}")
        elif kind == "rest":
            lines += [f"wait {draw(st.integers(1, 2**33))}", "send 0"]
        else:
            lines.append(f"switch 0 {draw(st.sampled_from(['standard_reno', 'standard_cubic', 'HOME']))}")
    return lines


@EVERY
@EVERY_BASE
def test_rules_hold_in_any_order_of_things(lived: Lived, plug_in: str, base: str) -> None:
    def lives(start: Start) -> None:
        runner = start(plug_in)

        @SETTINGS
        @given(
            life=steps(),
            clock=st.sampled_from([10**6, 2**32 - 10**6, 2**33]),
            sequence=st.sampled_from([1, 2**32 - 20_000, 2**31]),
            mss_bytes=st.sampled_from([536, 1448, 8948]),
            cwnd=st.sampled_from([1, 10, 10, 5000]),
            handshake_rtt_us=st.sampled_from([0, 1, 100_000, 20_000_000]),
            late=st.booleans(),
        )
        def live(life: list[str], clock: int, late: bool, **options: int) -> None:
            runner.clock(clock)
            connection = runner.open(f"{plug_in}_{base}", late_ack_event=int(late), **options)
            lines = [re.sub(r"^(\S+) 0", rf"\1 {connection.number}", line) for line in life]
            try:
                runner.commands([line.replace("HOME", f"{plug_in}_{base}") for line in lines])
            finally:
                if runner.alive:
                    connection.close()

        live()
        assert runner.unload().error == 0
        assert runner.command("modules")["allocations"] == 0

    lived(plug_in, lives)


LONGEST = {
    "bits_per_second": 10**10,
    "interface_bits_per_second": 4 * 10**10,
    "rtt_us": 600_000,
    "buffer_packets": 250_000,
}


@EVERY
@pytest.mark.parametrize(
    ("base", "cwnd", "late", "duration_us"),
    [("reno", 10, 0, 11_000_000), ("cubic", 450_000, 1, 2_500_000)],
    ids=["from-the-start", "with-a-large-window"],
)
def test_ten_gigabits_and_six_hundred_milliseconds(
    lived: Lived, plug_in: str, base: str, cwnd: int, late: int, duration_us: int
) -> None:
    """A bandwidth-delay product of 495 000 packets: products of windows and times need 64 bits."""

    def life(start: Start) -> None:
        runner = start(plug_in)
        runner.clock(2**32 - 2_000_000)
        options = {"handshake_rtt_us": 600_000, "late_ack_event": late, "sequence": 2**32 - 10**6}
        connection = runner.open(f"{plug_in}_{base}", cwnd=cwnd, **options)
        course = connection.path(**LONGEST, duration_us=duration_us)
        assert course.sent > 100
        connection.close()

    lived(plug_in, life)


def _windows(connection: Connection) -> list[tuple[int, int, int]]:
    """cwnd, ssthresh and state after every ACK of a slow start that overshoots, and of what follows."""
    course = connection.path(trace=1, duration_us=3_000_000, rtt_us=60_000, buffer_packets=300)
    return [(row.cwnd, row.ssthresh, row.state) for row in course.rows]


@EVERY
@EVERY_BASE
def test_without_memory_it_is_standard_slow_start(start: Start, plug_in: str, base: str) -> None:
    """Where there is no memory for the plug-in's state, the connection is as good as one of ``standard``."""
    runner = start(plug_in)
    runner.fail_allocations()
    connection = runner.open(f"{plug_in}_{base}")
    plain = connection.state()["plain"]
    windows = _windows(connection)
    connection.close()
    if plain:
        assert windows == _windows(start("standard").open(f"standard_{base}"))
    assert len(windows) > 100


def test_some_plug_in_needs_memory(start: Start) -> None:
    """Or the test above compares nothing."""
    plain = []
    for plug_in in plug_ins():
        runner = start(plug_in)
        runner.fail_allocations()
        plain.append(runner.open(f"{plug_in}_cubic").state()["plain"])
    assert any(plain)


def _ranges(runner: Runner) -> dict[str, tuple[int, int]]:
    """Smallest and largest value of the parameters whose description ends with "(1 to 16)"."""
    found = {}
    for name, (_, text) in runner.parameters().items():
        span = re.search(r"\((\w+) to (\w+)\)$", text)
        if span:
            found[name] = (int(span[1], 0), int(span[2], 0))
    return found


@EVERY
def test_parameters_outside_their_range_are_refused_with_a_reason(start: Start, plug_in: str) -> None:
    runner = start(plug_in)
    for name, (least, most) in _ranges(runner).items():
        before = runner.parameters()[name][0]
        for value in (str(least - 1), str(most + 1), "nonsense", "", "99999999999999999999"):
            state = runner.try_set(name, value)
            assert state.error < 0, f"{name}={value} is accepted"
            assert any(name in message for message in state.messages), f"{name}={value} is refused without a word"
        assert runner.parameters()[name][0] == before
        for accepted in (least, most):
            runner.set(**{name: accepted})


@EVERY
@EVERY_BASE
def test_any_accepted_parameters_are_safe(lived: Lived, plug_in: str, base: str) -> None:
    def lives(start: Start) -> None:
        runner = start(plug_in)
        names = sorted(runner.parameters())
        defaults = {name: value for name, (value, _) in runner.parameters().items()}
        numbers = st.one_of(
            st.integers(0, 20), st.integers(0, 2**32 - 1), st.sampled_from([2**16, 2**31 - 1, 2**31, 2**32 - 1])
        )

        @SETTINGS
        @given(values=st.fixed_dictionaries({name: st.one_of(st.none(), numbers) for name in names}), data=st.data())
        def run(values: dict[str, int | None], data: st.DataObject) -> None:
            for name, value in values.items():
                runner.try_set(name, defaults[name] if value is None else str(value))
            connection = runner.open(f"{plug_in}_{base}", handshake_rtt_us=data.draw(st.sampled_from([0, 60_000])))
            try:
                connection.path(
                    rtt_us=60_000,
                    duration_us=1_500_000,
                    bits_per_second=data.draw(st.sampled_from([10**6, 10**8])),
                    buffer_packets=data.draw(st.sampled_from([5, 500])),
                    jitter_us=data.draw(st.sampled_from([0, 20_000])),
                    loss_per_million=data.draw(st.sampled_from([0, 1000])),
                )
            finally:
                if runner.alive:
                    connection.close()

        run()

    lived(plug_in, lives)


@EVERY
def test_many_connections_leave_nothing_behind(lived: Lived, plug_in: str) -> None:
    """To many peers at once, in two name spaces, with and without memory."""
    lived(plug_in, lambda start: _many_connections(start, plug_in))


def _many_connections(start: Start, plug_in: str) -> None:
    runner = start(plug_in)
    for turn in range(3):
        runner.fail_allocations(turn == 1)
        connections = [
            runner.open(f"{plug_in}_{BASES[peer % 2]}", peer=peer, net=peer % 2, unsent_packets=200)
            for peer in range(40)
        ]
        for connection in connections:
            connection.path(duration_us=1_000_000, rtt_us=60_000)
        assert runner.unload().error == -16
        for connection in connections:
            connection.close()
    runner.fail_allocations(False)
    assert runner.unload().error == 0
    assert runner.command("modules")["allocations"] == 0
    assert runner.load(f"ss_{plug_in}").error == 0
