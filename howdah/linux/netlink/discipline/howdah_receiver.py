# SPDX-License-Identifier: Apache-2.0
"""howdah_receiver: how an emulated receiver acknowledges; struct receiver_options of modules/receiver/receiver.h."""

from __future__ import annotations

import struct
from typing import ClassVar

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import Discipline, Words, duration


@planned
class EmulatedReceiver(Discipline):
    """A discipline of our own module, which tc does not know; ``words`` follows tc's style."""

    kind: ClassVar[str] = "howdah_receiver"
    of_module: ClassVar[str] = "of the module of that name ([receivers.md](receivers.md))"

    acknowledge_every: int
    delay_us: int
    quick_first: int
    sack_blocks: int
    backlog_blocks: int

    def encode(self) -> bytes:
        counts = (self.quick_first, self.sack_blocks, self.backlog_blocks)
        return struct.pack("=IIIII", self.acknowledge_every, self.delay_us, *counts)

    def words(self) -> Words:
        words: Words = ["every", self.acknowledge_every, "delay", duration(self.delay_us)]
        words += ["quick-first", self.quick_first]
        return [*words, "sack-blocks", self.sack_blocks, "backlog-blocks", self.backlog_blocks]
