# SPDX-License-Identifier: Apache-2.0
"""Requests and answers in turn over one connection, between two processes that block."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from howdah.agent.loop import Loop
from howdah.agent.traffic.endpoint import Transferred
from howdah.agent.traffic.generated import GeneratedFlow
from howdah.agent.traffic.python import READ_BYTES, WRITE_BYTES, PythonEndpoint
from howdah.linux.clock import now_ns
from howdah.linux.namespace import Namespace
from howdah.linux.output import Output
from howdah.plan.plan import Flow
from howdah.plan.traffic import Exchange
from howdah.record.agent import FlowRecord, TransactionRecord

TransactionTimes = tuple[int, int, int, int]  # CLOCK_MONOTONIC of request, first and last byte of the answer; bytes
_OVER = signal.SIGURG  # tells an idle process that the flow's time is over; ignored by one that has just been forked


def _raise_broken_pipe(_number: int, _frame: object) -> None:
    raise BrokenPipeError


@contextlib.contextmanager
def _ended_by_signal() -> Iterator[None]:
    """Let ``_OVER`` end what this process waits for, with a BrokenPipeError; elsewhere the signal is pending."""
    before = signal.pthread_sigmask(signal.SIG_UNBLOCK, {_OVER})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def answer_all(connection: socket.socket, exchange: Exchange) -> Transferred:
    """Read each request whole, then send its answer; after the last one wait until the other end closes."""
    block = memoryview(bytes(WRITE_BYTES))
    sent = 0
    first = last = None
    error = None
    try:
        for _ in range(exchange.requests):
            left = exchange.request_bytes
            while left:
                with _ended_by_signal():
                    data = connection.recv(left)
                if not data:
                    raise BrokenPipeError
                left -= len(data)
            first = first or now_ns()
            left = exchange.object_bytes
            while left:
                count = connection.send(block[:left])
                sent, left = sent + count, left - count
            last = now_ns()
        connection.recv(1)
        connection.shutdown(socket.SHUT_WR)
    except BrokenPipeError:
        pass  # the agent shut it down: the flow's time is over
    except OSError as caught:
        error = os.strerror(caught.errno or 0)
    return Transferred(sent, first, last, done=error is None, error=error)


def request_all(connection: socket.socket, exchange: Exchange) -> tuple[Transferred, list[TransactionTimes]]:
    """Send a request, read its whole answer (the kernel discards the data), think, repeat; then close."""
    buffer = bytearray(READ_BYTES)
    request = bytes(exchange.request_bytes)
    received = 0
    timings: list[TransactionTimes] = []
    error = None
    try:
        for number in range(exchange.requests):
            if number and exchange.think_us:
                with _ended_by_signal():
                    time.sleep(exchange.think_us / 1e6)
            start = now_ns()
            connection.sendall(request)
            connection.recv_into(buffer, 1, socket.MSG_PEEK)
            first = now_ns()
            left = exchange.object_bytes
            while left:
                count = connection.recv_into(buffer, min(left, READ_BYTES), socket.MSG_TRUNC)
                if not count:
                    raise BrokenPipeError
                received, left = received + count, left - count
            timings.append((start, first, now_ns(), exchange.object_bytes))
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)
    except BrokenPipeError:
        pass  # the agent shut the other end down
    except OSError as caught:
        error = os.strerror(caught.errno or 0)
    first_ns = timings[0][1] if timings else None
    last_ns = timings[-1][2] if timings else None
    return Transferred(received, first_ns, last_ns, done=error is None, error=error), timings


class ExchangeEndpoint(PythonEndpoint):
    """One of the two processes; the requesting one writes its times to ``file``."""

    def __init__(self, role: str, exchange: Exchange, file: Path) -> None:
        super().__init__(role, 0, receiver_closes=True)
        self._is_client = role == "sink"
        self._exchange = exchange
        self._file = file

    def end_wait(self) -> None:
        """Have the process report at once if it thinks or waits for a request: its flow's time is over."""
        if self._process:
            os.kill(self._process, _OVER)

    def _work(self, connection: socket.socket) -> Transferred:
        signal.pthread_sigmask(signal.SIG_BLOCK, {_OVER})
        signal.signal(_OVER, _raise_broken_pipe)
        if not self._is_client:
            return answer_all(connection, self._exchange)
        state, timings = request_all(connection, self._exchange)
        self._file.write_text(json.dumps(timings) + "\n", encoding="utf-8")
        return state


class ExchangeFlow(GeneratedFlow):
    """A flow whose receiver connects and sends requests that the sender answers; its record has ``transactions``."""

    def __init__(self, description: Flow, namespaces: dict[str, Namespace], loop: Loop, output: Output) -> None:
        super().__init__(description, namespaces, loop, output)
        self._file = output.directory("exchange") / f"{description.id}.json"

    def _make_ends(self) -> None:
        exchange = self.description.exchange
        assert exchange is not None
        self._source = ExchangeEndpoint("source", exchange, self._file)
        self._sink = ExchangeEndpoint("sink", exchange, self._file)

    def stop(self, now: int) -> None:
        super().stop(now)
        for end in (self._source, self._sink):
            if isinstance(end, ExchangeEndpoint):
                end.end_wait()

    def record(self, epoch_ns: int) -> FlowRecord:
        found = super().record(epoch_ns)
        timings = json.loads(self._file.read_text(encoding="utf-8")) if self._file.exists() else []
        transactions = [
            TransactionRecord(
                # The first transaction includes connecting.
                start_ns=start_ns - epoch_ns if number or found.start_ns is None else found.start_ns,
                first_ns=first_ns - epoch_ns,
                end_ns=end_ns - epoch_ns,
                body_bytes=size,
            )
            for number, (start_ns, first_ns, end_ns, size) in enumerate(timings)
        ]
        whole = found.bytes_received == self.description.size_bytes
        return replace(found, transactions=transactions, complete=found.complete and whole)
