# SPDX-License-Identifier: Apache-2.0
"""clsact: where filters of what leaves an interface hang; it queues nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from howdah.codec import planned
from howdah.linux.netlink.discipline.discipline import Discipline, Words


@planned
class Clsact(Discipline):
    """Without options; filters of what leaves hang on it."""

    kind: ClassVar[str] = "clsact"
    notes: ClassVar[Mapping[str, str]] = {"": "none; filters of what leaves hang on it"}

    def encode(self) -> bytes:
        return b""

    def words(self) -> Words:
        return []
