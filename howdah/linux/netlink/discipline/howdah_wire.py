# SPDX-License-Identifier: Apache-2.0
"""howdah_wire: a line between two kernels; struct wire_options of modules/wire/wire.h."""

from __future__ import annotations

import struct
from typing import ClassVar

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import Discipline, Words


@planned
class Wire(Discipline):
    """A line to another kernel; the engine adds it when it divides a plan among kernels."""

    kind: ClassVar[str] = "howdah_wire"
    of_module: ClassVar[str] = "only in the parts of a plan for several kernels ([kernels.md](kernels.md))"

    wire: int
    to: int
    delay_ns: int

    def encode(self) -> bytes:
        return struct.pack("=IIQ", self.wire, self.to, self.delay_ns)

    def words(self) -> Words:
        return ["wire", self.wire, "to", self.to, "delay", f"{self.delay_ns}ns"]
