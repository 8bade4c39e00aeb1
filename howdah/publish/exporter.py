# SPDX-License-Identifier: Apache-2.0
"""``howdah exporter``: a live machine for Prometheus, over HTTP on loopback or on a link to other machines.

Standard library only: on the hosts of several machines it runs from an archive with the machine's own Python.
"""

from __future__ import annotations

import argparse
import http.server
import ipaddress
import socket
import socketserver
import sys
import threading

from howdah.publish.exposition import openmetrics_format, text_format
from howdah.publish.guard import FewAtOnce
from howdah.publish.machine import LiveMachine
from howdah.publish.page import OPENMETRICS, TEXT, Page

DEFAULT_PORT = 9750


class AddressError(ValueError):
    """The exporter must not listen there."""


def require_address(address: str) -> None:
    """Raise AddressError for anything but one address: a wildcard would listen on every interface."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        raise AddressError(f"{address!r} is not an address") from None
    if parsed.is_unspecified or parsed.is_multicast:
        raise AddressError(
            f"{address} is not the address of one interface; take 127.0.0.1, or that of a link to other machines"
        )


class _Handler(Page):
    server: Exporter
    server_version = "howdah"
    sys_version = ""

    def reply(self, path: str) -> None:
        if path == "/metrics":
            try:
                text = self.server.text(self.content_type)
            except OSError as error:
                self.answer(500, f"the kernel refused a question: {error}\n")
            else:
                self.answer(200, text, self.content_type)
        elif path == "/":
            self.answer(200, "howdah exporter: see /metrics\n")
        else:
            self.answer(404, "there is only /metrics\n")


class Exporter(FewAtOnce, http.server.HTTPServer):
    """Reads the machine at every scrape, one at a time. Raises AddressError, or OSError when it cannot listen."""

    def __init__(self, address: str, port: int, machine: LiveMachine) -> None:
        require_address(address)
        if ":" in address:
            self.address_family = socket.AF_INET6
        self._machine = machine
        self._reading = threading.Lock()
        super().__init__((address, port), _Handler)

    def server_bind(self) -> None:
        """Bind without the look-up of its own name in http.server, which may wait for a name server."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.place

    def text(self, content_type: str = TEXT) -> str:
        """One reading in the format of a content type."""
        write = openmetrics_format if content_type == OPENMETRICS else text_format
        with self._reading:
            return "".join(write(self._machine.read()))

    @property
    def place(self) -> tuple[str, int]:
        """Address and port; a requested port 0 is replaced by the real one."""
        name = self.socket.getsockname()
        return str(name[0]), int(name[1])

    @property
    def url(self) -> str:
        host, port = self.place
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--address", default="127.0.0.1", help="one address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"port (default: {DEFAULT_PORT})")
    parser.add_argument("--node", default=None, help="name of this machine in the label node (default: its own)")


def serve(options: argparse.Namespace) -> None:
    """Serve until interrupted. Raises AddressError, OSError, or OverflowError for an invalid port."""
    with Exporter(options.address, options.port, LiveMachine(options.node)) as exporter:
        sys.stdout.write(f"metrics: {exporter.url}/metrics\n")
        sys.stdout.flush()
        exporter.serve_forever()


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="howdah exporter", description="A live machine for Prometheus.")
    add_arguments(parser)
    options = parser.parse_args(arguments)
    try:
        serve(options)
    except KeyboardInterrupt:
        return 0
    except (AddressError, OSError, OverflowError) as error:
        sys.stderr.write(f"howdah exporter: {options.address}, port {options.port}: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
