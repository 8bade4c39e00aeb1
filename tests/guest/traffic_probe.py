# SPDX-License-Identifier: Apache-2.0
"""Runs inside a guest: exercises /proc/howdah_traffic and writes what it saw to /howdah/out/traffic.json.

Standard library only. The test beside it says what the answers must be.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import Any

CONTROL = Path("/proc/howdah_traffic")
MODULE = "/howdah/in/modules/howdah_traffic.ko"
SO_COOKIE = 57
BLOCK = 1 << 16


def run(*command: str) -> int:
    return subprocess.run(command, check=False, capture_output=True).returncode


def command(text: str) -> str:
    """What the kernel answers to a command: "ok" or the name of the error."""
    try:
        CONTROL.write_text(text)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "ok"


def pair() -> tuple[socket.socket, socket.socket]:
    """A connected sender and receiver."""
    listener = socket.create_server(("127.0.0.1", 0))
    sender = socket.create_connection(listener.getsockname())
    receiver, _ = listener.accept()
    listener.close()
    return sender, receiver


def state(end: socket.socket) -> dict[str, Any]:
    """The line of a socket; empty when there is none."""
    cookie = struct.unpack("Q", end.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8))[0]
    for line in CONTROL.read_text().splitlines():
        found, role, transferred, first, last, text = line.split()
        if int(found) == cookie:
            return {"role": role, "bytes": int(transferred), "first": int(first), "last": int(last), "state": text}
    return {}


def until(end: socket.socket, text: str) -> dict[str, Any]:
    """The socket's line once it has the state, or as it is after ten seconds of virtual time."""
    found: dict[str, Any] = {}
    for _ in range(1000):
        found = state(end)
        if found.get("state") == text:
            break
        time.sleep(0.01)
    return found


def read_all(end: socket.socket) -> int:
    total = 0
    while block := end.recv(BLOCK):
        total += len(block)
    return total


def refusals() -> dict[str, str]:
    sender, receiver = pair()
    with socket.socket() as fresh, socket.create_server(("127.0.0.1", 0)) as listener, sender, receiver:
        datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        local, other = socket.socketpair()
        file = os.open("/dev/null", os.O_RDWR)
        answers = {
            "unconnected": command(f"sink {fresh.fileno()}"),
            "listening": command(f"source {listener.fileno()} 0"),
            "datagram": command(f"sink {datagram.fileno()}"),
            "stream of datagrams": command(f"source {datagram.fileno()} 0"),
            "datagrams of a stream": command(f"datagrams {sender.fileno()} 1000000 500"),
            "too often": command(f"datagrams {datagram.fileno()} 999 500"),
            "too large": command(f"datagrams {datagram.fileno()} 1000000 16385"),
            "no interval": command(f"datagrams {datagram.fileno()}"),
            "local": command(f"sink {local.fileno()}"),
            "file": command(f"sink {file}"),
            "closed": command("sink 999"),
            "detached": command(f"detach {sender.fileno()}"),
            "word": command(f"swallow {sender.fileno()}"),
            "no size": command(f"source {sender.fileno()}"),
            "no block": command(f"source {sender.fileno()} 0 0"),
            "huge block": command(f"source {sender.fileno()} 0 99999999"),
            "extra": command(f"sink {sender.fileno()} 5 5"),
            "long": command("sink " + " " * 200 + str(sender.fileno())),
            "first": command(f"sink {receiver.fileno()}"),
            "twice": command(f"sink {receiver.fileno()}"),
            "other role": command(f"source {receiver.fileno()} 0"),
        }
        os.close(file)
        for end in (datagram, local, other):
            end.close()
    return answers


def fixed_size() -> dict[str, Any]:
    size = 3_000_001
    sender, receiver = pair()
    with sender, receiver:
        before = time.monotonic_ns()
        command(f"sink {receiver.fileno()}\n")
        command(f"source {sender.fileno()} {size}\n")
        sink, source = until(receiver, "done"), until(sender, "done")
        return {"size": size, "sink": sink, "source": source, "before": before, "after": time.monotonic_ns()}


