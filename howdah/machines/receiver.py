# SPDX-License-Identifier: Apache-2.0
"""The receiver for hosts that cannot run howdah's agent: FreeBSD, Windows, or anything with Python 3.8.

It listens on one address, reads every connection to its end as fast as it can, writes one JSON line for each, and
manages nothing else. Only this file is copied to hosts, so it imports only the portable part of the standard library.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import socket
import sys
import threading
import time

_CHUNK_BYTES = 1 << 20


class StreamReceiver:
    """Accepts connections on ``address`` and ``port``; ``buffer_bytes`` fixes SO_RCVBUF, otherwise the system tunes it.

    Raises ValueError for a wildcard address, OSError if it cannot listen.
    """

    def __init__(self, address: str, port: int, log: str | None, buffer_bytes: int | None = None) -> None:
        parsed = ipaddress.ip_address(address)
        if parsed.is_unspecified or parsed.is_multicast:
            raise ValueError(f"{address} is not the address of one interface: give that of its link to the others")
        self._log = log
        self._writing = threading.Lock()
        self._socket = socket.socket(socket.AF_INET6 if parsed.version == 6 else socket.AF_INET, socket.SOCK_STREAM)
        try:
            # On Windows this option would let another process take the port.
            if sys.platform != "win32":
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if buffer_bytes is not None:
                # Before listening: connections inherit the window scale, which is fixed by the SYN.
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
            self._socket.bind((address, port))
            self._socket.listen(64)
        except OSError:
            self._socket.close()
            raise

    @property
    def port(self) -> int:
        return int(self._socket.getsockname()[1])

    def close(self) -> None:
        self._socket.close()

    def serve(self, connections: int | None = None) -> None:
        """Accept this many connections, or any number, and return when all of them have ended."""
        threads: list[threading.Thread] = []
        taken = 0
        while connections is None or taken < connections:
            connection, _peer = self._socket.accept()
            taken += 1
            threads = [thread for thread in threads if thread.is_alive()]
            threads.append(threading.Thread(target=self._receive, args=(connection,), daemon=True))
            threads[-1].start()
        for thread in threads:
            thread.join()

    def _receive(self, connection: socket.socket) -> None:
        peer, own = connection.getpeername(), connection.getsockname()
        record: dict[str, object] = {"address": own[0], "port": own[1], "peer_address": peer[0], "peer_port": peer[1]}
        record.update({"accepted_realtime_ns": time.time_ns(), "first_byte_realtime_ns": None, "error": None})
        record["buffer_bytes"] = connection.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        received, buffer = 0, bytearray(_CHUNK_BYTES)
        with connection:
            try:
                while count := connection.recv_into(buffer):
                    if not received:
                        record["first_byte_realtime_ns"] = time.time_ns()
                    received += count
            except OSError as error:
                record["error"] = str(error)
        record.update({"end_realtime_ns": time.time_ns(), "bytes_received": received})
        self._write(json.dumps(record) + "\n")

    def _write(self, line: str) -> None:
        with self._writing:
            if self._log is None:
                sys.stdout.write(line)
                sys.stdout.flush()
                return
            with open(self._log, "a", encoding="utf-8") as file:  # noqa: PTH123
                file.write(line)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="receiver.py", description="Read TCP connections to their end.")
    parser.add_argument("--address", required=True, help="of its link to the others; it listens nowhere else")
    parser.add_argument("--port", type=int, default=5201)
    parser.add_argument("--log", help="file for a JSON line per connection (default: standard output)")
    parser.add_argument("--buffer-bytes", type=int, help="SO_RCVBUF; without it the system tunes it")
    parser.add_argument("--connections", type=int, help="end after this many")
    options = parser.parse_args(arguments)
    try:
        receiver = StreamReceiver(options.address, options.port, options.log, options.buffer_bytes)
    except (OSError, ValueError, OverflowError) as error:
        sys.stderr.write(f"receiver.py: {options.address}, port {options.port}: {error}\n")
        return 1
    try:
        receiver.serve(options.connections)
    except KeyboardInterrupt:
        pass
    finally:
        receiver.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
