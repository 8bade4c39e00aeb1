# SPDX-License-Identifier: Apache-2.0
"""Source and sink inside the kernel (modules/traffic_*.c), driven through /proc/howdah_traffic."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from howdah.agent.error import AgentError
from howdah.agent.traffic.endpoint import Transferred
from howdah.linux.kernelfile import read_file

CONTROL = Path("/proc/howdah_traffic")
_SO_COOKIE = 57


def send_command(command: str) -> None:
    """Send the module a command. Raises AgentError if it refuses."""
    descriptor = os.open(CONTROL, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, f"{command}\n".encode())
    except OSError as error:
        raise AgentError(f"{CONTROL}: {command}", os.strerror(error.errno or 0)) from error
    finally:
        os.close(descriptor)


def status_of(text: str, cookie: int, role: str) -> Transferred | None:
    """Find one socket among lines ``COOKIE ROLE BYTES FIRST_NS LAST_NS STATE``; None if it is not there.

    The other lines, possibly thousands, are not parsed.
    """
    begin = f"\n{text}".find(f"\n{cookie} {role} ")
    if begin < 0:
        return None
    transferred, first, last, state = text[begin:].partition("\n")[0].split()[2:6]
    started = int(transferred) > 0
    return Transferred(
        bytes=int(transferred),
        first_ns=int(first) if started else None,
        last_ns=int(last) if started else None,
        done=state == "done",
        error="the connection was reset" if state == "closed" else None,
    )


def cookie_of(connection: socket.socket) -> int:
    """The number by which inet_diag and tcp_probe identify the socket; the kernel assigns it at the first request."""
    return int.from_bytes(connection.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8), "little")


class KernelEndpoint:
    """A source (of ``limit_bytes``; endless if 0) or a sink.

    With ``receiver_closes`` both know the size, and the sink closes once it has everything; the source does not. The
    source's socket then stays established until the last ACK, and every ACK is traced.
    """

    def __init__(self, role: str, limit_bytes: int = 0, receiver_closes: bool = False) -> None:
        self._receiver_closes = receiver_closes
        self._role = role
        self._limit_bytes = limit_bytes
        self._cookie = 0
        if not CONTROL.exists():
            raise AgentError("traffic kernel", f"{CONTROL} is missing: the module howdah_traffic is not loaded")

    def attach(self, connection: socket.socket) -> None:
        self._cookie = cookie_of(connection)
        name = "answer" if self._role == "source" and self._receiver_closes else self._role
        command = f"{name} {connection.fileno()}"
        if self._role == "source" or self._receiver_closes:
            command += f" {self._limit_bytes}"
        send_command(command)

    def state(self) -> Transferred:
        found = status_of(read_file(str(CONTROL)), self._cookie, self._role)
        return found or Transferred(0, None, None, done=False, error="the module does not know the socket")

    def close(self) -> None:
        """Do nothing: closing the socket detaches it."""
