# SPDX-License-Identifier: Apache-2.0
"""The decision logic of a plug-in, driven from Python: a program of ``build.py`` that takes commands (README.md)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.decision.build import ALGORITHMS
from tests.decision.event import Event

INFINITE = 0x7FFFFFFF  # ssthresh before there is one, packets
OPEN, DISORDER, CWR, RECOVERY, LOSS = range(5)  # State.state
# Leaks are found when a program ends; a report is an exit code that no test expects.
_SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=1:exitcode=99:abort_on_error=0",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}
_AT_ONCE = 64  # commands written before their answers are read, so that no pipe fills up


class BrokenError(AssertionError):
    """The program ended: a sanitizer's report, or a crash."""


@dataclass(frozen=True)
class State:
    """A connection after a command, and what happened during it. Windows are packets, times microseconds."""

    cwnd: int
    ssthresh: int
    state: int
    una: int
    next: int
    packets_out: int
    now_us: int
    error: int
    events: list[Event]
    breaches: list[str]  # rules of hook.c that were broken
    messages: list[str]  # what the module said in the kernel log, "w text" for a warning
    more: dict[str, Any]  # everything of the answer: pacing_rate, lost_out, plain, sent …

    @property
    def exits(self) -> list[Event]:
        return [event for event in self.events if event.event == "exit"]

    def __getitem__(self, name: str) -> Any:
        return self.more[name]


@dataclass(frozen=True)
class Row:
    """State of a connection on a path, when a round began or after an ACK."""

    time_us: int
    cwnd: int
    ssthresh: int
    flight: int
    una: int
    state: int


@dataclass(frozen=True)
class Course:
    """What a connection did on a path."""

    end: State
    rounds: list[Row]
    rows: list[Row]  # with trace=1: after every ACK
    sent: int
    dropped: int
    acks: int
    queue_max: int
    events: list[Event]

    @property
    def exits(self) -> list[Event]:
        return [event for event in self.events if event.event == "exit"]

    @property
    def growth(self) -> list[float]:
        """cwnd at the end of each round / at its start."""
        return [after.cwnd / before.cwnd for before, after in zip(self.rounds, self.rounds[1:], strict=False)]


def _state(answer: dict[str, Any]) -> State:
    return State(
        cwnd=answer.get("cwnd", 0),
        ssthresh=answer.get("ssthresh", 0),
        state=answer.get("state", 0),
        una=answer.get("una", 0),
        next=answer.get("next", 0),
        packets_out=answer.get("packets_out", 0),
        now_us=answer["now_us"],
        error=answer["error"],
        events=[Event.from_numbers(*numbers) for numbers in answer["events"]],
        breaches=answer.get("breaches", "").splitlines(),
        messages=answer.get("messages", "").splitlines(),
        more=answer,
    )


def _words(options: dict[str, int]) -> str:
    return "".join(f" {name}={int(value)}" for name, value in options.items())


@dataclass
class Connection:
    """A connection of a runner. Every method returns the state after it, and fails where a rule was broken."""

    runner: Runner
    number: int

    def _do(self, name: str, rest: str = "") -> State:
        return self.runner.command(f"{name} {self.number}{rest}")

    def send(self, packets: int = 0) -> State:
        """Send packets as far as windows allow, 0: all of them. ``state["sent"]`` tells how many."""
        return self._do("send", f" {packets}")

    def ack(self, packets: int = 1, *, wait_us: int = 0, **options: int) -> State:
        """The next ``packets`` packets are acknowledged, ``wait_us`` from now.

        Options: ``rtt_us`` (the sample; without it TCP measures, -1: none), ``sacked`` packets arrived
        ``sacked_after`` packets behind those, ``ece`` 1.
        """
        if wait_us:
            self.runner.wait(wait_us)
        return self._do("ack", _words({"packets": packets, **options}))

    def round(self, *, rtt_us: int, gap_us: int = 0) -> list[State]:
        """Send what is allowed; one RTT later each packet of it is acknowledged alone, ``gap_us`` apart."""
        self.send()
        flight = self.state().packets_out
        self.runner.wait(rtt_us)
        return [self.ack(1, wait_us=gap_us if index else 0, rtt_us=rtt_us) for index in range(flight)]

    def lose(self, packets: int = 1) -> State:
        """The oldest packets are found lost: fast recovery."""
        return self._do("lose", f" {packets}")

    def timeout(self) -> State:
        """The retransmission timer fires."""
        return self._do("timeout")

    def local_congestion(self) -> State:
        """A drop in the sender's own queue: CWR."""
        return self._do("congestion")

    def probe_loss(self) -> State:
        """A tail loss probe repaired a loss: CWR that begins and ends at once."""
        return self._do("probe-loss")

    def undo(self, *, at_end: bool = False) -> State:
        """The episode was spurious; ``at_end``: found when all of it is acknowledged."""
        return self._do("undo", f" {int(at_end)}")

    def switch(self, algorithm: str) -> State:
        """TCP_CONGESTION in mid-connection."""
        return self._do("switch", f" {algorithm}")

    def set(self, field: str, value: int) -> State:
        """Set a field of the socket: see ``set_field()`` in runner.c."""
        return self._do("set", f" {field} {value}")

    def state(self) -> State:
        return self._do("state")

    def close(self) -> State:
        """The end; release is called twice, as by TCP."""
        return self._do("close")

    def path(self, **options: int) -> Course:
        """Run over a path: options are the fields of ``struct path`` (path.h)."""
        end = self._do("path", _words(options))
        return Course(
            end=end,
            rounds=[Row(*row) for row in end["rounds"]],
            rows=[Row(*row) for row in end["rows"]],
            sent=end["sent"],
            dropped=end["dropped"],
            acks=end["acks"],
            queue_max=end["queue_max"],
            events=end.events,
        )


