# SPDX-License-Identifier: Apache-2.0
"""clsact: the hook for egress filters of an interface; it queues nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import Discipline, Words


@planned
class Clsact(Discipline):
    """A hook for egress filters, without options."""

    kind: ClassVar[str] = "clsact"
    notes: ClassVar[Mapping[str, str]] = {"": "none; the hook for egress filters"}

    def encode(self) -> bytes:
        return b""

    def words(self) -> Words:
        return []
