# SPDX-License-Identifier: Apache-2.0
"""Wires: each joins an interface of one host with an interface of another, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

CONTROL = "control"  # the interface of monitoring in every virtual machine
MANAGE = "manage"  # the interface SSH comes through
_RESERVED = (CONTROL, MANAGE, "lo")

# The kernel takes names of up to 15 characters; in a virtual machine the interface has the wire's name.
WireName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_-]{0,14}$")]


@dataclass(frozen=True)
class End:
    """One end of a wire: a host and the name of its interface there."""

    host: str
    interface: str


def parse_end(written: str, wire: str, *, virtual: bool) -> End:
    """``HOST`` with virtual machines, where the interface is named like the wire; ``HOST:INTERFACE`` of a real machine.

    Raises ValueError in words.
    """
    host, colon, interface = written.partition(":")
    if virtual:
        if colon:
            raise ValueError(f"with virtual machines the interface has the wire's name; write {host}, not {written!r}")
        if wire in _RESERVED:
            raise ValueError(f"a wire cannot be called {wire}: every machine has an interface of that name")
        return End(host, wire)
    if not host or not interface:
        raise ValueError(f"expected HOST:INTERFACE, not {written!r}")
    return End(host, interface)
