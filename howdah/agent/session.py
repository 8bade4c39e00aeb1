# SPDX-License-Identifier: Apache-2.0
"""The agent of one of several machines and the engine that runs them all: JSON lines over the agent's input and output.

The engine asks (``ask``), the agent says (``say``)::

    say hello                                   the agent has its part of the plan
    say ready                                   hosts and sockets are there
    ask clock, number     say clock, number, monotonic_ns        at any time, answered at once
    ask start, epoch_monotonic_ns               the epoch on this machine's clock
    say progress, phase, time_us, of_us
    say done, ok          ask end               after the last file is written
    ask stop                                    another machine failed

An input that ends means that the engine is gone; the agent then stops and gives everything back.
"""

from __future__ import annotations

import json
import os
from typing import Any

from howdah.agent.error import AgentError
from howdah.agent.loop import Loop
from howdah.linux.clock import now_ns

SESSION_FORMAT = 1
_READ_BYTES = 65536


class AgentSession:
    """Takes ``asks`` and ``says``, descriptors, for itself; nothing else may write to the latter."""

    def __init__(self, asks: int, says: int) -> None:
        self._asks = asks
        self._says = says
        self._unread = b""

    @classmethod
    def of_standard_streams(cls) -> AgentSession:
        """On standard input and output; what else is printed goes to standard error from now on."""
        says = os.dup(1)
        os.dup2(2, 1)
        return cls(0, says)

    def say(self, kind: str, **values: Any) -> None:
        text = json.dumps({"say": kind, **values}, separators=(",", ":")) + "\n"
        try:
            os.write(self._says, text.encode())
        except BrokenPipeError:
            raise AgentError("session", "the engine is gone") from None

    def wait(self, kind: str) -> dict[str, Any]:
        """Serve questions about the clock until this is asked. Raises AgentError where it never will be."""
        while True:
            for message in self._read():
                if message["ask"] == kind:
                    return message

    def watch(self, loop: Loop) -> None:
        """Serve them while the loop runs, which ends with AgentError when the engine is gone."""
        loop.when_readable(self._asks, self._readable)

    def _readable(self, _now: int) -> None:
        self._read()

    def _read(self) -> list[dict[str, Any]]:
        """What was asked, apart from the clock. Blocks until there is something."""
        data = os.read(self._asks, _READ_BYTES)
        received_ns = now_ns()
        if not data:
            raise AgentError("session", "the engine is gone")
        *lines, self._unread = (self._unread + data).split(b"\n")
        found = []
        for message in map(json.loads, lines):
            if message["ask"] == "clock":
                self.say("clock", number=message["number"], monotonic_ns=received_ns)
            elif message["ask"] == "stop":
                raise AgentError("session", f"stopped by the engine: {message.get('why', 'another machine failed')}")
            else:
                found.append(message)
        return found
