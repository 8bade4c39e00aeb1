# SPDX-License-Identifier: Apache-2.0
"""Messages of the kernel's log: their form in /dev/kmsg and in raw/kernel.log, and those that say that it is ill."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PRIORITY_LEVELS = 8  # the rest of the number is the facility (syslog(2))
# What lib/bug.c, kernel/panic.c, the schedulers' and lockdep's reports, and the memory allocator begin with.
_ALARM = re.compile(
    r"WARNING: |BUG: |kernel BUG at |Oops\b|Kernel panic|Internal error|general protection fault|divide error"
    r"|Kernel mode (?:fault|signal)|UBSAN: |KASAN: |KCSAN: |KFENCE: |KMSAN: |INFO: task .* blocked for more than"
    r"|INFO: rcu_|rcu: INFO: |soft lockup|hard LOCKUP|list_(?:add|del) corruption|page allocation failure"
    r"|Out of memory: |possible (?:recursive|circular) locking|inconsistent lock state|suspicious RCU usage"
    r"|unregister_netdevice: waiting for|kernel stack overflow|Bad page state|stack-protector: "
)


@dataclass(frozen=True)
class KernelMessage:
    """``number`` counts the kernel's messages from its boot, ``time_us`` is its own clock; 0 is the worst level."""

    level: int
    number: int
    time_us: int
    text: str

    def line(self) -> str:
        """As it stands in raw/kernel.log."""
        return f"{self.level},{self.number},{self.time_us};{self.text}\n"


def parse(record: str) -> KernelMessage | None:
    """A record of /dev/kmsg or a line of raw/kernel.log: ``level,number,time,…;message``; None if it is neither.

    Lines below a record of /dev/kmsg are a dictionary for programs.
    """
    head, separator, rest = record.partition(";")
    fields = head.split(",")
    try:
        priority, number, time_us = map(int, fields[:3])
    except ValueError:
        return None
    if not separator:
        return None
    return KernelMessage(priority % _PRIORITY_LEVELS, number, time_us, rest.partition("\n")[0])


def is_alarm(text: str) -> bool:
    """Whether a message says that something in the kernel is wrong: WARNING, BUG, Oops and their like."""
    return _ALARM.search(text) is not None
