# SPDX-License-Identifier: Apache-2.0
"""The engine's side of the sessions with agents (howdah/agent/session.py): messages in order, with time limits."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from howdah.agent.session import SessionQuestion, SessionWord
from howdah.codec import decoded, encoded
from howdah.engine.machines.clock import ClockSample, LocalClock, estimate
from howdah.errors import RunFailedError
from howdah.record.agent import AgentFailure
from howdah.record.clock import Offset
from howdah.record.kernel_log import console_tail

_READ_BYTES = 65536
_ANSWER_S = 20.0  # a machine that takes longer to tell its time is unfit for measurements
_ENDS_S = 30.0
_LOOK_S = 1.0

Listener = Callable[[str, SessionWord], None]  # machine, a message other than the awaited one


class AgentConversation:
    """The session with the agent of one machine through ``process`` (ssh), whose standard error goes to ``console``."""

    def __init__(self, machine: str, process: subprocess.Popen[bytes], console: Path) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.machine = machine
        self.console = console
        self._process = process
        self._asks: IO[bytes] = process.stdin
        self._says: IO[bytes] = process.stdout
        os.set_blocking(self._says.fileno(), False)
        self._unread = b""
        self._said: deque[SessionWord] = deque()
        self._ended = False
        self._errors = threading.Thread(target=_copy, args=(process.stderr, console), daemon=True)
        self._errors.start()

    @property
    def descriptor(self) -> int:
        return self._says.fileno()

    def ask(self, asked: SessionQuestion) -> None:
        """Send a question. Raises RunFailedError if the agent has ended."""
        line = json.dumps(encoded(asked), separators=(",", ":")) + "\n"
        try:
            self._asks.write(line.encode())
            self._asks.flush()
        except (BrokenPipeError, ValueError):
            raise self.failed("its agent ended") from None

    def read(self) -> None:
        """Read the agent's pending messages. Raises RunFailedError, which quotes it, for any other line."""
        try:
            data = os.read(self.descriptor, _READ_BYTES)
        except BlockingIOError:
            return
        self._ended = not data
        *lines, self._unread = (self._unread + data).split(b"\n")
        for line in lines:
            try:
                self._said.append(decoded(SessionWord, json.loads(line)))
            except (AttributeError, TypeError, ValueError):
                raise self.failed(f"said {line[:200].decode(errors='replace')!r}") from None

    def next(self) -> SessionWord | None:
        """Return the next message; None if none is pending. Raises RunFailedError once the agent has ended."""
        if self._said:
            return self._said.popleft()
        if self._ended:
            status = self._process.wait(_ENDS_S)
            raise self.failed(f"its agent ended with status {status} and without its final message")
        return None

    def failed(self, how: str) -> RunFailedError:
        if self._ended:
            self._errors.join(_ENDS_S)
        said = "\n    ".join(console_tail(self.console))
        hint = f"Last lines of its console:\n    {said}" if said else None
        return RunFailedError(f"{self.machine}: {how}", where=str(self.console), hint=hint)

    def offset(self, samples: int, local: LocalClock) -> Offset:
        """Query the time repeatedly and return the clock's offset. Raises RunFailedError."""
        found: list[ClockSample] = []
        with selectors.DefaultSelector() as selector:
            selector.register(self.descriptor, selectors.EVENT_READ)
            for number in range(samples):
                sent = local.now_ns()
                self.ask(SessionQuestion("clock", number=number))
                found.append(self._sample(selector, number, sent, local))
        return estimate(found, self.machine)

    def _sample(self, selector: selectors.BaseSelector, number: int, sent_ns: int, local: LocalClock) -> ClockSample:
        while True:
            if not selector.select(local.real_s(_ANSWER_S)):
                raise self.failed(f"did not report its time within {local.real_s(_ANSWER_S):.0f} s")
            received = local.now_ns()
            self.read()
            while (message := self.next()) is not None:
                if message.say == "clock" and message.number == number:
                    return ClockSample(sent_ns, message.monotonic_ns, received)

    def end(self) -> None:
        """Close the agent's input, on which it restores the machine, and wait for its end; kill ssh after a timeout."""
        with contextlib.suppress(OSError):
            self._asks.close()
        try:
            self._process.wait(_ENDS_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.join(_ENDS_S)
        self._says.close()


def _copy(source: IO[bytes], target: Path) -> None:
    with source, target.open("wb") as file:
        while part := source.read1(_READ_BYTES):  # type: ignore[attr-defined]
            file.write(part)
            file.flush()


def await_messages(
    conversations: Sequence[AgentConversation], kind: str, limit_s: float, listen: Listener
) -> dict[str, SessionWord]:
    """Wait until every agent has sent a message ``kind``; return these. Other messages go to ``listen``.

    Raises RunFailedError if an agent fails (sends ``done`` without ok, or ends) or at the time limit.
    """
    heard: dict[str, SessionWord] = {}
    deadline = time.monotonic() + limit_s
    with selectors.DefaultSelector() as selector:
        for conversation in conversations:
            selector.register(conversation.descriptor, selectors.EVENT_READ)
        while True:
            for conversation in conversations:
                if conversation.machine not in heard:
                    _hear(conversation, kind, heard, listen)
            silent = [item for item in conversations if item.machine not in heard]
            if not silent:
                return heard
            rest = deadline - time.monotonic()
            if rest <= 0:
                names = ", ".join(item.machine for item in silent)
                raise RunFailedError(f"not {kind} within {limit_s:.0f} s: {names}", where=str(silent[0].console))
            selector.select(min(rest, _LOOK_S))


def _hear(conversation: AgentConversation, kind: str, heard: dict[str, SessionWord], listen: Listener) -> None:
    """Read one agent's messages up to ``kind``; later ones stay queued for the next listener."""
    conversation.read()
    while (message := conversation.next()) is not None:
        _check(conversation, message)
        if message.say == kind:
            heard[conversation.machine] = message
            return
        listen(conversation.machine, message)


def _check(conversation: AgentConversation, message: SessionWord) -> None:
    if message.say == "done" and not message.ok:
        error = message.error or AgentFailure()
        during = f" during {json.dumps(error.operation)}" if error.operation else ""
        raise conversation.failed(f"the agent stopped{during}: {error.message or 'no reason given'}")
