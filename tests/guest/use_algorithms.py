# SPDX-License-Identifier: Apache-2.0
"""Run in a guest: one transfer over the loopback with each congestion control; prints the names of those that end."""

from __future__ import annotations

import socket
import sys
import threading
from pathlib import Path

TRANSFER_BYTES = 3_000_000
TIMEOUT_S = 120.0
_AVAILABLE = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")


def transfer(algorithm: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as sender:
        listener.settimeout(TIMEOUT_S)
        sender.settimeout(TIMEOUT_S)
        sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
        sender.connect(listener.getsockname())
        receiver, _ = listener.accept()
        with receiver:
            receiver.settimeout(TIMEOUT_S)
            thread = threading.Thread(target=sender.sendall, args=(bytes(TRANSFER_BYTES),))
            thread.start()
            received = 0
            while received < TRANSFER_BYTES:
                data = receiver.recv(1 << 18)
                if not data:
                    raise ConnectionError(f"the connection ended after {received} bytes")
                received += len(data)
            thread.join()


for name in _AVAILABLE.read_text().split():
    try:
        transfer(name)
    except OSError as error:
        sys.stderr.write(f"{name}: {error}\n")
    else:
        sys.stdout.write(f"{name}\n")
