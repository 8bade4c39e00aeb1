# SPDX-License-Identifier: Apache-2.0
"""The agent's side of its session with the engine, when a run spans several machines: JSON lines on stdin and stdout.

The engine sends ``ask``, the agent sends ``say``::

    say hello                                   the agent has its part of the plan
    say ready                                   hosts and sockets exist
    ask clock, number     say clock, number, monotonic_ns        at any time, answered at once
    ask start, epoch_monotonic_ns               the epoch on this machine's clock
    say progress, phase, time_us, of_us
    say done, ok          ask end               after the last file is written
    ask stop                                    another machine failed

End of input means that the engine is gone; the agent then stops and undoes its changes to the machine.
"""

from __future__ import annotations

import json
import os
from dataclasses import field

from howdah.agent.error import AgentError
from howdah.agent.loop import Loop
from howdah.codec import OCCASIONAL, decoded, encoded, planned
from howdah.linux.clock import now_ns
from howdah.record.agent import AgentFailure

SESSION_FORMAT = 1
_READ_BYTES = 65536


@planned
class SessionQuestion:
    """A message from the engine; the module's docstring says which fields each kind has."""

    ask: str
    number: int = field(default=0, metadata=OCCASIONAL)
    epoch_monotonic_ns: int = field(default=0, metadata=OCCASIONAL)
    why: str = field(default="another machine failed", metadata=OCCASIONAL)


@planned
class SessionWord:
    """A message from the agent."""

    say: str
    format: int = field(default=0, metadata=OCCASIONAL)
    machine: str = field(default="", metadata=OCCASIONAL)
    ready_ns: int = field(default=0, metadata=OCCASIONAL)
    number: int = field(default=0, metadata=OCCASIONAL)
    monotonic_ns: int = field(default=0, metadata=OCCASIONAL)
    phase: str = field(default="", metadata=OCCASIONAL)
    time_us: int = field(default=0, metadata=OCCASIONAL)
    of_us: int = field(default=0, metadata=OCCASIONAL)
    ok: bool = field(default=False, metadata=OCCASIONAL)
    error: AgentFailure | None = field(default=None, metadata=OCCASIONAL)


class AgentSession:
    """A session that reads from the descriptor ``asks`` and writes to ``says``; nothing else may write to ``says``."""

    def __init__(self, asks: int, says: int) -> None:
        self._asks = asks
        self._says = says
        self._unread = b""

    @classmethod
    def of_standard_streams(cls) -> AgentSession:
        """Open a session on standard input and output. From now on anything printed goes to standard error."""
        says = os.dup(1)
        os.dup2(2, 1)
        return cls(0, says)

    def say(self, said: SessionWord) -> None:
        text = json.dumps(encoded(said), separators=(",", ":")) + "\n"
        try:
            os.write(self._says, text.encode())
        except BrokenPipeError:
            raise AgentError("session", "the engine is gone") from None

    def wait(self, kind: str) -> SessionQuestion:
        """Answer questions about the clock until a message of this kind arrives. Raises AgentError if the engine stops
        the run or is gone."""
        while True:
            for message in self._read():
                if message.ask == kind:
                    return message

    def watch(self, loop: Loop) -> None:
        """Answer messages while the loop runs. The loop raises AgentError when the engine is gone."""
        loop.when_readable(self._asks, self._readable)

    def _readable(self, _now: int) -> None:
        self._read()

    def _read(self) -> list[SessionQuestion]:
        """Return the engine's messages other than questions about the clock, which are answered. Blocks until input
        arrives."""
        data = os.read(self._asks, _READ_BYTES)
        received_ns = now_ns()
        if not data:
            raise AgentError("session", "the engine is gone")
        *lines, self._unread = (self._unread + data).split(b"\n")
        found = []
        for message in (decoded(SessionQuestion, json.loads(line)) for line in lines):
            if message.ask == "clock":
                self.say(SessionWord("clock", number=message.number, monotonic_ns=received_ns))
            elif message.ask == "stop":
                raise AgentError("session", f"stopped by the engine: {message.why}")
            else:
                found.append(message)
        return found
