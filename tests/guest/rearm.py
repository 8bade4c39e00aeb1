# SPDX-License-Identifier: Apache-2.0
"""Run in a guest: a connection that is idle twice and loses its path once; prints how often ss_rearm was told.

One line: restarts before any of it, after an idle time, after a longer one, after the timeout; each as three numbers
(transmission starts, idle, timeouts).
"""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

COUNTS = Path("/sys/module/ss_rearm/parameters/counts")
CHUNK_BYTES = 100_000


def exchange(sender: socket.socket, receiver: socket.socket) -> None:
    sender.sendall(bytes(CHUNK_BYTES))
    received = 0
    while received < CHUNK_BYTES:
        received += len(receiver.recv(CHUNK_BYTES))
    time.sleep(0.1)


def loss(ratio: str) -> None:
    subprocess.run(
        ["tc", "qdisc", "change", "dev", "lo", "root", "netem", "delay", "10ms", "loss", ratio, "limit", "10000"],
        check=True,
    )


with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as sender:
    sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"rearm_reno")
    sender.connect(listener.getsockname())
    receiver, _ = listener.accept()
    seen = []
    exchange(sender, receiver)
    seen.append(COUNTS.read_text().strip())
    time.sleep(0.15)  # shorter than the retransmission timeout
    exchange(sender, receiver)
    seen.append(COUNTS.read_text().strip())
    time.sleep(5)
    exchange(sender, receiver)
    seen.append(COUNTS.read_text().strip())
    loss("100%")
    sender.sendall(bytes(10_000))
    time.sleep(2)
    loss("0%")
    time.sleep(10)
    seen.append(COUNTS.read_text().strip())
    receiver.close()
sys.stdout.write(" ".join(seen) + "\n")