@dataclass
class Runner:
    """A running program. It is a context: leaving it ends the program, which looks for leaks then."""

    program: Path
    tolerant: bool = False  # broken rules are in the states, and nobody fails
    _process: subprocess.Popen[str] | None = None
    _opened: int = 0
    _log: list[str] = field(default_factory=list)

    @property
    def plug_in(self) -> str:
        return self.program.name.removeprefix("run-ss_")

    @property
    def alive(self) -> bool:
        return self._process is not None

    def __enter__(self) -> Runner:
        self._process = subprocess.Popen(
            [str(self.program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **_SANITIZERS},
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        process = self._process
        if process is None:
            return
        self._process = None
        _, report = process.communicate()
        if kind is None and process.returncode:
            raise BrokenError(self._explain(report, process.returncode))

    def _explain(self, report: str, code: int) -> str:
        return f"{self.program.name} ended with {code} after:\n" + "\n".join(self._log[-30:]) + f"\n{report[:6000]}"

    def commands(self, lines: Sequence[str]) -> list[State]:
        """Answers to many commands; a batch costs far less than as many single ones."""
        assert self._process and self._process.stdin and self._process.stdout
        states = []
        for start in range(0, len(lines), _AT_ONCE):
            part = lines[start : start + _AT_ONCE]
            self._log.extend(part)
            try:
                self._process.stdin.write("\n".join(part) + "\n")
                self._process.stdin.flush()
            except BrokenPipeError:
                pass
            for line in part:
                answer = self._process.stdout.readline()
                if not answer:
                    self._fail()
                try:
                    state = _state(json.loads(answer))
                except json.JSONDecodeError:
                    self._fail()
                if state.breaches and not self.tolerant:
                    raise AssertionError(f"{line}: {state.breaches}\nafter: " + "; ".join(self._log[-12:]))
                states.append(state)
        return states

    def _fail(self) -> None:
        process, self._process = self._process, None
        assert process
        _, report = process.communicate()
        raise BrokenError(self._explain(report, process.returncode))

    def command(self, line: str) -> State:
        return self.commands([line])[0]

    def load(self, module: str | None = None) -> State:
        """insmod; without a name: the plug-in's module and that of ``standard``."""
        if module:
            return self.command(f"load {module}")
        if self.plug_in != "standard":
            assert self.command("load ss_standard").error == 0
        return self.command(f"load ss_{self.plug_in}")

    def unload(self, module: str | None = None) -> State:
        """rmmod; ``error`` is -16 (EBUSY) while a connection uses it."""
        return self.command(f"unload {module or 'ss_' + self.plug_in}")

    def set(self, **parameters: int | str) -> None:
        """Set parameters of the plug-in's module, which must accept them."""
        self._set(f"ss_{self.plug_in}", parameters)

    def set_core(self, **parameters: int | str) -> None:
        """The same of the core's module."""
        self._set("howdah_slow_start", parameters)

    def _set(self, module: str, parameters: dict[str, int | str]) -> None:
        for name, value in parameters.items():
            error = self.try_set(name, str(value), module).error
            assert error == 0, f"{name}={value} is refused: {os.strerror(-error)}"

    def try_set(self, name: str, value: str, module: str | None = None) -> State:
        """Set a parameter; ``error`` is a negative error number where it is refused."""
        return self.command(f"parameter {module or f'ss_{self.plug_in}'} {name} {value or '-'}")

    def parameters(self) -> dict[str, tuple[str, str]]:
        """Value and description of each parameter."""
        found = self.command(f"parameters ss_{self.plug_in}")["parameters"]
        return {name: (value, text) for name, value, text in found}

    def fail_allocations(self, fail: bool = True) -> None:
        """From now on there is no memory, or there is again."""
        self.command(f"fail-allocations {int(fail)}")

    def wait(self, us: int) -> int:
        """Let time pass; returns the time now."""
        return self.command(f"wait {us}").now_us

    def clock(self, now_us: int) -> None:
        self.command(f"clock {now_us}")

    def open(self, algorithm: Any = None, **options: int) -> Connection:
        """A connection is established: options are the fields of ``struct opening`` (sender.h).

        Without a name (a string; Any lets options be a dictionary), the plug-in over reno.
        """
        number = self._opened % 256
        self._opened += 1
        state = self.command(f"open {number} {algorithm or self.plug_in + '_reno'}{_words(options)}")
        assert state.error == 0, os.strerror(-state.error)
        return Connection(self, number)


def source_of(plug_in: str) -> Path:
    return ALGORITHMS / f"ss_{plug_in}.c"
