# SPDX-License-Identifier: Apache-2.0
"""What a plug-in tells, with the names of ``slow_start_event.h``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from tests.decision.build import MODULES


@lru_cache
def names(enumeration: str) -> dict[int, str]:
    """``names("slow_start_reason")[1]`` is "ack-train"."""
    text = (MODULES / "include" / "slow_start_event.h").read_text()
    body = re.search(rf"^enum {enumeration} {{(.*?)^}};", text, re.DOTALL | re.MULTILINE)
    assert body, f"slow_start_event.h has no enum {enumeration}"
    pairs = re.findall(r"SLOW_START_(\w+) = (\d+)", body[1])
    return {int(number): name.lower().replace("_", "-") for name, number in pairs}


@dataclass(frozen=True)
class Event:
    """A record of the tracepoint; units of quantity and threshold are those of the reason."""

    time_us: int
    event: str
    reason: str
    cwnd: int
    ssthresh: int
    quantity: int
    threshold: int
    round: int
    min_rtt_us: int

    @classmethod
    def from_numbers(cls, time_us: int, event: int, reason: int, *rest: int) -> Event:
        event_name = names("slow_start_event").get(event, f"unknown-{event}")
        return cls(time_us, event_name, names("slow_start_reason").get(reason, f"unknown-{reason}"), *rest)
