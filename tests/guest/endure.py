# SPDX-License-Identifier: Apache-2.0
"""Run in a guest: what a congestion control must endure. Arguments: the names of congestion controls to try.

Writes one JSON object to /howdah/out/endure.json: for each trial what was seen. Whether that is right is for the test
to say. The loopback has a delay of 10 ms, so that connections live through several rounds.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import socket
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

OUT = Path("/howdah/out/endure.json")
CONNECTIONS = 1000
SHORT_BYTES = 20_000
LONG_BYTES = 4_000_000
AT_ONCE = 50
LIMIT_S = 300.0
SETTLE_S = 70.0  # longer than TIME_WAIT
_C = ctypes.CDLL(None, use_errno=True)


class Pair:
    """A sender connected to a receiver, both non-blocking."""

    def __init__(self, listener: socket.socket, algorithm: str) -> None:
        self.sender = socket.socket()
        self.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, algorithm.encode())
        self.sender.connect(listener.getsockname())
        self.receiver, _ = listener.accept()
        self.sender.setblocking(False)
        self.receiver.setblocking(False)

    def close(self) -> None:
        self.sender.close()
        self.receiver.close()

    def transfer(self, size_bytes: int, between: Callable[[], None] = lambda: None) -> int:
        """Send and receive; returns the bytes that arrived before the size, an end, or the time limit."""
        payload = memoryview(bytes(1 << 16))
        sent = received = 0
        end = time.monotonic() + LIMIT_S
        while received < size_bytes and time.monotonic() < end:
            wants = [self.sender] if sent < size_bytes else []
            readable, writable, _ = select.select([self.receiver], wants, [], 1.0)
            if writable:
                sent += self.sender.send(payload[: min(len(payload), size_bytes - sent)])
            if readable:
                data = self.receiver.recv(1 << 16)
                if not data:
                    break
                received += len(data)
            between()
        return received


def listen() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0), backlog=2 * AT_ONCE)


def switching(names: list[str]) -> dict[str, Any]:
    """A running connection is given another algorithm every 20 ms, in-tree ones between."""
    with listen() as listener:
        pair = Pair(listener, "cubic")
        state = {"at": 0.0, "switches": 0}
        order = [name for one in names for name in (one, "reno", "cubic")]

        def switch() -> None:
            now = time.monotonic()
            if now - state["at"] < 0.02:
                return
            name = order[int(state["switches"]) % len(order)]
            pair.sender.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
            state["at"], state["switches"] = now, state["switches"] + 1

        received = pair.transfer(20 * LONG_BYTES, switch)
        pair.close()
    return {"received_bytes": received, "expected_bytes": 20 * LONG_BYTES, "switches": state["switches"]}


def disconnecting(names: list[str]) -> dict[str, Any]:
    """connect(AF_UNSPEC) in mid-flow, then the same socket connects again."""
    again = 0
    for name in names:
        with listen() as listener:
            pair = Pair(listener, name)
            pair.transfer(LONG_BYTES // 4)
            pair.sender.send(bytes(1 << 16))
            address = struct.pack("H14x", socket.AF_UNSPEC)
            if _C.connect(pair.sender.fileno(), address, len(address)) != 0:
                raise OSError(ctypes.get_errno(), "connect(AF_UNSPEC)")
            pair.receiver.close()
            pair.sender.setblocking(True)
            pair.sender.connect(listener.getsockname())
            pair.receiver, _ = listener.accept()
            pair.sender.setblocking(False)
            pair.receiver.setblocking(False)
            again += pair.transfer(LONG_BYTES) == LONG_BYTES
            pair.close()
    return {"reconnected": again, "expected": len(names)}


def pressed(names: list[str]) -> dict[str, Any]:
    """Transfers while TCP has almost no memory (tcp_mem)."""
    memory = Path("/proc/sys/net/ipv4/tcp_mem")
    usual = memory.read_text()
    arrived = 0
    with listen() as listener:
        pairs = [Pair(listener, name) for name in names for _ in range(3)]
        memory.write_text("16 24 32")
        for pair in pairs:
            # Nobody reads yet: what is under way fills the memory there is.
            with contextlib.suppress(BlockingIOError):
                while pair.sender.send(bytes(1 << 16)):
                    time.sleep(0.02)
        for pair in pairs:
            arrived += pair.transfer(LONG_BYTES // 8) >= LONG_BYTES // 8
        memory.write_text(usual)
        for pair in pairs:
            pair.close()
    return {"arrived": arrived, "expected": len(pairs), "pressures": counter("TCPMemoryPressures")}


def counter(name: str) -> int:
    """A counter of the TcpExt group of /proc/net/netstat."""
    names, values = Path("/proc/net/netstat").read_text().splitlines()[:2]
    return int(dict(zip(names.split(), values.split(), strict=True))[name])


def short(names: list[str]) -> dict[str, Any]:
    """Many short connections, a number of them at once; listeners have the algorithm too."""
    default = Path("/proc/sys/net/ipv4/tcp_congestion_control")
    arrived = 0
    each = CONNECTIONS // len(names)
    for name in names:
        default.write_text(name)
        with listen() as listener:
            for start in range(0, each, AT_ONCE):
                pairs = [Pair(listener, name) for _ in range(min(AT_ONCE, each - start))]
                for pair in pairs:
                    pair.sender.send(bytes(SHORT_BYTES))
                for pair in pairs:
                    arrived += pair.transfer(SHORT_BYTES) >= SHORT_BYTES
                    pair.close()
    default.write_text("cubic")
    return {"arrived": arrived, "expected": each * len(names)}


def unreclaimable_bytes() -> int:
    """Memory of the kernel's own objects, once no connection is left."""
    time.sleep(SETTLE_S)
    os.sync()
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("SUnreclaim:"):
            return int(line.split()[1]) * 1024
    raise LookupError("no SUnreclaim in /proc/meminfo")


def leaking(names: list[str]) -> dict[str, Any]:
    """Kernel memory before and after many connections, everything being warm."""
    short(names)
    before = unreclaimable_bytes()
    short(names)
    short(names)
    return {"grown_bytes": unreclaimable_bytes() - before, "connections": 2 * CONNECTIONS}


def held(names: list[str]) -> dict[str, Any]:
    """Unloading with sockets open must be refused; the modules' use counts say so."""
    with listen() as listener:
        pairs = [Pair(listener, name) for name in names]
        for pair in pairs:
            pair.transfer(LONG_BYTES // 8)
        modules = [line.split() for line in Path("/proc/modules").read_text().splitlines()]
        plug_ins = [fields[0] for fields in modules if fields[0].startswith("ss_")]
        refused = [name for name in plug_ins if delete_module(name) != 0]
        for pair in pairs:
            pair.close()
    return {"refused": refused, "loaded": plug_ins}


def delete_module(name: str) -> int:
    """0, or the errno of delete_module(2)."""
    if _C.delete_module(name.encode(), os.O_NONBLOCK) == 0:
        return 0
    return ctypes.get_errno()


def main() -> None:
    names = sys.argv[1:]
    trials = [switching, disconnecting, pressed, short, leaking, held]
    OUT.write_text(json.dumps({trial.__name__: trial(names) for trial in trials}))


main()
