# SPDX-License-Identifier: Apache-2.0
"""Plain user-space ends: a process that writes with blocking sends, and one that reads with blocking receives."""

from __future__ import annotations

import fcntl
import json
import os
import resource
import select
import signal
import socket
import struct
import sys
import termios
from collections.abc import Callable

from howdah.agent.traffic.endpoint import Transferred
from howdah.linux import syscall
from howdah.linux.clock import now_ns

WRITE_BYTES = 128 * 1024
READ_BYTES = 1 << 20
_SO_TIMESTAMPING = 37
_TX_ACK, _STAMPS_ALONE = 1 << 9, 1 << 11  # SOF_TIMESTAMPING_TX_ACK, SOF_TIMESTAMPING_OPT_TSONLY
_ESTABLISHED = 1  # TCP states (include/net/tcp_states.h)
_CLOSE_WAIT = 8


def write_all(connection: socket.socket, limit_bytes: int, receiver_closes: bool = False) -> Transferred:
    """Send ``limit_bytes`` (0: until someone shuts the sending side down), then shut it down once all is acknowledged.

    With ``receiver_closes``, wait for the other end to shut its side down first.
    """
    block = memoryview(bytes(WRITE_BYTES))
    sent = 0
    error = None
    first = now_ns()
    try:
        while not limit_bytes or sent < limit_bytes:
            if limit_bytes and not receiver_closes and limit_bytes - sent <= len(block):
                sent += _send_last(connection, block[: limit_bytes - sent])
            else:
                sent += connection.send(block[: limit_bytes - sent] if limit_bytes else block)
        last = now_ns()
        if receiver_closes:
            connection.recv(1)
        else:
            _wait_for_acks(connection)
        connection.shutdown(socket.SHUT_WR)
        return Transferred(sent, first, last, done=True)
    except BrokenPipeError:
        pass  # the agent shut it down: the flow's time is over
    except OSError as caught:
        error = os.strerror(caught.errno or 0)
    return Transferred(sent, first, now_ns(), done=error is None, error=error)


def _send_last(connection: socket.socket, block: memoryview) -> int:
    """Send, and request a time stamp of the ACK of the last byte."""
    connection.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPING, _STAMPS_ALONE)
    return connection.sendmsg([block], [(socket.SOL_SOCKET, _SO_TIMESTAMPING, struct.pack("=I", _TX_ACK))])


def _wait_for_acks(connection: socket.socket) -> None:
    """Wait until everything sent is acknowledged or somebody has shut the connection down. Raises OSError.

    A socket that has sent a FIN is no longer established, and tcp_probe does not report the ACKs it receives. The time
    stamp that ``_send_last`` requested wakes this process at the ACK of the last byte and at no other.
    """
    stamps = select.poll()
    stamps.register(connection.fileno(), 0)  # the time stamp arrives as POLLERR
    while _unacknowledged_bytes(connection) and _is_open(connection):
        stamps.poll()
        if number := connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(number, os.strerror(number))
        try:
            connection.recvmsg(1, 512, socket.MSG_ERRQUEUE | socket.MSG_DONTWAIT)
        except BlockingIOError:
            continue


def _unacknowledged_bytes(connection: socket.socket) -> int:
    return int.from_bytes(fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)


def _is_open(connection: socket.socket) -> bool:
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] in (_ESTABLISHED, _CLOSE_WAIT)


def read_all(connection: socket.socket, limit_bytes: int = 0, receiver_closes: bool = False) -> Transferred:
    """Read until the peer's FIN; the kernel discards the data instead of copying it (MSG_TRUNC, tcp(7)).

    ``last_ns`` is when ``limit_bytes`` had arrived; without a limit, or if they never arrive, when the FIN did. With
    ``receiver_closes``, shut this side down once they have arrived.
    """
    buffer = bytearray(READ_BYTES)
    received = 0
    error = None
    first = last = None
    try:
        connection.recv_into(buffer, 1, socket.MSG_PEEK)
        first = now_ns()
        while count := connection.recv_into(buffer, READ_BYTES, socket.MSG_TRUNC):
            received += count
            if limit_bytes and received >= limit_bytes and last is None:
                last = now_ns()
                if receiver_closes:
                    connection.shutdown(socket.SHUT_WR)
    except OSError as caught:
        error = os.strerror(caught.errno or 0)
    return Transferred(received, first, last or now_ns(), done=error is None, error=error)


class PythonEndpoint:
    """Runs ``write_all`` or ``read_all`` in a process of its own, which reports once, when it ends."""

    def __init__(self, role: str, limit_bytes: int = 0, receiver_closes: bool = False) -> None:
        self._role = role
        self._receiver_closes = receiver_closes
        self._limit_bytes = limit_bytes
        self._report = -1
        self._process = 0
        self._state = Transferred(0, None, None, done=False)

    def attach(self, connection: socket.socket) -> None:
        self._report, writer = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self._report, False)
        sys.stderr.flush()
        self._process = os.fork()
        if self._process == 0:
            _child(connection, writer, lambda: self._work(connection))
        os.close(writer)

    def _work(self, connection: socket.socket) -> Transferred:
        if self._role == "source":
            return write_all(connection, self._limit_bytes, self._receiver_closes)
        return read_all(connection, self._limit_bytes, self._receiver_closes)

    def state(self) -> Transferred:
        if self._report >= 0 and self._process:
            try:
                text = os.read(self._report, 4096)
            except BlockingIOError:
                return self._state
            os.waitpid(self._process, 0)
            self._process = 0
            failed = Transferred(0, None, None, done=False, error=f"the {self._role} process died")
            self._state = Transferred(**json.loads(text)) if text else failed
        return self._state

    def close(self) -> None:
        if self._process:
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
            self._process = 0
        if self._report >= 0:
            os.close(self._report)
            self._report = -1


def _child(connection: socket.socket, report: int, work: Callable[[], Transferred]) -> None:
    """Run ``work`` in the child and exit; never return. Keeps no descriptor of the agent but the socket, the report and
    standard error."""
    try:
        syscall.die_with_parent(signal.SIGKILL)
        kept = sorted({2, connection.fileno(), report})
        for low, high in zip([-1, *kept], [*kept, resource.getrlimit(resource.RLIMIT_NOFILE)[0]], strict=True):
            os.closerange(low + 1, high)
        connection.setblocking(True)
        state = work()
        os.write(report, json.dumps(state.__dict__).encode())
    finally:
        os._exit(0)
