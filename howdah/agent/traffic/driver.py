# SPDX-License-Identifier: Apache-2.0
"""The base class of the drivers of all kinds of traffic."""

from __future__ import annotations

import os
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from howdah.agent.error import AgentError
from howdah.agent.loop import Loop
from howdah.agent.traffic.running import note_running
from howdah.linux.namespace import Namespace
from howdah.linux.netlink.diag import Endpoint
from howdah.linux.output import Output
from howdah.plan.plan import Flow
from howdah.record.agent import FlowRecord


class FlowDriver(ABC):
    """Drives one flow of the plan, or its end on this machine.

    The agent calls ``prepare`` before the epoch, ``start`` and ``stop`` at the plan's instants, ``finished`` until it
    is true or the deadline, then ``close`` and ``record``. None of them blocks. Instants are CLOCK_MONOTONIC in
    nanoseconds until ``record`` subtracts the epoch.
    """

    kind: ClassVar[str] = ""  # the kind of traffic, for messages

    def __init__(self, description: Flow, namespaces: dict[str, Namespace], loop: Loop, output: Output) -> None:
        self.description = description
        self._namespaces = namespaces
        self._loop = loop
        self._output = output
        self._sender_cookie: int | None = None
        self._receiver_cookie: int | None = None
        self._start_ns: int | None = None

    @property
    def label(self) -> str:
        kind = f", {self.kind}" if self.kind else ""
        return f"flow {self.description.id} ({self.description.name}{kind})"

    @property
    def endpoint(self) -> Endpoint:
        """The connection as the sender's host sees it."""
        return Endpoint(*self.description.at("source"), *self.description.at("destination"))

    def is_active(self) -> bool:
        """Whether the flow may have TCP sockets to observe now."""
        return True

    def is_over(self) -> bool:
        """Whether the flow will have no TCP sockets any more."""
        return False

    @abstractmethod
    def prepare(self) -> None:
        """Open what must exist before the epoch. Raises AgentError."""

    @abstractmethod
    def start(self, now: int) -> None:
        """Begin the flow. Raises AgentError."""

    @abstractmethod
    def stop(self, now: int) -> None:
        """End the flow's time: write no more."""

    @abstractmethod
    def finished(self) -> bool:
        """Whether nothing more will happen."""

    @abstractmethod
    def close(self) -> None:
        """Keep the final state and reset what is open, so that the network falls silent."""

    @abstractmethod
    def record(self, epoch_ns: int) -> FlowRecord:
        """The flow's entry in agent.json; see ``_record``."""

    def _record(
        self,
        epoch_ns: int,
        *,
        connected_ns: int | None,
        end_ns: int | None,
        bytes_sent: int,
        bytes_received: int,
        complete: bool,
        error: str | None,
        segments: tuple[int | None, int | None] = (None, None),
        kernel_algorithm: str | None = None,
    ) -> FlowRecord:
        """Build the entry. ``end_ns`` is when the receiver got the last byte; ``segments`` are the sender's sent and
        retransmitted segments, None if nobody counted them."""

        def relative(time_ns: int | None) -> int | None:
            return None if time_ns is None else time_ns - epoch_ns

        sent, retransmitted = segments
        return FlowRecord(
            id=self.description.id,
            sender_cookie=self._sender_cookie,
            receiver_cookie=self._receiver_cookie,
            source_port=self.description.source_port,
            start_ns=relative(self._start_ns),
            connected_ns=relative(connected_ns),
            end_ns=relative(end_ns),
            bytes_sent=bytes_sent,
            bytes_received=bytes_received,
            segments_sent=sent,
            segments_retransmitted=retransmitted,
            complete=complete,
            error=error,
            kernel_algorithm=kernel_algorithm,
        )

    def _spawn(self, host: str, command: list[str], output: Path) -> subprocess.Popen[bytes]:
        """Start a program in a host's namespace, with /dev/null as its input and a file as its output.

        The child inherits the namespace of the thread that starts it. Raises AgentError if the program is missing.
        """
        with output.open("wb") as file, self._namespaces[host].entered():
            try:
                process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
            except FileNotFoundError as error:
                raise AgentError(self.label, f"{command[0]} is not installed in the guest") from error
        note_running(self._output.directory("program"), process.pid, f"{self.label} on {host}, {' '.join(command)}")
        return process

    def _when_ended(self, process: subprocess.Popen[bytes], ended: Callable[[int], None]) -> None:
        """Call ``ended`` with the instant at which a program ends: its pidfd then becomes readable."""
        descriptor = os.pidfd_open(process.pid)

        def on_end(now: int) -> None:
            self._loop.when_readable(descriptor, None)
            os.close(descriptor)
            ended(now)

        self._loop.when_readable(descriptor, on_end)
