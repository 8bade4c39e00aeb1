# SPDX-License-Identifier: Apache-2.0
"""Parts of flows that are more than bulk data between two kernels. Standard library only."""

from __future__ import annotations

from dataclasses import field
from typing import Literal

from howdah.codec import OCCASIONAL, planned


@planned
class HttpRequests:
    """HTTP between real programs. If ``every_us`` is None, each request follows the previous answer at once."""

    object_bytes: int
    requests: int
    every_us: int | None


@planned
class Exchange:
    """Requests and answers over one connection, with ``think_us`` between them."""

    object_bytes: int
    request_bytes: int
    requests: int
    think_us: int


@planned
class ProgramFile:
    """A file of the profile that is copied to a program's directory: absolute path, name there, digest."""

    path: str
    name: str
    sha256: str


@planned
class ProgramEnd:
    """One program of a flow; ``own``: its command begins with one of its files. ``before`` are commands run first."""

    command: list[str]
    environment: dict[str, str]
    files: list[ProgramFile]
    own: bool
    signal: str  # signal that asks it to end, without SIG
    before: list[list[str]] = field(default_factory=list, metadata=OCCASIONAL)


@planned
class Programs:
    """Two programs that make a flow (docs/data-format.md). ``ports`` are further ports on which the server listens."""

    sends: Literal["server", "client"]
    protocol: str  # "tcp" or "udp"
    ports: list[int]
    wire_bytes: int | None
    stopped_by: str  # the end that is asked to end when the flow's time is over
    quic: str | None  # name of a stack (howdah/plan/quic.py)
    client: ProgramEnd
    server: ProgramEnd

    def end(self, name: str) -> ProgramEnd:
        return self.client if name == "client" else self.server


@planned
class PlannedStack:
    """An end of a flow that is not the kernel's TCP (howdah/plan/stack.py); ``file`` is the stack's YAML.

    ``algorithm`` is the stack's name for the algorithm of a sender.
    """

    name: str
    file: str
    program: str
    interface: str
    host_interface: str
    mac: str
    mtu_bytes: int
    prefix_bits: int
    netmask: str
    gateway: str
    algorithm: str | None = field(default=None, metadata=OCCASIONAL)