def one_end_each() -> dict[str, Any]:
    """A kernel source read by a process, and a process's data eaten by a kernel sink."""
    size = 500_000
    sender, receiver = pair()
    with sender, receiver:
        command(f"source {sender.fileno()} {size} 10000")
        read = read_all(receiver)
    sender, receiver = pair()
    with sender, receiver:
        command(f"sink {receiver.fileno()}")
        sender.sendall(bytes(size))
        sender.shutdown(socket.SHUT_WR)
        return {"size": size, "read": read, "eaten": until(receiver, "done")}


def queued_before() -> dict[str, Any]:
    sender, receiver = pair()
    with sender, receiver:
        sender.sendall(bytes(5000))
        sender.shutdown(socket.SHUT_WR)
        time.sleep(0.1)
        command(f"sink {receiver.fileno()}")
        return until(receiver, "done")


def detached() -> dict[str, Any]:
    sender, receiver = pair()
    with sender, receiver:
        command(f"source {sender.fileno()} 0")
        command(f"sink {receiver.fileno()}")
        time.sleep(0.5)
        moved = state(receiver)["bytes"]
        answers = [command(f"detach {sender.fileno()}"), command(f"detach {receiver.fileno()}")]
        left = len(CONTROL.read_text().splitlines())
        # The ends are ordinary sockets again: the process reads what it is sent, after what the source had queued.
        sender.sendall(b"the end")
        sender.shutdown(socket.SHUT_WR)
        tail = b""
        while block := receiver.recv(BLOCK):
            tail = (tail + block)[-7:]
        return {"moved": moved, "answers": answers, "left": left, "tail": tail.decode()}


def reset() -> dict[str, Any]:
    sender, receiver = pair()
    with receiver:
        command(f"sink {receiver.fileno()}")
        sender.send(b"x")
        time.sleep(0.1)
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sender.close()
        sink = until(receiver, "closed")
    sender, receiver = pair()
    with sender:
        command(f"source {sender.fileno()} 0")
        time.sleep(0.1)
        receiver.close()  # with unread data: a reset
        return {"sink": sink, "source": until(sender, "closed")}


def crowd() -> dict[str, Any]:
    """A hundred sockets of a process that is killed; then the module must be free to go."""
    listener = socket.create_server(("127.0.0.1", 0))
    ready, tell = os.pipe()
    child = os.fork()
    if child == 0:
        ends = []
        for number in range(50):
            sender = socket.create_connection(listener.getsockname())
            receiver, _ = listener.accept()
            ends += [sender, receiver]
            command(f"sink {receiver.fileno()}")
            command(f"source {sender.fileno()} {0 if number % 2 else 10_000_000}")
        os.write(tell, b".")
        time.sleep(1000)
        os._exit(0)
    os.read(ready, 1)
    time.sleep(1)
    lines = [line.split() for line in CONTROL.read_text().splitlines()]
    busy = run("rmmod", "howdah_traffic")
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    left = CONTROL.read_text()
    listener.close()
    removed = run("rmmod", "howdah_traffic")
    gone = not CONTROL.exists()
    return {
        "attached": len(lines),
        "moving": sum(int(line[2]) > 0 for line in lines),
        "rmmod while attached": busy,
        "left": left,
        "rmmod afterwards": removed,
        "gone": gone,
        "loaded again": run("insmod", MODULE),
    }


def kernel_log() -> list[str]:
    lines = []
    descriptor = os.open("/dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    with contextlib.suppress(BlockingIOError):
        while True:
            lines.append(os.read(descriptor, 8192).decode(errors="replace").strip())
    os.close(descriptor)
    return lines


def main() -> None:
    for text in (
        "ip link set lo up",
        "tc qdisc add dev lo root netem delay 1ms rate 1gbit limit 100000",
        "ethtool -K lo tso off gso off gro off",
    ):
        run(*text.split())
    answers: dict[str, Any] = {"loaded": run("insmod", MODULE)}
    for probe in (refusals, fixed_size, one_end_each, queued_before, detached, reset, crowd):
        answers[probe.__name__] = probe()
    answers["log"] = kernel_log()
    Path("/howdah/out/traffic.json").write_text(json.dumps(answers, indent=1))


if __name__ == "__main__":
    main()
