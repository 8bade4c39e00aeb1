# SPDX-License-Identifier: Apache-2.0
"""``howdah exporter``: a live machine for Prometheus, over HTTP on loopback or on a link to other machines.

On the hosts of several machines it runs from an archive with the machine's own Python, and needs nothing of them but
the standard library: ``prometheus_client`` is in the archive.
"""

from __future__ import annotations

import argparse
import ipaddress
import sys

from howdah.publish.endpoint import ScrapeEndpoint
from howdah.publish.machine import LiveMachine, families_of

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


class Exporter(ScrapeEndpoint):
    """Reads the machine at every scrape, one at a time. Raises AddressError, or OSError when it cannot listen."""

    def __init__(self, address: str, port: int, machine: LiveMachine) -> None:
        require_address(address)
        super().__init__(lambda: families_of(machine.read()), address=address, port=port)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--address", default="127.0.0.1", help="one address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"port (default: {DEFAULT_PORT})")
    parser.add_argument("--node", default=None, help="name of this machine in the label node (default: its own)")


def serve(options: argparse.Namespace) -> None:
    """Serve until interrupted. Raises AddressError, OSError, or OverflowError for an invalid port."""
    with Exporter(options.address, options.port, LiveMachine(options.node)) as exporter:
        sys.stdout.write(f"metrics: http://{exporter.address}/metrics\n")
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
