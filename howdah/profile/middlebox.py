# SPDX-License-Identifier: Apache-2.0
"""``path.middlebox``: a hop that changes, drops or duplicates packets."""

from __future__ import annotations

import re
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from howdah.errors import ProfileError
from howdah.linux.netlink.discipline.howdah_hop import OPTIONS
from howdah.profile.field import FieldError, Ratio, Section, Text, preset
from howdah.quantity import QuantityError

LEAST_MTU_BYTES = 68  # RFC 791: every hop forwards packets of this size
MOST_LOST = 12_000  # MOST_LOST of modules/hop/hop.h
_SPAN = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_MOST_RATIO = Fraction(1, 2)


# Bytes that a tunnel adds to an IPv4 packet, over IPv4:
# RFC 2516, 2003, 2784, 7348; 3GPP TS 29.281; WireGuard, sections 5.4.6 and 6.
TUNNELS = {"pppoe": 8, "ipip": 20, "gre": 24, "gtp-u": 36, "vxlan": 50, "wireguard": 60}


def _overhead(value: object) -> object:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0):
        return value
    if value in TUNNELS:
        return TUNNELS[str(value)]
    raise QuantityError(f"expected bytes as an integer, or one of {', '.join(TUNNELS)}, not {value!r}")


Overhead = Annotated[
    int,
    BeforeValidator(_overhead),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"enum": list(TUNNELS)}]}),
]


class MiddleboxSection(Section):
    """A hop after the delay line that treats packets as hops of the Internet do, from the epoch to the end of the run.

    ``mtu``, ``overhead``, ``clear_ecn`` and ``strip`` apply in both directions; ``lose``, ``duplicate`` and ``corrupt``
    forward, towards each receiver.
    """

    mtu: int | None = Field(
        default=None, description="largest IP packet that passes, in bytes (68 or more); larger ones are dropped"
    )
    overhead: Overhead | None = Field(
        default=None,
        description="instead of mtu: bytes of a tunnel's headers, which reduce the path's MTU and every rate, or the "
        f"tunnel: {', '.join(f'{name} ({size})' for name, size in TUNNELS.items())}",
    )
    icmp: bool = Field(
        default=True,
        description="answer packets that are too large with ICMP fragmentation needed; false: a black hole",
    )
    clear_ecn: bool = Field(default=False, description="set the ECN field of every packet to 0")
    strip: list[Literal["sack", "window-scale", "timestamps"]] = Field(
        default_factory=list,
        description="TCP options to overwrite with NOPs in SYN and SYN-ACK: selective acknowledgements, "
        "window scale, timestamps",
    )
    lose: list[Text] = Field(
        default_factory=list,
        description="packets to drop, by number towards the receiver, from 1: 20, 30-35, or a file with "
        "one of these per line",
    )
    duplicate: Ratio = preset(Ratio, "0 %", description="share of packets that arrive twice")
    corrupt: Ratio = preset(
        Ratio, "0 %", description="share of packets with a flipped bit, so that their checksum is wrong"
    )

    @model_validator(mode="after")
    def _sensible(self) -> MiddleboxSection:
        if self.mtu is not None and self.overhead is not None:
            raise FieldError("mtu and overhead are both given; give one", "overhead")
        if self.mtu is not None and self.mtu < LEAST_MTU_BYTES:
            what = f"an MTU of {self.mtu} bytes is too small: every hop forwards packets of {LEAST_MTU_BYTES} (RFC 791)"
            raise FieldError(what, "mtu")
        if not self.icmp and self.mtu is None and self.overhead is None:
            raise FieldError("nothing is too large for ICMP to report; give mtu or overhead", "icmp")
        for name in ("duplicate", "corrupt"):
            if getattr(self, name) > _MOST_RATIO:
                raise FieldError(f"expected at most 50 % of the packets to {name}", name)
        if not (self.limits or self.clear_ecn or self.strip or self.forward):
            raise FieldError("this middlebox does nothing; give mtu, overhead, clear_ecn, strip, lose or another field")
        return self

    @property
    def limits(self) -> bool:
        return self.mtu is not None or self.overhead is not None

    @property
    def forward(self) -> bool:
        """Whether it has an effect that applies in the forward direction only."""
        return bool(self.lose or self.duplicate or self.corrupt)

    @property
    def strips(self) -> list[int]:
        """Numbers of the TCP options to strip."""
        return sorted({OPTIONS[name] for name in self.strip})

    def mtu_bytes(self, of_path: int) -> int:
        """The largest IP packet that passes, 0 for no limit. Raises FieldError if it has no effect, or nothing
        passes."""
        if self.mtu is not None:
            if self.mtu >= of_path:
                what = f"nothing is larger than {self.mtu} bytes where path.mtu is {of_path}; give a smaller one"
                raise FieldError(what, "mtu")
            return self.mtu
        if self.overhead is None:
            return 0
        if of_path - self.overhead < LEAST_MTU_BYTES:
            what = f"{self.overhead} bytes of overhead leave {of_path - self.overhead} of path.mtu, {of_path}"
            raise FieldError(f"{what}; {LEAST_MTU_BYTES} must be left", "overhead")
        return of_path - self.overhead


def lost_packets(written: str, where: str, file: Path) -> list[int]:
    """Packet numbers of one entry of ``lose``, or of the ``file`` that it names. Raises ProfileError."""
    if written[:1].isdigit() and _SPAN.fullmatch(written):
        return _numbers(written, where)
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        what = f"{written!r} is not the number of a packet, and it cannot be read as a file: {reason}"
        raise ProfileError(
            what, where=where, hint="write 20, 30-35, or the name of a file with one on each line"
        ) from None
    found: list[int] = []
    for number, line in enumerate(lines, start=1):
        entry = line.partition("#")[0].strip()
        if entry:
            found += _numbers(entry, f"{file}:{number}")
    if not found:
        raise ProfileError(f"{file} names no packet", where=where, hint="write one number, or first-last, on each line")
    return found


def _numbers(entry: str, where: str) -> list[int]:
    match = _SPAN.fullmatch(entry)
    if match is None:
        raise ProfileError(f"{entry[:40]!r} is not the number of a packet", where=where, hint="write 20, or 30-35")
    first, last = int(match[1]), int(match[2] or match[1])
    if first == 0 or last < first:
        raise ProfileError(
            f"{entry!r} names no packets", where=where, hint="packets count from 1, and the first comes before the last"
        )
    if last - first >= MOST_LOST:
        what = f"{entry!r} names {last - first + 1} packets; {MOST_LOST} can be lost by number"
        raise ProfileError(what, where=where, hint="path.schedule with outage loses everything for a time")
    return list(range(first, last + 1))
