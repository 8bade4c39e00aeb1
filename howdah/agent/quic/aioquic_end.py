# SPDX-License-Identifier: Apache-2.0
"""One end of a transfer over aioquic: ``server`` sends an object to each client that opens a stream; ``client``
requests it.

aioquic keeps data until they are acknowledged, so the server hands the object over in pieces.
"""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import ssl
import sys
from pathlib import Path
from typing import Any, ClassVar

from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import QuicEvent, StreamDataReceived
from aioquic.quic.logger import QuicLogger

_PROTOCOL = "howdah"
_AHEAD_BYTES = 1 << 20  # keep at least this much in aioquic's send buffer while data remain
_BLOCK = bytes(1 << 20)


class ServerConnection(QuicConnectionProtocol):
    """A server's connection, which sends ``object_bytes`` zeros on the stream that the client opened."""

    object_bytes = 0
    connections: ClassVar[list[ServerConnection]] = []

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.connections.append(self)
        self._stream: int | None = None
        self._left = self.object_bytes

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, StreamDataReceived) and self._stream is None:
            self._stream = event.stream_id
            self._hand_over()

    def datagram_received(self, data: bytes | str, address: Any) -> None:
        super().datagram_received(data, address)
        if self._stream is not None and self._left:
            self._hand_over()
            self.transmit()

    def _hand_over(self) -> None:
        assert self._stream is not None
        sender = self._quic._get_or_create_stream_for_send(self._stream).sender
        while self._left and sender._buffer_stop - sender.highest_offset < _AHEAD_BYTES:
            block = _BLOCK[: self._left]
            self._left -= len(block)
            self._quic.send_stream_data(self._stream, block, end_stream=not self._left)


class ClientConnection(QuicConnectionProtocol):
    """A client's connection, which counts received bytes and sets ``done`` when the stream has ended."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.received_bytes = 0
        self.done = asyncio.Event()

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, StreamDataReceived):
            self.received_bytes += len(event.data)
            if event.end_stream:
                self.done.set()


async def _serve(address: str, port: int, object_bytes: int, algorithm: str, directory: str) -> None:
    ServerConnection.object_bytes = object_bytes
    logger = QuicLogger()  # logs open connections, too; a file logger writes only after the end of one
    settings = QuicConfiguration(
        is_client=False,
        alpn_protocols=[_PROTOCOL],
        congestion_control_algorithm=algorithm,
        quic_logger=logger,
        idle_timeout=3600.0,
    )
    settings.load_cert_chain("certificate.pem", "key.pem")
    server = await serve(address, port, configuration=settings, create_protocol=ServerConnection)
    await _interrupted()
    for connection in ServerConnection.connections:
        connection.close()
    _write(logger.to_dict(), Path(directory, "server.qlog"))
    server.close()


def _write(log: dict[str, Any], path: Path) -> None:
    """Write the log one event at a time: as one string it would need as much memory again."""
    traces = log.pop("traces")
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(log)[:-1] + ', "traces": [')
        for number, trace in enumerate(traces):
            events = trace.pop("events")
            file.write(", " * bool(number) + json.dumps(trace)[:-1] + ', "events": [')
            for position, event in enumerate(events):
                file.write(", " * bool(position) + json.dumps(event))
            file.write("]}")
        file.write("]}")


async def _request(address: str, port: int, window_bytes: int) -> int:
    settings = QuicConfiguration(
        is_client=True,
        alpn_protocols=[_PROTOCOL],
        verify_mode=ssl.CERT_NONE,
        max_data=window_bytes,
        max_stream_data=window_bytes,
        idle_timeout=3600.0,
    )
    loop = asyncio.get_running_loop()
    # aioquic's own ``connect`` needs IPv6.
    _transport, connection = await loop.create_datagram_endpoint(
        lambda: ClientConnection(QuicConnection(configuration=settings)),
        family=socket.AF_INET,
        local_addr=("0.0.0.0", 0),
    )
    connection.connect((address, port))
    await connection.wait_connected()
    stream = connection._quic.get_next_available_stream_id()
    connection._quic.send_stream_data(stream, b"?", end_stream=True)
    connection.transmit()
    waiting = [connection.done.wait(), connection.wait_closed(), _interrupted()]
    await asyncio.wait([asyncio.ensure_future(each) for each in waiting], return_when=asyncio.FIRST_COMPLETED)
    connection.close()
    await connection.wait_closed()
    sys.stdout.write(f"{connection.received_bytes}\n")
    return 0


async def _interrupted() -> None:
    interrupted = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupted.set)
    await interrupted.wait()


def main(arguments: list[str]) -> int:
    end, address, port, object_bytes, *rest = arguments
    if end == "server":
        algorithm, directory = rest
        asyncio.run(_serve(address, int(port), int(object_bytes), algorithm, directory))
        return 0
    return asyncio.run(_request(address, int(port), int(rest[0])))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
