# SPDX-License-Identifier: Apache-2.0
"""howdah_cpu: a host's processor; struct processor_options of modules/processor/processor.h."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import ClassVar

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import Discipline, Words


@planned
class HostProcessor(Discipline):
    """A discipline of our own module, which tc does not know; ``words`` follows tc's style."""

    kind: ClassVar[str] = "howdah_cpu"  # the kernel allows at most 15 letters
    of_module: ClassVar[str] = "of the module `howdah_processor` ([processor.md](processor.md))"
    notes: ClassVar[Mapping[str, str]] = {"search": "0 nothing, 1 each-block, 2 one-pass"}

    packet_ns: int
    ack_ns: int
    searched_ns: int
    search: int
    queue_packets: int

    def encode(self) -> bytes:
        times = (self.packet_ns, self.ack_ns, self.searched_ns)
        return struct.pack("=IIIII", *times, self.search, self.queue_packets)

    def words(self) -> Words:
        from howdah.quantity import format_nanoseconds  # not imported in guests, which format nothing
        from howdah.search import SEARCHES

        times = (("packet", self.packet_ns), ("ack", self.ack_ns), ("searched", self.searched_ns))
        words: Words = [word for name, ns in times for word in (name, format_nanoseconds(ns).replace(" ", ""))]
        return [*words, "search", SEARCHES[self.search], "limit", self.queue_packets]
