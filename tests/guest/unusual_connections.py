# SPDX-License-Identifier: Apache-2.0
"""Run in a guest: connections that begin or go on in unusual ways, with each congestion control.

Prints a line of JSON a connection: algorithm, kind, the sender's first window in packets, or an error.
"""

from __future__ import annotations

import json
import socket
import struct
import sys
import threading
from pathlib import Path

BYTES = 400_000
TIMEOUT_S = 600.0
SETTINGS = Path("/proc/sys/net/ipv4")
AVAILABLE = (SETTINGS / "tcp_available_congestion_control").read_text().split()
WINDOW_OFFSET = 80  # tcpi_snd_cwnd


def window(sock: socket.socket) -> int:
    info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, WINDOW_OFFSET + 4)
    return int(struct.unpack_from("I", info, WINDOW_OFFSET)[0])


def use(sock: socket.socket, algorithm: str) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())


def listen(algorithm: str | None = None) -> socket.socket:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.settimeout(TIMEOUT_S)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 5)
    if algorithm:
        use(listener, algorithm)
    return listener


def carry(sender: socket.socket, receiver: socket.socket, already: int = 0, other: str | None = None) -> int:
    """Send the rest in two halves, between which the sender may change its algorithm; its first window."""
    first = window(sender)

    def send() -> None:
        sender.sendall(bytes((BYTES - already) // 2))
        if other:
            use(sender, other)
        sender.sendall(bytes(BYTES - already - (BYTES - already) // 2))
        sender.shutdown(socket.SHUT_WR)

    receiver.settimeout(TIMEOUT_S)
    thread = threading.Thread(target=send)
    thread.start()
    received = 0
    while data := receiver.recv(1 << 18):
        received += len(data)
    thread.join()
    if received != BYTES:
        raise ConnectionError(f"{received} of {BYTES} bytes arrived")
    return first


def fast_open(algorithm: str) -> int:
    """The first data is in the SYN."""
    with listen() as listener, socket.socket() as sender:
        use(sender, algorithm)
        sender.sendto(bytes(1000), socket.MSG_FASTOPEN, listener.getsockname())
        receiver, _ = listener.accept()
        sender.settimeout(TIMEOUT_S)
        with receiver:
            # An answer, so that the handshake is over when the window is read.
            receiver.sendall(b"!")
            sender.recv(1)
            return carry(sender, receiver, already=1000)


def fast_open_accepted(algorithm: str) -> int:
    """The sender accepts, and may send before the handshake has ended."""
    with listen(algorithm) as listener, socket.socket() as receiver:
        receiver.sendto(b"?", socket.MSG_FASTOPEN, listener.getsockname())
        sender, _ = listener.accept()
        with sender:
            return carry(sender, receiver)


def probing(algorithm: str) -> int:
    """Segments grow and shrink: path MTU probing."""
    (SETTINGS / "tcp_mtu_probing").write_text("2")
    try:
        return plain(algorithm)
    finally:
        (SETTINGS / "tcp_mtu_probing").write_text("0")


def plain(algorithm: str, other: str | None = None) -> int:
    with listen() as listener, socket.socket() as sender:
        use(sender, algorithm)
        sender.connect(listener.getsockname())
        receiver, _ = listener.accept()
        with receiver:
            return carry(sender, receiver, other=other)


def switched(algorithm: str) -> int:
    """In the middle of what may be a recovery, to an algorithm and from it."""
    others = AVAILABLE[AVAILABLE.index(algorithm) - 1], "cubic"
    for other in others:
        plain(other, other=algorithm)
    return plain(algorithm, other=others[0])


def early(algorithm: str) -> int:
    """Chosen while the SYN is on its way."""
    with listen() as listener, socket.socket() as sender:
        sender.setblocking(False)
        sender.connect_ex(listener.getsockname())
        use(sender, algorithm)
        sender.settimeout(TIMEOUT_S)
        receiver, _ = listener.accept()
        with receiver:
            receiver.sendall(b"!")
            sender.recv(1)
            return carry(sender, receiver)


def again(algorithm: str) -> int:
    """The same socket connects a second time, and listens a third."""
    with listen() as listener, socket.socket() as sender:
        use(sender, algorithm)
        for _ in range(2):
            sender.connect(listener.getsockname())
            receiver, _ = listener.accept()
            with receiver:
                first = window(sender)
                sender.sendall(bytes(BYTES // 10))
                _unconnect(sender)
        sender.bind(("127.0.0.1", 0))
        sender.listen()
        with socket.create_connection(sender.getsockname()) as receiver:
            accepted, _ = sender.accept()
            with accepted:
                carry(accepted, receiver)
        return first


def _unconnect(sock: socket.socket) -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    unspecified = bytes(16)
    if libc.connect(sock.fileno(), unspecified, len(unspecified)):
        raise OSError(ctypes.get_errno(), "connect(AF_UNSPEC)")


KINDS = (plain, fast_open, fast_open_accepted, probing, switched, early, again)

for name in AVAILABLE:
    for kind in KINDS:
        row: dict[str, str | int] = {"algorithm": name, "kind": kind.__name__}
        try:
            row["window"] = kind(name)
        except OSError as error:
            row["error"] = str(error)
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()
