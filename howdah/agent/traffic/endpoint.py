# SPDX-License-Identifier: Apache-2.0
"""One end of a flow: moves the bytes of a connected socket and reports its progress."""

from __future__ import annotations

import socket
from typing import Protocol

from howdah.codec import planned


@planned
class Transferred:
    """An end's progress. ``first_ns`` and ``last_ns`` are CLOCK_MONOTONIC, None before the first byte.

    ``done``: a source has written everything and shut its side down; a sink has read the peer's FIN.
    """

    bytes: int
    first_ns: int | None
    last_ns: int | None
    done: bool
    error: str | None = None


class TrafficEndpoint(Protocol):
    """An end of a flow: ``attach`` it once to a connected socket; ``state`` may be read at any time after that."""

    def attach(self, connection: socket.socket) -> None: ...

    def state(self) -> Transferred: ...

    def close(self) -> None: ...
